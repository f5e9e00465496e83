"""Sparse inputs: the three tensors of a fed SparseTensor, which must be consistent.

Indices lie within the shape, sorted and unique, and there is one for each value. Made-up ones have
one element in each row, so that there are as many rows as in other inputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.datasets import Column, CountedWhole, Renumbered
from tflab.runtime import private
from tflab.saved_graphs.flat import Flat

INDICES = re.compile(r"(.*/)?indices(_\d+)?:0")  # as tf.sparse_placeholder names them
SHAPES = ("dense_shape", "shape", "output_shape")


@dataclass(frozen=True)
class Sparse:
    """The names of the three fed tensors."""

    indices: str
    values: str
    shape: str
    known: tuple[int | None, ...]  # the static shape of the sparse tensor

    @property
    def names(self) -> tuple[str, str, str]:
        return self.indices, self.values, self.shape

    def fed_shapes(self, shape: Sequence[int | None]) -> dict[str, tuple[int | None, ...]]:
        """The shapes of the fed tensors for this shape of the sparse tensor."""
        return {self.indices: (None, len(shape)), self.values: (None,), self.shape: (len(shape),)}

    def columns(self, shape: Sequence[int | None], rows: int) -> Mapping[str, Column]:
        """The indices and the shape for this number of rows."""
        places = np.arange(rows)
        indices = [places, *(places % (size or 1) for size in shape[1:])]
        dense_shape = np.array([rows, *(size or 1 for size in shape[1:])], np.int64)
        return {
            self.indices: Renumbered(np.stack(indices, axis=1).astype(np.int64), rows),
            self.shape: CountedWhole(dense_shape, rows),
        }


def open_defaults(graph: tf.Graph, needed: Collection[str]) -> Iterator[tf.Tensor]:
    """Placeholders whose default is not a shape but shows which sizes are open, with -1 for each.
    `tf.sparse_placeholder` makes them."""
    for op in graph.get_operations():
        if op.type == "PlaceholderWithDefault" and op.name in needed and sizes_in(op):
            yield op.outputs[0]


def sizes_in(op: tf.Operation) -> list[int] | None:
    default = tf.get_static_value(op.inputs[0]) if op.outputs[0].dtype == tf.int64 else None
    if default is None or np.ndim(default) != 1 or np.min(default, initial=0) >= 0:
        return None
    return [int(size) for size in default]


def find(flat: Flat, fed: Sequence[tf.Tensor], user_names: Collection[str]) -> list[Sparse]:
    """The sparse inputs among the fed tensors, without those that the user feeds in part."""
    by_name = {tensor.name: tensor for tensor in fed if tensor.name not in user_names}
    stands_for = {placeholder: name for name, placeholder in flat.fed.items()}
    sparse: dict[str, Sparse] = {}
    for tensor in by_name.values():
        if tensor.dtype != tf.int64 or tensor.shape.rank not in (2, None):
            continue
        numbered = [
            names
            for names in by_number(tensor.name)
            if have_sparse_shapes(by_name, tensor.name, *names)
        ]
        together = by_op(flat.tensor(tensor.name), stands_for)
        for values, shape in (*together, *by_place(tensor.name), *numbered):
            names_used = {name for one in sparse.values() for name in one.names}
            if {values, shape} <= by_name.keys() and not {tensor.name, values, shape} & names_used:
                shape_known = shape_of(tensor, by_name[shape])
                sparse[tensor.name] = Sparse(tensor.name, values, shape, shape_known)
    return list(sparse.values())


def by_op(indices: tf.Tensor, stands_for: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The values and shape that an op takes together with these indices."""
    for op in indices.consumers():
        names = [argument.name for argument in private.op_def(op.type).input_arg]
        if len(names) != len(op.inputs):
            continue  # an argument consists of several tensors
        inputs = dict(zip(names, op.inputs, strict=True))
        place = next(name for name in names if inputs[name] is indices)
        prefix, separator, _ = place.rpartition("indices")
        values = inputs.get(f"{prefix}values")
        shape = next((inputs[n] for n in names if n in SHAPES or n == f"{prefix}shape"), None)
        if separator and values is not None and shape is not None:
            yield stands_for.get(values.op.name, ""), stands_for.get(shape.op.name, "")


def by_place(indices: str) -> Iterator[tuple[str, str]]:
    """The corresponding names for `x/indices:0`."""
    if INDICES.fullmatch(indices):
        front, _, end = indices.rpartition("indices")
        yield f"{front}values{end}", f"{front}shape{end}"


def by_number(indices: str) -> Iterator[tuple[str, str]]:
    """The names that follow `x:0` in functions of TensorFlow 2, which have three tensors for an
    argument `x`."""
    front, _, end = indices.rpartition(":")
    yield f"{front}_1:{end}", f"{front}_2:{end}"


def have_sparse_shapes(by_name: Mapping[str, tf.Tensor], *names: str) -> bool:
    """Whether tensors of these names have the shapes of indices, values and a sparse shape."""
    if not by_name.keys() >= set(names):
        return False
    indices, values, shape = (by_name[name] for name in names)
    rank = indices.shape[1] if indices.shape.rank == 2 else None
    known = rank is not None and values.shape.rank == 1 and shape.shape.rank == 1
    return bool(known and shape.dtype == tf.int64 and shape.shape[0] == rank)


def shape_of(indices: tf.Tensor, shape: tf.Tensor) -> tuple[int | None, ...]:
    """The static shape of the sparse tensor; two dimensions if the rank is unknown."""
    op: Any = shape.op
    default = sizes_in(op) if op.type == "PlaceholderWithDefault" else None
    if default:
        return tuple(None if size < 0 else size for size in default)
    ranks = [indices.shape[1] if indices.shape.rank == 2 else None]
    ranks += [shape.shape[0] if shape.shape.rank == 1 else None, 2]
    return (None,) * next(int(rank) for rank in ranks if rank)
