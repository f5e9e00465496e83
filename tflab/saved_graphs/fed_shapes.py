"""Fed shapes: the shape and the number of rows of what is fed, by the user's word or worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from tflab.errors import UsageError
from tflab.saved_graphs import shape_search
from tflab.saved_graphs.fetching import PLACEHOLDERS
from tflab.saved_graphs.flat import Flat
from tflab.saved_graphs.sparse_inputs import Sparse

MADE_UP_BYTES = 64 * 2**20  # at most, for the rows of one tensor
MOST_ROWS, LEAST_ROWS = 1024, 64
UNBOUND = 2**16  # rows where nothing that is fed has a batch dimension

Shape = tuple[int | None, ...]  # None in front is the batch


@dataclass(frozen=True)
class Asked:
    """What the user says of feeds, by the names of tensors."""

    files: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.files, *self.shapes]))


def label(tensor: tf.Tensor) -> str:
    """What a fed tensor is called: `x` of a placeholder, `dequeue:1` of any other node."""
    return tensor.op.name if tensor.op.type in PLACEHOLDERS else tensor.name


def shapes_of(
    laid_out: Flat,
    fed: Sequence[tf.Tensor],
    asked: Asked,
    given: Mapping[str, np.ndarray],
    sparse: Sequence[Sparse],
) -> tuple[dict[str, Shape], dict[str, str]]:
    """The shape to feed to each tensor, and of those that were found out, the node they fit. For
    the shape of a sparse input it is the shape that is in it."""
    shapes = {tensor.name: feed_shape(tensor, asked.shapes.get(tensor.name)) for tensor in fed}
    for name, shape in shapes.items():
        if name in given:
            whole = given[name].shape
            shapes[name] = (None, *whole[1:]) if shape[:1] == (None,) and whole else whole
    together = {name for one in sparse for name in one.names}
    chosen = {*asked.shapes, *given, *together}
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
    return shape_search.fit(laid_out, shapes, statics, dense_shapes)


def feed_shape(tensor: tf.Tensor, given: Sequence[int] | None) -> Shape:
    """The shape to feed: None in front is the batch; other unknown sizes are the user's, else 1."""
    if tensor.shape.rank is None:
        # A truth value without a shape is a switch such as `is_training`.
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
    given: Mapping[str, np.ndarray],
    sparse: bool,
) -> int:
    """How many rows of data there are: as many as the user's arrays have, else what memory has
    room for."""
    batched = [tensor for tensor in fed if shapes[tensor.name][:1] == (None,)]
    lengths = [len(given[t.name]) for t in batched if t.name in given and given[t.name].ndim]
    made = [tensor for tensor in batched if tensor.name not in given]
    if not lengths and not made and not sparse:
        return UNBOUND
    within = [MADE_UP_BYTES // max(1, row_bytes(t, shapes[t.name])) for t in made]
    return min(lengths or [min([MOST_ROWS, *(max(LEAST_ROWS, size) for size in within)])])


def row_bytes(tensor: tf.Tensor, shape: Sequence[int | None]) -> int:
    return int(np.prod([dim for dim in shape if dim is not None])) * max(1, tensor.dtype.size or 1)
