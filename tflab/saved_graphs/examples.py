"""Examples: serialised tf.train.Example strings that fit a graph's own parsing of them.

The graph says what it looks for: the keys, types and shapes of its ParseExample nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

PARSERS = ("ParseExample", "ParseExampleV2", "ParseSingleExample")
SHOWN = 3  # keys that a note lists

# (tensor that a key is parsed to, shape) -> values that fit what the graph does with it
Values = Callable[[tf.Tensor, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Parsed:
    """One key that a graph looks for in each example."""

    key: str
    dtype: tf.DType
    shape: tuple[int, ...]  # of one row: open sizes are 1
    tensor: tf.Tensor  # that it is parsed to


def parser_of(tensor: tf.Tensor, needed: Collection[str]) -> tf.Operation | None:
    """The node that parses the strings of this tensor."""
    parsing = [op for op in tensor.consumers() if op.type in PARSERS and op.name in needed]
    return next((op for op in parsing if op.inputs[0] is tensor), None)


def keys_of(op: tf.Operation) -> Iterator[Parsed]:
    """What a parsing node looks for: its sparse keys, its dense ones, its ragged ones."""
    sparse, dense, ragged = keys_by_kind(op)
    sparse_types, dense_types = op.get_attr("sparse_types"), op.get_attr("Tdense")
    for number, (key, dtype) in enumerate(zip(sparse, sparse_types, strict=True)):
        yield Parsed(key, tf.as_dtype(dtype), (1,), op.outputs[len(sparse) + number])
    first = 3 * len(sparse)
    described = zip(dense, dense_types, op.get_attr("dense_shapes"), strict=True)
    for number, (key, dtype, shape) in enumerate(described):
        sizes = tuple(size or 1 for size in tf.TensorShape(shape).as_list())
        yield Parsed(key, tf.as_dtype(dtype), sizes, op.outputs[first + number])
    if ragged:
        first += len(dense)
        for number, (key, dtype) in enumerate(
            zip(ragged, op.get_attr("ragged_value_types"), strict=True)
        ):
            yield Parsed(key, tf.as_dtype(dtype), (1,), op.outputs[first + number])


def keys_by_kind(op: tf.Operation) -> tuple[list[str], list[str], list[str]]:
    if op.type == "ParseSingleExample":
        return text(op.get_attr("sparse_keys")), text(op.get_attr("dense_keys")), []
    if op.type == "ParseExampleV2":
        sparse, dense, ragged = (constants([tensor]) for tensor in op.inputs[2:5])
        return sparse, dense, ragged
    count = op.get_attr("Nsparse")
    keys = list(op.inputs)[2 : 2 + count + op.get_attr("Ndense")]
    return constants(keys[:count]), constants(keys[count:]), []


def constants(tensors: list[tf.Tensor]) -> list[str]:
    """The keys in these tensors. Raises ValueError where they are not constants."""
    values = [tf.get_static_value(tensor) for tensor in tensors]
    if any(value is None for value in values):
        raise ValueError("the keys that are parsed are not constants")
    return text(key for value in values for key in np.ravel(value))


def text(keys: Any) -> list[str]:
    return [key.decode(errors="surrogateescape") for key in keys]


def made_up(op: tf.Operation, shape: tuple[int, ...], values: Values) -> tuple[np.ndarray, str]:
    """Serialised examples for a parsing node, and what is in them."""
    keys = list(keys_of(op))
    rows = int(np.prod(shape))
    columns = [values(key.tensor, (rows, *key.shape)) for key in keys]
    strings: np.ndarray = np.empty(rows, object)
    for row in range(rows):
        example = tf.train.Example()
        for key, column in zip(keys, columns, strict=True):
            add(example.features.feature[key.key], key.dtype, column[row].ravel())
        strings[row] = example.SerializeToString()
    names = ", ".join(key.key for key in keys[:SHOWN])
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return strings.reshape(shape), f"tf.Examples of {names}{more}, as '{op.name}' parses"


def add(feature: Any, dtype: tf.DType, values: np.ndarray) -> None:
    if dtype == tf.string:
        feature.bytes_list.value.extend(values.tolist())
    elif dtype.is_integer:
        feature.int64_list.value.extend(values.tolist())
    else:
        feature.float_list.value.extend(values.tolist())
