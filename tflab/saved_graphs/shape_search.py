"""Shape search: sizes for open dimensions of fed tensors, such that the whole graph accepts them.

TensorFlow's own shape functions decide: the graph is imported with trial shapes. If a node rejects
them, another size or rank is tried for a fed tensor that leads to that node, and kept if the import
then gets further. Nothing runs. Functions are inlined (`flat`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.saved_graphs.flat import Flat

FedShape = tuple[int | None, ...]  # None as first dimension is the batch
BATCH = 13  # its size during trials, which hardly any graph contains
SIDES = (28, 32, 224, 299, 64, 96, 128, 160, 192, 256, 300, 320, 384, 416, 512)  # of images
LARGEST = 2**16  # size to try
BUDGET_S = 10.0
NODE = re.compile(r"\{\{node (\S+?)\}\}")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


@dataclass(frozen=True)
class Refusal:
    node: str
    position: int  # of that node in the order of the import
    numbers: tuple[int, ...]  # in TensorFlow's message: sizes that may be right


def fit_shapes(
    flat: Flat,
    shapes: Mapping[str, FedShape],
    statics: Mapping[str, tf.TensorShape],
    dense_shapes: Collection[str] = (),
) -> tuple[dict[str, FedShape], dict[str, str]]:
    """The shapes by tensor, with better ones for open tensors if they were found, and for each
    changed one the node for which it was changed.

    `statics` are the open tensors with their static shapes. A tensor in `dense_shapes` contains a
    shape itself; its entry is the shape of the sparse tensor.
    """
    fitted = dict(shapes)
    changed_for: dict[str, str] = {}
    if not statics:
        return fitted, changed_for
    trials = Trials(flat, dense_shapes)
    end = time.monotonic() + BUDGET_S
    refusal = trials.refusal(fitted)
    while refusal is not None:
        better = None
        for name, shape in alternatives(flat, refusal, fitted, statics):
            if time.monotonic() > end:
                return fitted, changed_for
            tried = trials.refusal({**fitted, name: shape})
            if tried is None or tried.position > refusal.position:
                better = name, shape, tried
                break
        if better is None:
            return fitted, changed_for
        name, shape, tried = better
        fitted[name], changed_for[name], refusal = shape, refusal.node, tried
    return fitted, changed_for


class Trials:
    """A flat graph that can be imported with other shapes."""

    def __init__(self, flat: Flat, dense_shapes: Collection[str]) -> None:
        self.position = {op.name: place for place, op in enumerate(flat.graph.get_operations())}
        self.fed = flat.fed
        self.dense_shapes = dense_shapes
        self.graph_def = tf1.GraphDef()
        self.graph_def.CopyFrom(flat.graph_def)
        self.nodes = {node.name: node for node in self.graph_def.node}

    def refusal(self, shapes: Mapping[str, FedShape]) -> Refusal | None:
        """The node that rejects these shapes; None if none does."""
        for name, shape in shapes.items():
            sizes = tuple(BATCH if size is None else size for size in shape)
            if name in self.dense_shapes:
                hold(self.nodes[self.fed[name]], sizes)
            else:
                proto = tf.TensorShape(sizes).as_proto()
                self.nodes[self.fed[name]].attr["shape"].shape.CopyFrom(proto)
        with tf.Graph().as_default():
            try:
                tf.import_graph_def(self.graph_def, name="")
            except Exception as error:  # TensorFlow raises many types
                message = str(error)
                node = NODE.search(message)
                if node is None or node[1] not in self.position:
                    return None  # not about shapes: the run will report it
                words = (
                    message[: node.start()] + message[node.end() :].rpartition(" with input ")[2]
                )
                numbers = {int(number) for number in NUMBER.findall(words)}
                numbers = {number for number in numbers if 1 <= number <= LARGEST} - {BATCH}
                position = self.position[node[1]]
                return Refusal(node[1], position, tuple(sorted(numbers)))
        return None


def hold(node: Any, sizes: Sequence[int]) -> None:
    """Make a node a constant, so that shape functions know its value."""
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].type = tf.int64.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(sizes, tf.int64))


def alternatives(
    flat: Flat,
    refusal: Refusal,
    shapes: Mapping[str, FedShape],
    statics: Mapping[str, tf.TensorShape],
) -> Iterator[tuple[str, FedShape]]:
    """Other shapes for the open tensors that lead to the rejecting node, the nearest first."""
    stands_for = {f"{placeholder}:0": name for name, placeholder in flat.fed.items()}
    for tensor in leading_to(flat.graph, refusal.node, stands_for):
        name = stands_for[tensor.name]
        if name not in statics:
            continue
        for shape in other_shapes(statics[name], shapes[name], refusal.numbers):
            if shape != shapes[name]:
                yield name, shape


def leading_to(graph: tf.Graph, node: str, fed: Collection[str]) -> list[tf.Tensor]:
    """The fed tensors that a node depends on, the nearest first."""
    tensors = list(graph.get_operation_by_name(node).inputs)
    visited, leading = set(), []
    for tensor in tensors:  # the list grows as it is walked
        if tensor.name in visited:
            continue
        visited.add(tensor.name)
        if tensor.name in fed:
            leading.append(tensor)
        else:
            tensors.extend(tensor.op.inputs)
    return leading


def other_shapes(
    static: tf.TensorShape, shape: FedShape, numbers: Sequence[int]
) -> Iterator[FedShape]:
    """This shape with other sizes for open dimensions; then shapes of other ranks, if the rank is
    open."""
    if static.rank is None:
        yield ()
    yield from other_sizes(static, shape, numbers)
    if static.rank is not None:
        return
    for size in (1, *numbers):
        yield (None, size)
        yield (None, 1, size)
    for size in (*numbers, 1, 3):
        for side in (1, *SIDES, *numbers):
            yield (None, side, side, size)
    yield (None,)
    yield (None, 1, 1, 1, 1)


def other_sizes(
    static: tf.TensorShape, shape: FedShape, numbers: Sequence[int]
) -> Iterator[FedShape]:
    dimensions = static.as_list() if static.rank is not None else [None] * len(shape)
    free = [place for place, size in enumerate(dimensions) if size is None]
    free = [place for place in free if shape[place] is not None]  # the user chooses the batch
    if len(shape) == 4 and len(free) > 1:
        yield from images(shape, free, numbers)
    for place in free:
        for size in (*numbers, 1):
            yield (*shape[:place], size, *shape[place + 1 :])


def images(shape: FedShape, free: Sequence[int], numbers: Sequence[int]) -> Iterator[FedShape]:
    """Square images; channels first if only the last two sizes are open."""
    batch, first, _, last = shape
    for side in (*SIDES, *numbers):
        if 1 not in free:
            yield (batch, first, side, side)
        else:
            yield (batch, side, side, last)
    if 3 in free and 1 in free:
        yield from ((batch, side, side, size) for size in (*numbers, 3) for side in (1, *SIDES))
