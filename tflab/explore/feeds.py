"""Feeds: the values that a program gives for its placeholders, and made-up ones for the others."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import tensorflow as tf

from tflab import datasets
from tflab.datasets import Column, Dataset
from tflab.errors import TflabError
from tflab.models import saved

ROWS = 1024  # of made-up data: formulas are checked at more rows than a batch has
LARGEST = 2**26  # bytes of made-up values for one placeholder
OPEN = 8  # the size of an unknown dimension other than the batch


def fed(
    graph: tf.Graph, given: Mapping[str, np.ndarray], batch_size: int
) -> tuple[dict[tf.Tensor, str], Dataset, list[tf.Tensor]]:
    """Return the column of each placeholder, the data, and the placeholders with made-up values.

    Raises TflabError for a placeholder without a shape that is not in `given`.
    """
    tensors = {name: graph.get_tensor_by_name(name) for name in given}
    holders = (op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder")
    free = [tensor for tensor in holders if tensor.name not in given]
    tensors |= {tensor.name: tensor for tensor in free}
    lengths = [len(value) for name, value in given.items() if in_rows(tensors[name])]
    batched = len({*lengths}) < 2  # otherwise each value is fed as a whole
    fixed = {tensor.shape[0] for tensor in tensors.values() if tensor.shape.rank}
    if lengths:
        rows = lengths[0]
    elif in_batches := list(filter(in_rows, free)):
        rows = max(batch_size, min(ROWS, LARGEST // max(map(row_bytes, in_batches))))
    else:  # the first dimension, if all have the same
        rows = (fixed.pop() or 1) if len(fixed) == 1 else 1
    values = {**given, **{tensor.name: invented(tensor, rows) for tensor in free}}
    columns: dict[str, Column] = {
        name: value if batched and in_rows(tensors[name]) else datasets.Whole(value, rows)
        for name, value in values.items()
    }
    feeds = {tensors[name]: name for name in columns}
    columns = columns or {"row": datasets.Whole(np.arange(rows), rows)}
    return feeds, Dataset("made-up values" if free else "the feeds", "train", columns), free


def in_rows(tensor: tf.Tensor) -> bool:
    """Return whether the first dimension is the batch."""
    return bool(tensor.shape.rank) and tensor.shape[0] is None


def row_bytes(tensor: tf.Tensor) -> int:
    """Return the bytes of one row of made-up values, at least 1."""
    return max(1, prod(size or OPEN for size in tensor.shape[1:]) * tensor.dtype.size)


def values_of(graph: tf.Graph, given: object) -> dict[str, np.ndarray]:
    """Return the value that the program gives for each tensor, in the dtype of the tensor. Raises
    TflabError for values that cannot be fed."""
    if not isinstance(given, Mapping):
        raise TflabError(
            f"`feeds` is {type(given).__name__}; write a dict such as "
            "`feeds = {x: [1.0, 2.0, 3.0]}`."
        )
    values = {}
    for key, value in given.items():
        name = key if isinstance(key, str) else getattr(key, "name", str(key))
        name = name if ":" in name else f"{name}:0"
        try:
            tensor = graph.get_tensor_by_name(name)
            array = np.asarray(value, dtype=tensor.dtype.as_numpy_dtype)
        except (KeyError, ValueError, TypeError) as error:
            raise TflabError(f"`feeds` has {key!r}, which cannot be fed: {error}.") from error
        if not tensor.shape.is_compatible_with(array.shape):
            raise TflabError(
                f"`feeds` gives '{name}' a value of shape {list(array.shape)}, but it takes "
                f"{tensor.shape}."
            )
        if in_rows(tensor) and not len(array):
            raise TflabError(f"`feeds` gives '{name}' no rows.")
        values[name] = array
    return values


def invented(tensor: tf.Tensor, rows: int) -> np.ndarray:
    """Return made-up values for a placeholder."""
    name = tensor.op.name
    if tensor.shape.rank is None:
        raise TflabError(
            f"The placeholder '{name}' has no shape, so no value can be made up for it. Give it a "
            f"shape, or a value: `feeds = {{{name}: ...}}`."
        )
    first, others = ([rows], tensor.shape[1:]) if in_rows(tensor) else ([], tensor.shape)
    return saved.seeded(
        name, tensor.dtype, [*first, *(OPEN if size is None else size for size in others)]
    )
