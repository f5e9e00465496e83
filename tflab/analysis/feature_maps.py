"""Feature maps: the tensors of a step that can be drawn as images.

They are found by structure and shape: tensors that depend on a fed image, have its batch size and
four dimensions, the last of which counts channels; and the variables that convolutions take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflab.analysis import values
from tflab.analysis.gradient_graph import PASSES_ON, VARIABLES, gradient_name
from tflab.records import graph
from tflab.records.graph import Node, node_of
from tflab.records.values import IMAGE, KERNEL, LAYER, FeatureMap, Maps, Probabilities

CHANNELS = 16  # channels of a map that are kept
INPUTS = 8  # most input channels of a kernel that is kept
SIDE = 256  # elements; higher or wider maps are omitted
CLASSES = 20  # most probabilities
LAYERS = 12  # if there are more layers, the last of each shape are kept
KERNELS = 4  # if there are more kernels, the first ones are kept
CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
ENTROPIES = ("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class MapPlan:
    """The tensors to keep, by their names in a GraphDef, if the step has them."""

    images: tuple[str, ...]
    layers: tuple[str, ...]
    kernels: tuple[str, ...]
    probabilities: tuple[str, ...]
    scores: tuple[str, ...]  # whose softmax tflab computes itself
    # name -> tensors that may be the gradient with respect to it
    gradients: Mapping[str, tuple[str, ...]]
    order: Mapping[str, int]  # of the user's nodes

    def rows(self) -> set[str]:
        """The tensors whose first row of the batch is kept."""
        names = (*self.layers, *self.probabilities, *self.scores)
        return {*names, *(tensor for name in names for tensor in self.gradients.get(name, ()))}

    def whole(self) -> set[str]:
        """The gradients of kernels, which are those of all rows."""
        return {tensor for name in self.kernels for tensor in self.gradients.get(name, ())}


def plan(
    nodes: Sequence[Node], backward: Iterable[str], gradients: Mapping[str, str], fed: Arrays
) -> MapPlan:
    """The tensors of a graph that can be drawn. `gradients` says which gradient a node computes:
    `dL/dy`."""
    images = tuple(node_of(tensor) for tensor, array in fed.items() if np.ndim(array) == 4)
    known = {node.name: node for node in nodes}
    added = set(backward)
    reached = [
        known[name]
        for name in dependents(images, nodes)
        if name not in added and name not in images
    ]
    layers = [node.name for node in reached if len(node.outputs) >= 1 and rank(node) in (4, None)]
    scores = [node.inputs[0] for node in reached if node.op in ENTROPIES]
    by_name: dict[str, list[str]] = {}
    for name, gradient in gradients.items():
        if name in known and has_one_gradient(known[name]):
            by_name.setdefault(gradient, []).append(name)
    kernels = tuple(dict.fromkeys(kernels_of(nodes, known)))
    softmax = tuple(node.name for node in reached if node.op == "Softmax")
    names = (*layers, *kernels, *scores, *softmax)
    return MapPlan(
        images=images,
        layers=tuple(layers),
        kernels=kernels,
        probabilities=softmax,
        scores=tuple(dict.fromkeys(scores)),
        gradients={name: tuple(by_name.get(gradient_name(name), ())) for name in names},
        order={node.name: number for number, node in enumerate(nodes)},
    )


def dependents(starts: Iterable[str], nodes: Sequence[Node]) -> list[str]:
    """All nodes that depend on `starts`, in the order of the graph."""
    reached = graph.with_dependents(nodes, starts)
    return [node.name for node in nodes if node.name in reached]


def rank(node: Node) -> int | None:
    shape = node.outputs[0].shape
    return None if shape is None else len(shape)


def has_one_gradient(node: Node) -> bool:
    """Whether the first output of a node is the gradient that it leads to, and the only one."""
    return len(node.outputs) == 1 or node.op.startswith("FusedBatchNormGrad")


def kernels_of(nodes: Iterable[Node], by_name: Mapping[str, Node]) -> Iterable[str]:
    """The variables that convolutions take as their second input."""
    for node in nodes:
        if node.op in CONVOLUTIONS:
            kernel = by_name.get(node_of(node.inputs[1]))
            while kernel is not None and kernel.op in PASSES_ON and kernel.inputs:
                kernel = by_name.get(node_of(kernel.inputs[0]))
            if kernel is not None and kernel.op in VARIABLES:
                yield kernel.name


def cut(array: np.ndarray, whole: bool) -> np.ndarray:
    """A copy of the part of an array that is drawn: its first row, or the first channels of a
    kernel."""
    part = array if whole else array[0]
    if whole and part.ndim == 4:
        part = part[:, :, :INPUTS]
    return values.computable(part[..., :CHANNELS] if part.ndim > 2 else part).astype(np.float32)


def is_map(shape: Sequence[int | None], batch: int) -> bool:
    return len(shape) == 4 and shape[0] == batch and all(shape[1:])


def maps(
    plan: MapPlan,
    arrays: Arrays,
    shapes: Mapping[str, Sequence[int]],
    fed: Arrays,
    before: Arrays,
) -> Maps | None:
    """The planned maps of a step: `arrays` are cut, `shapes` has the full shapes, and `before` has
    the variables before the step. None if no image was fed."""
    images = {node_of(tensor): array for tensor, array in fed.items() if np.ndim(array) == 4}
    if not images:
        return None
    batch = len(next(iter(images.values())))
    inputs = [
        FeatureMap(name, IMAGE, array.shape[1:], cut(array, False), None)
        for name, array in images.items()
        if len(array) and max(array.shape[1:3]) <= SIDE
    ]
    drawable = [name for name in plan.layers if name in arrays and is_map(shapes[name], batch)]
    small = [name for name in drawable if max(shapes[name][1:3]) <= SIDE]
    layers = small if len(small) <= LAYERS else last_of_each_shape(small, shapes)[:LAYERS]
    kernels = [name for name in plan.kernels if np.ndim(before.get(name)) == 4]
    shown = kernels if len(kernels) <= KERNELS else kernels[:1]
    made = [
        FeatureMap(
            name, LAYER, tuple(shapes[name][1:]), arrays[name], gradient(plan, arrays, shapes, name)
        )
        for name in layers
    ]
    made += [
        FeatureMap(
            name,
            KERNEL,
            before[name].shape,
            cut(before[name], True),
            gradient(plan, arrays, {**shapes, name: before[name].shape}, name),
        )
        for name in shown
    ]
    made.sort(key=lambda item: plan.order[item.name])
    return Maps(
        maps=(*inputs, *made),
        probabilities=probabilities(plan, arrays, shapes, fed),
        left_out=len(drawable) - len(layers) + len(kernels) - len(shown),
    )


def last_of_each_shape(names: Sequence[str], shapes: Mapping[str, Sequence[int]]) -> list[str]:
    return list({tuple(shapes[name]): name for name in names}.values())


def gradient(
    plan: MapPlan, arrays: Arrays, shapes: Mapping[str, Sequence[int]], name: str
) -> np.ndarray | None:
    """The gradient of the loss with respect to a tensor, if the step has computed it."""
    for tensor in plan.gradients.get(name, ()):
        if tensor in arrays and tuple(shapes[tensor]) == tuple(shapes[name]):
            return arrays[tensor]
    return None


def probabilities(
    plan: MapPlan, arrays: Arrays, shapes: Mapping[str, Sequence[int]], fed: Arrays
) -> Probabilities | None:
    """The probabilities that the step computed, or otherwise the softmax of its scores."""
    labels = [array for array in map(np.asarray, fed.values()) if is_label(array)]
    for name in (*plan.probabilities, *plan.scores):
        if name not in arrays or len(shapes[name]) != 2 or shapes[name][1] > CLASSES:
            continue
        computed = name in plan.probabilities
        array = arrays[name] if computed else softmax(arrays[name])
        label = int(labels[0][0]) if len(labels) == 1 else None
        by = gradient(plan, arrays, shapes, name)
        inside = label is not None and 0 <= label < len(array)
        return Probabilities(name, computed, array, by, label if inside else None)
    return None


def is_label(array: np.ndarray) -> bool:
    """Whether a fed array has one class for each row."""
    return array.ndim == 1 and array.dtype.kind in "iu" and array.size > 0


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores.astype(np.float64) - np.max(scores))
    return powers / powers.sum()
