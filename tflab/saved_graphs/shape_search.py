"""Shape search: sizes that a graph leaves open where it is fed, found so that all of it fits.

TensorFlow's own shape functions are the judges: the graph is imported with the shapes that are to
be fed, and where a node refuses them, another size or rank is tried for what leads to that node.
What gets further is kept. Nothing runs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import tensorflow as tf
import tensorflow.compat.v1 as tf1

FedShape = tuple[int | None, ...]  # None in front is the batch
BATCH = 13  # in its place while shapes are tried: a size that hardly any graph has by itself
SIDES = (28, 32, 224, 299, 64, 96, 128, 160, 192, 256, 300, 320, 384, 416, 512)  # of images
LARGEST = 2**16  # a size that is tried
BUDGET_S = 10.0
NODE = re.compile(r"\{\{node (\S+?)\}\}")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


@dataclass(frozen=True)
class Refusal:
    node: str
    position: int  # of that node, in the order in which the graph was imported
    numbers: tuple[int, ...]  # that TensorFlow names: sizes that may be the right ones


def fit(
    graph: tf.Graph,
    needed: Collection[str],
    shapes: Mapping[tf.Tensor, FedShape],
    open_tensors: Collection[str],
) -> tuple[dict[str, FedShape], dict[str, str]]:
    """The shapes by tensor, with those of the open tensors changed where that gets further, and the
    node that each changed one was changed for."""
    found = {tensor.name: shape for tensor, shape in shapes.items()}
    changed_for: dict[str, str] = {}
    if not open_tensors:
        return found, changed_for
    trials = Trials(graph, needed, shapes)
    end = time.monotonic() + BUDGET_S
    refusal = trials.refusal(found)
    while refusal is not None:
        better = None
        for name, shape in alternatives(graph, refusal, found, open_tensors):
            if time.monotonic() > end:
                return found, changed_for
            tried = trials.refusal({**found, name: shape})
            if tried is None or tried.position > refusal.position:
                better = name, shape, tried
                break
        if better is None:
            return found, changed_for
        name, shape, tried = better
        found[name], changed_for[name], refusal = shape, refusal.node, tried
    return found, changed_for


class Trials:
    """The part of a graph that runs, ready to be imported with other shapes."""

    def __init__(
        self, graph: tf.Graph, needed: Collection[str], fed: Collection[tf.Tensor]
    ) -> None:
        self.position = {op.name: number for number, op in enumerate(graph.get_operations())}
        self.dtypes = {tensor.name: tensor.dtype for tensor in fed}
        cut = {t.op.name for t in fed if all(o.name in self.dtypes for o in t.op.outputs)}
        self.graph_def = graph.as_graph_def()
        nodes = [n for n in self.graph_def.node if n.name in needed and n.name not in cut]
        kept = {node.name for node in nodes}
        self.used: set[str] = set()
        for node in nodes:
            inputs = [n for n in node.input if n[0] != "^" or n[1:] in kept]
            del node.input[:]
            node.input.extend(inputs)
            self.used |= {name if ":" in name else f"{name}:0" for name in inputs if name[0] != "^"}
            for attribute in ("_class", "_output_shapes"):
                node.attr.pop(attribute, None)
        rest = [tf1.NodeDef.FromString(node.SerializeToString()) for node in nodes]
        del self.graph_def.node[:]
        self.graph_def.node.extend(rest)

    def refusal(self, shapes: Mapping[str, FedShape]) -> Refusal | None:
        """Which node refuses these shapes; None where none does."""
        with tf.Graph().as_default():
            with tf1.name_scope("tflab_feeds"):
                fed = {
                    name: tf1.placeholder(dtype, [BATCH if d is None else d for d in shapes[name]])
                    for name, dtype in self.dtypes.items()
                    if name in self.used
                }
            try:
                tf.import_graph_def(self.graph_def, input_map=fed, name="")
            except Exception as error:  # of many types, by what is wrong
                message = str(error)
                node = NODE.search(message)
                if node is None or node[1] not in self.position:
                    return None  # this is not about shapes: the run will tell
                said = message[: node.start()] + message[node.end() :].rpartition(" with input ")[2]
                numbers = {int(number) for number in NUMBER.findall(said)}
                numbers = {number for number in numbers if 1 <= number <= LARGEST} - {BATCH}
                position = self.position[node[1]]
                return Refusal(node[1], position, tuple(sorted(numbers)))
        return None


def alternatives(
    graph: tf.Graph,
    refusal: Refusal,
    shapes: Mapping[str, FedShape],
    open_tensors: Collection[str],
) -> Iterator[tuple[str, FedShape]]:
    """Other shapes for the open tensors that lead to the node that refused, the nearest first."""
    for tensor in leading_to(graph, refusal.node, shapes):
        if tensor.name not in open_tensors:
            continue
        for shape in other_shapes(tensor.shape, shapes[tensor.name], refusal.numbers):
            if shape != shapes[tensor.name]:
                yield tensor.name, shape


def leading_to(graph: tf.Graph, node: str, fed: Collection[str]) -> list[tf.Tensor]:
    """The fed tensors that a node takes something of, the nearest first."""
    tensors = list(graph.get_operation_by_name(node).inputs)
    seen, leading = set(), []
    for tensor in tensors:  # the list grows as it is walked
        if tensor.name in seen:
            continue
        seen.add(tensor.name)
        if tensor.name in fed:
            leading.append(tensor)
        else:
            tensors.extend(tensor.op.inputs)
    return leading


def other_shapes(
    static: tf.TensorShape, shape: FedShape, numbers: Sequence[int]
) -> Iterator[FedShape]:
    """Shapes like this one with other sizes, where the graph says none; then those of other ranks,
    where it says no rank."""
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
    known = static.as_list() if static.rank is not None else [None] * len(shape)
    free = [place for place, size in enumerate(known) if size is None]
    free = [place for place in free if shape[place] is not None]  # the batch is the user's
    if len(shape) == 4 and len(free) > 1:
        yield from images(shape, free, numbers)
    for place in free:
        for size in (*numbers, 1):
            yield (*shape[:place], size, *shape[place + 1 :])


def images(shape: FedShape, free: Sequence[int], numbers: Sequence[int]) -> Iterator[FedShape]:
    """Square images: with their channels first where only the last two sizes are open."""
    batch, first, _, last = shape
    for side in (*SIDES, *numbers):
        if 1 not in free:
            yield (batch, first, side, side)
        else:
            yield (batch, side, side, last)
    if 3 in free and 1 in free:
        yield from ((batch, side, side, size) for size in (*numbers, 3) for side in (1, *SIDES))
