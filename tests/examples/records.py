"""Records with a value in every field, of any type: for the tests of formats."""

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def filled(
    kind: Any, text: Callable[[str], str] = str, place: str = "", number: int = 1, depth: int = 4
) -> Any:
    """Return a value of a type. Each text in it is where it stands, such as `passes.name`, or what
    `text` makes of that; each number counts the fields of its record up to its own."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)

    def part(kind: Any) -> Any:
        return filled(kind, text, place, number, depth)

    if kind is str:
        return text(place)
    if kind is bool:
        return number % 2 == 1
    if kind in (int, float):
        return kind(number)
    if kind is Any:
        return number
    if origin in (typing.Union, types.UnionType):
        return part(parts[0])
    if origin is tuple:
        items = parts[:1] if Ellipsis in parts else parts
        return tuple(map(part, items)) if depth else ()
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return (part(parts[0]),)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {part(parts[0]): part(parts[1])}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        names = [item.name for item in fields(kind) if item.init] if is_dataclass(kind) else None
        kinds = typing.get_type_hints(kind, localns={"np": np})
        return kind(
            **{
                name: filled(kinds[name], text, f"{place}.{name}".lstrip("."), at, depth - 1)
                for at, name in enumerate(names or kinds, 1)
            }
        )
    return None
