"""Codec: records as JSON, and complete ones back again from files that may come from strangers.

The types of the fields define the content of a record, and each value is checked against them:
numbers are finite, and not negative unless they may be a difference. Nothing is unpickled or
imported.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from tflab.errors import UsageError

MOST = 2**53  # larger numbers in JSON are not exact everywhere
LONGEST = 10_000  # characters of a text
# Fields that may be negative: differences of times, and an exit status for a signal
BELOW_ZERO = ("once_more_ns", "low_ns", "high_ns", "exit_status")
OF_TENSORS = ("mean", "min", "max")  # of the elements of a tensor, which may be large
# What null in a file means: an infinite end of an interval of too few observations
NULL = {"low": 0.0, "low_ns": -math.inf, "high": math.inf, "high_ns": math.inf}


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
    """Return records as objects, tuples as lists, and numbers that are not finite as null, at all
    depths.

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


def decoded(kind: Kind, value: Json, field: str = "") -> Record:
    """Return a value of this type. `field` names the field of a record if this is its direct value.
    Raises ValueError for another value."""
    origin: Kind = get_origin(kind)
    arguments = get_args(kind)
    if is_dataclass(kind):
        return record(kind, value)
    if origin in (Union, types.UnionType):
        some = next(argument for argument in arguments if argument is not types.NoneType)
        return None if value is None else decoded(some, value, field)
    if origin in (tuple, Sequence):
        check(isinstance(value, list))
        same = origin is Sequence or arguments[-1] is Ellipsis
        kinds = arguments[:1] * len(value) if same else arguments
        return tuple(decoded(kind, item) for kind, item in zip(kinds, value, strict=True))
    if origin is Mapping:
        check(isinstance(value, dict))
        of_key, of_value = arguments
        # Keys in JSON are text; an integer key is a batch size
        keys = {key: decoded(of_key, int(key) if of_key is int else key) for key in value}
        return {keys[key]: decoded(of_value, item) for key, item in value.items()}
    return scalar(kind, value, field)


def check(right: bool) -> None:
    if not right:
        raise ValueError


def record(kind: Kind, value: Json) -> Record:
    check(isinstance(value, dict))
    values = {}
    for name, of_field, optional in fields_of(kind):
        check(optional or name in value)
        if name in value:
            values[name] = decoded(of_field, value[name], name)
    return kind(**values)


@functools.cache
def fields_of(kind: Kind) -> tuple[tuple[str, Kind, bool], ...]:
    """Return name and type of each field, and whether it has a default."""
    hints = get_type_hints(kind)
    none = (MISSING, MISSING)
    return tuple(
        (item.name, hints[item.name], (item.default, item.default_factory) != none)
        for item in fields(kind)
    )


def scalar(kind: Kind, value: Json, field: str) -> Json:
    if kind is float and value is None and field in NULL:
        return NULL[field]
    if kind is str or (kind is Any and isinstance(value, str)):
        check(isinstance(value, str) and len(value) <= LONGEST)
        value.encode()  # raises ValueError for an unpaired surrogate
        return value
    if kind is bool:
        check(isinstance(value, bool))
        return value
    element = kind is Any or field in OF_TENSORS  # of a tensor: a number or a truth
    check(isinstance(value, int if kind is int else (int, float)))
    check(element or not isinstance(value, bool))
    check(abs(value) <= (sys.float_info.max if element else MOST))
    check(element or value >= 0 or field in BELOW_ZERO)
    return value


# Files that commands wrote


def read_object(path: str, give: str) -> dict[str, Any]:
    """Return the JSON object in a file. Raise UsageError if there is none; it ends with `give`,
    which says what file to give."""
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


def decode_file(kind: type, content: dict[str, Any], path: str) -> Any:
    """Return the record in a file's content. Raise UsageError if a value does not fit its field."""
    try:
        return decoded(kind, content)
    except ValueError as error:
        raise wrong(path) from error


def wrong(path: str) -> UsageError:
    return UsageError(f"'{path}' is damaged, or another version of tflab wrote it.")
