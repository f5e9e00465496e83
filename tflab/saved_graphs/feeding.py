"""Feeding: which tensors of a graph from a file are fed, and with which values: arrays of the user,
or made-up ones.

These are the tensors that the user names, then the inputs of the signature, then the placeholders
that the fetches still depend on. The user may name any tensor that TensorFlow can feed, such as the
output of a queue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.datasets import Column, Dataset, Whole
from tflab.errors import TflabError, UsageError
from tflab.records.graph import node_of
from tflab.records.options import Saved
from tflab.saved_graphs import arrays, fetching, flat, made_up, sparse_inputs
from tflab.saved_graphs.fetching import PLACEHOLDERS
from tflab.saved_graphs.flat import Flat
from tflab.saved_graphs.made_up import Shape
from tflab.saved_graphs.sparse_inputs import Sparse

NAMES = 5  # names that an error lists
HANDLES = (tf.resource, tf.variant)  # values that only a graph itself can make
MADE_UP_BYTES = 64 * 2**20  # limit for the rows of one tensor
MOST_ROWS, LEAST_ROWS = 1024, 64
UNBOUND = 2**16  # rows if no fed tensor has a batch dimension


@dataclass(frozen=True)
class FeedOptions:
    """What the user specifies about feeds, by tensor name."""

    files: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.files, *self.shapes]))


def label(tensor: tf.Tensor) -> str:
    """The name of a fed tensor for readers: `x` for a placeholder, `dequeue:1` for another node."""
    return tensor.op.name if tensor.op.type in PLACEHOLDERS else tensor.name


def feeds_of_user(graph: tf.Graph, signature: Any, options: Saved) -> FeedOptions:
    """The user's feeds and shapes, by tensor. Raises UsageError for a name that cannot be fed."""
    keys = dict(signature.inputs) if signature is not None else {}
    return FeedOptions(
        {tensor_of(graph, keys, name): file for name, file in options.feeds},
        {tensor_of(graph, keys, name): shape for name, shape in options.shapes},
    )


def tensor_of(graph: tf.Graph, keys: Mapping[str, Any], name: str) -> str:
    """The tensor of a name that the user gave, which may be an input of the signature."""
    ops = {op.name for op in graph.get_operations()}
    if name in keys and name not in ops and keys[name].name:
        name = keys[name].name
    if node_of(name) not in ops:
        placeholders = [op.name for op in graph.get_operations() if op.type in PLACEHOLDERS]
        have = ", ".join(sorted(placeholders)[:NAMES]) or "none"
        near = fetching.near_names(graph, name)
        raise UsageError(
            f"There is no tensor '{name}' to feed; the placeholders are: {have}.{near}"
        )
    tensor = fetching.tensor(graph, name)
    if not graph.is_feedable(tensor):
        raise UsageError(
            f"'{name}' cannot be fed, because TensorFlow does not allow it. Feed a tensor that is "
            "computed from it."
        )
    return tensor.name


def inputs_of(graph: tf.Graph, signature: Any) -> tuple[list[tf.Tensor], list[str]]:
    """The tensors of a signature's inputs, and a sentence for each that cannot be fed."""
    tensors, notes = [], []
    inputs = sorted(signature.inputs.items()) if signature is not None else []
    for key, info in inputs:
        for name in fetching.tensors_of(info):
            try:
                tensor = graph.get_tensor_by_name(name)
            except (KeyError, ValueError):
                notes.append(
                    f"The input '{key}' of its signature is '{name}', which is not in the graph."
                )
                continue
            if graph.is_feedable(tensor):
                tensors.append(tensor)
            else:
                notes.append(f"The input '{key}' of its signature, '{name}', cannot be fed.")
    return tensors, notes


def check_used(
    options: FeedOptions, graph: tf.Graph, needed: Collection[str], runs: Sequence[str]
) -> None:
    """Raise UsageError if the fetches do not depend on a tensor that the user feeds."""
    for name in options.tensors:
        if graph.get_tensor_by_name(name).op.name not in needed:
            raise UsageError(
                f"'{name}' is fed in vain: the fetches ({', '.join(runs[:NAMES])}) do not depend "
                "on it. Omit it, or choose the fetches with --fetch."
            )


def refuse_handles(handles: Sequence[tf.Tensor]) -> None:
    """Raise TflabError if a tensor that must be fed cannot be fed."""
    for tensor in handles:
        raise TflabError(
            f"'{label(tensor)}' must be fed a {tensor.dtype.name}, which is not an array: it can "
            "be neither made up nor read from a file."
        )


def refuse_empty(options: FeedOptions, arrays_by_tensor: Mapping[str, np.ndarray]) -> None:
    """Raise UsageError if the user's arrays contain no rows."""
    for name, array in arrays_by_tensor.items():
        if array.ndim and not len(array):
            raise UsageError(
                f"'{options.files[name]}' has no rows to feed to '{name}'. Give an array with rows."
            )


def columns_of(
    graph: tf.Graph, fed: Sequence[tf.Tensor], needed: Collection[str], options: FeedOptions
) -> tuple[dict[str, Column], list[str]]:
    """A column for each fed tensor, and a phrase about each column that was made up."""
    arrays_by_tensor = {name: arrays.load(name, file) for name, file in options.files.items()}
    for tensor in fed:
        arrays.check_shape(tensor, options.files, arrays_by_tensor)
    laid_out = flat.flatten(graph, needed, fed)
    sparse = sparse_inputs.find(laid_out, fed, options.tensors)
    shapes, fitted = shapes_of(laid_out, fed, options, arrays_by_tensor, sparse)
    of_sparse = {name: one for one in sparse for name in one.names}
    dense = {one.shape: shapes[one.shape] for one in sparse}
    for one in sparse:
        shapes |= one.fed_shapes(dense[one.shape])
    rows = rows_of(fed, shapes, arrays_by_tensor, bool(sparse))
    if not rows:
        refuse_empty(options, arrays_by_tensor)
    whole_columns: dict[str, Column] = {}
    for one in sparse:
        whole_columns |= one.columns(dense[one.shape], rows)
    columns: dict[str, Column] = {}
    phrases = []
    for tensor in fed:
        name, shape = tensor.name, shapes[tensor.name]
        batched = shape[:1] == (None,) and (
            name not in arrays_by_tensor or arrays_by_tensor[name].ndim
        )
        if name in arrays_by_tensor:
            values = arrays_by_tensor[name][:rows] if batched else arrays_by_tensor[name]
            columns[label(tensor)] = values if batched else Whole(values, rows)
            continue
        reasons = [f"to fit '{fitted[name]}'"] if name in fitted else []
        if name in of_sparse:
            reasons.append(f"a sparse {sizes_text(dense[of_sparse[name].shape])}")
        if name in whole_columns:
            columns[label(tensor)] = whole_columns[name]
        else:
            full_shape = tuple(rows if dim is None else dim for dim in shape)
            values, why = made_up.fitting_values(laid_out.tensor(name), full_shape, laid_out.nodes)
            reasons += [why] if why else []
            columns[label(tensor)] = values if batched else Whole(values, rows)
        phrases.append(phrase(tensor, shape, reasons))
    return columns, phrases


def shapes_of(
    laid_out: Flat,
    fed: Sequence[tf.Tensor],
    options: FeedOptions,
    arrays_by_tensor: Mapping[str, np.ndarray],
    sparse: Sequence[Sparse],
) -> tuple[dict[str, Shape], dict[str, str]]:
    """The shape to feed to each tensor, and for shapes that were found by trying, the node that
    they fit. The shape of a sparse input is the one that the sparse tensor has."""
    shapes = {tensor.name: feed_shape(tensor, options.shapes.get(tensor.name)) for tensor in fed}
    for name, shape in shapes.items():
        if name in arrays_by_tensor:
            given_shape = arrays_by_tensor[name].shape
            shapes[name] = (
                (None, *given_shape[1:]) if shape[:1] == (None,) and given_shape else given_shape
            )
    together = {name for one in sparse for name in one.names}
    chosen = {*options.shapes, *arrays_by_tensor, *together}
    statics = {
        tensor.name: tensor.shape
        for tensor in fed
        if tensor.name not in chosen
        and (tensor.shape.rank is None or None in tensor.shape.as_list()[1:])
    }
    dense_shapes = [one.shape for one in sparse]
    for one in sparse:
        shapes |= one.fed_shapes(one.known)
        shapes[one.shape] = (None, *(size or 1 for size in one.known[1:]))
        if None in one.known[1:]:
            statics[one.shape] = tf.TensorShape(one.known)
    return made_up.fit_shapes(laid_out, shapes, statics, dense_shapes)


def feed_shape(tensor: tf.Tensor, given: Sequence[int] | None) -> Shape:
    """The shape to feed. None as first dimension is the batch; other unknown dimensions are those
    that the user gave, otherwise 1."""
    if tensor.shape.rank is None:
        # A boolean without a shape is a switch such as `is_training`.
        return tuple(given) if given is not None else () if tensor.dtype.is_bool else (None,)
    dims = tensor.shape.as_list()
    if given is not None:
        if not tensor.shape.is_compatible_with(given):
            raise UsageError(f"'{label(tensor)}' has the shape {tensor.shape}, not {list(given)}.")
        return tuple(None if i == 0 and dims[0] is None else dim for i, dim in enumerate(given))
    return tuple(
        dim if dim is not None else None if position == 0 else 1
        for position, dim in enumerate(dims)
    )


def rows_of(
    fed: Sequence[tf.Tensor],
    shapes: Mapping[str, Shape],
    arrays_by_tensor: Mapping[str, np.ndarray],
    sparse: bool,
) -> int:
    """The number of rows of data: that of the user's arrays, otherwise as many as fit in memory."""
    batched = [tensor for tensor in fed if shapes[tensor.name][:1] == (None,)]
    lengths = [
        len(arrays_by_tensor[t.name])
        for t in batched
        if t.name in arrays_by_tensor and arrays_by_tensor[t.name].ndim
    ]
    generated = [tensor for tensor in batched if tensor.name not in arrays_by_tensor]
    if not lengths and not generated and not sparse:
        return UNBOUND
    within = [MADE_UP_BYTES // max(1, row_bytes(t, shapes[t.name])) for t in generated]
    return min(lengths or [min([MOST_ROWS, *(max(LEAST_ROWS, size) for size in within)])])


def row_bytes(tensor: tf.Tensor, shape: Sequence[int | None]) -> int:
    return int(np.prod([dim for dim in shape if dim is not None])) * max(1, tensor.dtype.size or 1)


def fixed_batch(columns: Mapping[str, Column]) -> tuple[str, int] | None:
    """The largest placeholder and its first dimension, if none has an open batch. None if one has,
    or if no fed tensor has rows."""
    unbatched = {name: array.value for name, array in columns.items() if type(array) is Whole}
    name = max(unbatched, key=lambda name: np.size(unbatched[name]), default=None)
    if (
        name is None
        or len(unbatched) < len(columns)
        or not unbatched[name].size
        or not unbatched[name].ndim
    ):
        return None
    return name, len(unbatched[name])


def phrase(tensor: tf.Tensor, shape: Shape, reasons: Sequence[str]) -> str:
    """`x float32 [batch, 784] (to fit 'MatMul')`"""
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"{label(tensor)} {tensor.dtype.base_dtype.name} {sizes_text(shape)}{why}"


def sizes_text(shape: Shape) -> str:
    return f"[{', '.join('batch' if dim is None else str(dim) for dim in shape)}]"


def dataset(split: str, columns: Mapping[str, Column], made_up: bool) -> Dataset:
    name = "made-up values" if made_up else "the arrays that were given"
    all_columns = columns or {"row": np.arange(UNBOUND)}
    return Dataset(name, split, all_columns, "the model's own data" if made_up else None)
