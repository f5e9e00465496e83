"""Old arguments: functions of TensorFlow that took theirs in another order before 1.0.

Each is noted only where it is called as it was then.
"""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow.compat.v1 as tf

from tflab.run.v1 import note

NOTE_THEMSELVES = True


def concat(*given: Any, **named: Any) -> Any:
    """tf.concat, whose axis came first: `concat(concat_dim, values)`."""
    if "concat_dim" in named:
        named["axis"] = named.pop("concat_dim")
    elif given and isinstance(given[0], numbers.Integral):
        named["axis"] = given[0]
        named.update(zip(("values", "name"), given[1:], strict=False))
        given = ()
    else:
        return tf.concat(*given, **named)
    note("concat(axis, values)")
    return tf.concat(*given, **named)


def split(*given: Any, **named: Any) -> Any:
    """tf.split, whose axis and number came first: `split(split_dim, num_split, value)`."""
    renamed = {"split_dim": "axis", "num_split": "num_or_size_splits"}
    if not (given and isinstance(given[0], numbers.Integral)) and not {*renamed} & {*named}:
        return tf.split(*given, **named)
    note("split(axis, number, value)")
    named = {renamed.get(name, name): value for name, value in named.items()}
    named.update(zip((*renamed.values(), "value", "name"), given, strict=False))
    return tf.split(**named)


__all__ = ["concat", "split"]
