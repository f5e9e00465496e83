"""Codec: records as JSON, and complete ones back again from files that may come from strangers.

The types of the fields define the content of a record, and each value is checked against them.
Numbers are finite, and not negative except in fields that may be. Nothing is unpickled or imported.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from tflab.errors import UsageError

MOST = 2**53  # larger numbers in JSON are not exact everywhere
BELOW_ZERO = ("exit_status",)  # fields that may be negative
OF_TENSORS = ("mean", "min", "max")  # of the elements of a tensor, which may be large

T = TypeVar("T")
Json: TypeAlias = Any  # what `json` reads and writes
Kind: TypeAlias = Any  # the type of a field
Record: TypeAlias = Any  # a dataclass or a named tuple, and what is in it

# The parts of a record that are written: key, name of the field, and value
Parts = Iterable[tuple[str, str, Record]]


def every_field(value: Record, within: str) -> Parts:
    return ((item.name, item.name, getattr(value, item.name)) for item in fields(value))


def encoded(
    value: Record,
    parts: Callable[[Record, str], Parts] = every_field,
    within: str = "",
    text: Callable[[str], str] = lambda text: text,
) -> Json:
    """Return records as objects, tuples as lists, and numbers that are not finite as null.

    `parts` returns what is written of a record in the field `within` of another record. With all
    fields the result can be `decoded`. `text` is called for each text.
    """

    def part(value: Record, within: str) -> Json:
        # In the order of how many there are
        if isinstance(value, str):
            return text(value)
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            value = value._asdict()
        if isinstance(value, float):
            return value if math.isfinite(value) else None  # JSON has no word for it
        if is_dataclass(value):
            return {key: part(own, name) for key, name, own in parts(value, within)}
        if isinstance(value, Mapping):
            return {text(str(key)): part(item, within) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes):
            return [part(item, within) for item in value]
        return value

    return part(value, within)


hints = functools.cache(get_type_hints)  # of a record: field -> type


def decoded(kind: Kind, value: Json, field: str = "") -> Record:
    """Return a value of this type from JSON. Raises ValueError if it is not of the type. `field` is
    the name of the record's field that holds it directly."""
    origin: Kind = get_origin(kind)
    arguments = get_args(kind)
    if is_dataclass(kind):
        check(isinstance(value, dict))
        made: Kind = kind
        kinds = {name: of_field for name, of_field in hints(made).items() if name in value}
        try:
            return made(**{name: decoded(kinds[name], value[name], name) for name in kinds})
        except TypeError as error:  # a field is missing
            raise ValueError from error
    if origin in (Union, types.UnionType):
        some = next(argument for argument in arguments if argument is not types.NoneType)
        return None if value is None else decoded(some, value, field)
    if origin in (tuple, Sequence):
        check(isinstance(value, list))
        same = origin is Sequence or arguments[-1] is Ellipsis
        kinds_of_items = arguments[:1] * len(value) if same else arguments
        return tuple(decoded(*each) for each in zip(kinds_of_items, value, strict=True))
    if origin is Mapping:
        check(isinstance(value, dict))
        of_key, of_value = arguments
        # Keys in JSON are text; an integer key is a batch size
        keys = {key: decoded(of_key, int(key) if of_key is int else key) for key in value}
        return {keys[key]: decoded(of_value, item) for key, item in value.items()}
    allowed = {float: (int, float), Any: (str, bool, int, float)}.get(kind, (kind,))
    element = kind is Any or field in OF_TENSORS  # of a tensor: a number or a truth
    check(type(value) in (*allowed, *([bool] if element else [])))
    if isinstance(value, str):
        value.encode()  # raises ValueError for an unpaired surrogate
    else:
        check(abs(value) <= (sys.float_info.max if element else MOST))
        check(element or value >= 0 or field in BELOW_ZERO)
    return value


def check(right: bool) -> None:
    if not right:
        raise ValueError


# Files that commands wrote


def read_object(path: str, give: str) -> dict[str, Any]:
    """Return the JSON object in a file. Raises UsageError if there is none, which says `give`."""
    try:
        content = json.loads(Path(path).read_bytes())
        check(isinstance(content, dict))
    except FileNotFoundError as error:
        raise UsageError(f"There is no file '{path}'; {give}.") from error
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' has no JSON object; {give}.") from error
    return dict(content)


def decode_file(kind: type[T], content: dict[str, Any], path: str) -> T:
    """Return the record in a file's content. Raise UsageError if a value does not fit its field."""
    try:
        value: T = decoded(kind, content)
        return value
    except ValueError as error:
        raise wrong(path) from error


def wrong(path: str) -> UsageError:
    return UsageError(f"'{path}' is damaged, or another version of tflab wrote it.")
