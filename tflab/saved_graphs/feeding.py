"""Feeding: the values for the placeholders of a graph from a file: the user's arrays or made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.datasets import Column, Dataset, Whole
from tflab.errors import UsageError
from tflab.records import Saved, node_of
from tflab.saved_graphs import arrays

SEED = 1
MADE_UP_BYTES = 64 * 2**20  # at most, for the rows of one placeholder
MOST_ROWS, LEAST_ROWS = 1024, 64
UNBOUND = 2**16  # rows where no placeholder has a batch dimension
NAMES = 5  # that an error lists


def columns_of(
    placeholders: Sequence[tf.Tensor], options: Saved
) -> tuple[dict[str, Column], list[str]]:
    """A column for each placeholder, and a phrase for each column that was made up."""
    names = {placeholder.op.name for placeholder in placeholders}
    for name, _ in (*options.feeds, *options.shapes):
        if node_of(name) not in names:
            have = ", ".join(sorted(names)[:NAMES]) or "none"
            raise UsageError(f"There is no placeholder '{name}' to feed; there is: {have}.")
    given = {node_of(name): arrays.load(name, file) for name, file in options.feeds}
    files = {node_of(name): file for name, file in options.feeds}
    for placeholder in placeholders:
        check_shape(placeholder, files, given)
    shapes = {node_of(name): shape for name, shape in options.shapes}
    feed_shapes = {
        placeholder.op.name: feed_shape(placeholder, shapes.get(placeholder.op.name))
        for placeholder in placeholders
    }
    batched = {
        name
        for name, shape in feed_shapes.items()
        if shape[:1] == (None,) and (name not in given or given[name].ndim)
    }
    lengths = [len(given[name]) for name in batched if name in given]
    rows_within_limit = [
        MADE_UP_BYTES // max(1, row_bytes(placeholder, feed_shapes[placeholder.op.name]))
        for placeholder in placeholders
        if placeholder.op.name in batched - given.keys()
    ]
    rows = min(
        lengths or [min([MOST_ROWS, *(max(LEAST_ROWS, size) for size in rows_within_limit)])]
    )
    rows = rows if batched else UNBOUND
    columns: dict[str, Column] = {}
    made_up = []
    for placeholder in placeholders:
        name, shape = placeholder.op.name, feed_shapes[placeholder.op.name]
        if name in given:
            columns[name] = given[name][:rows] if name in batched else Whole(given[name], rows)
            continue
        values = made_up_values(placeholder.dtype, (rows, *shape[1:]) if name in batched else shape)
        columns[name] = values if name in batched else Whole(values, rows)
        shown = ", ".join("batch" if dim is None else str(dim) for dim in shape)
        made_up.append(f"{name} {placeholder.dtype.base_dtype.name} [{shown}]")
    return columns, made_up


def check_shape(
    placeholder: tf.Tensor, files: Mapping[str, str], given: Mapping[str, np.ndarray]
) -> None:
    """Raise UsageError where the array for a placeholder does not have a shape that it takes."""
    name = placeholder.op.name
    if name in given and not placeholder.shape.is_compatible_with(given[name].shape):
        takes = ", ".join("any" if dim is None else str(dim) for dim in placeholder.shape.as_list())
        raise UsageError(
            f"'{files[name]}' has the shape {list(given[name].shape)}, and '{name}' takes "
            f"[{takes}]; feed it an array of that shape."
        )


def feed_shape(placeholder: tf.Tensor, given: Sequence[int] | None) -> tuple[int | None, ...]:
    """The shape to feed: None in front is the batch; other unknown sizes are the user's, else 1."""
    if placeholder.shape.rank is None:
        return tuple(given) if given is not None else (None,)
    if given is not None:
        if not placeholder.shape.is_compatible_with(given):
            raise UsageError(
                f"'{placeholder.op.name}' has the shape {placeholder.shape}, not {list(given)}."
            )
        dims = placeholder.shape.as_list()
        return tuple(None if i == 0 and dims[0] is None else dim for i, dim in enumerate(given))
    return tuple(
        dim if dim is not None else None if position == 0 else 1
        for position, dim in enumerate(placeholder.shape.as_list())
    )


def row_bytes(placeholder: tf.Tensor, shape: Sequence[int | None]) -> int:
    return int(np.prod([dim for dim in shape if dim is not None])) * max(
        1, placeholder.dtype.size or 1
    )


def made_up_values(dtype: tf.DType, shape: Sequence[Any]) -> np.ndarray:
    """Values of a dtype and shape: normal numbers, zeros and ones, or empty strings."""
    rng = np.random.default_rng(SEED)
    plain = dtype.base_dtype
    if plain == tf.string:
        return np.full(shape, b"", object)
    if plain.is_floating or plain.is_complex:
        return rng.standard_normal(shape, np.float32).astype(plain.as_numpy_dtype)
    # Whole numbers are indices or labels: 0 and 1 are valid for most.
    return rng.integers(0, 2, shape).astype(plain.as_numpy_dtype)


def dataset(split: str, columns: Mapping[str, Column], made_up: bool) -> Dataset:
    name = "made-up values" if made_up else "the arrays that were given"
    whole = columns or {"row": np.arange(UNBOUND)}
    return Dataset(name, split, whole, "the model's own data" if made_up else None)
