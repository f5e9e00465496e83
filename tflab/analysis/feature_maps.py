"""Feature maps: the tensors of a step that can be drawn as images.

They are found by structure and shape: tensors that depend on a fed image, have its batch size and
four dimensions, the last of which counts channels; and the variables that convolutions take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from tflab.analysis import values
from tflab.analysis.expressions import softmax
from tflab.analysis.gradient_graph import PASSES_ON, gradient_name
from tflab.records import graph
from tflab.records.graph import VARIABLES, Node, node_of
from tflab.records.values import IMAGE, KERNEL, LAYER, FeatureMap, Maps, Probabilities

CHANNELS = 16  # channels of a map that are kept
INPUTS = 8  # most input channels of a kernel that is kept
SIDE = 256  # elements; higher or wider maps are omitted
CLASSES = 20  # most probabilities
LAYERS = 12  # if there are more layers, the last of each shape are kept
KERNELS = 4  # if there are more kernels, the first one is kept
CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative")
ENTROPIES = ("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")

Arrays = Mapping[str, np.ndarray]
ValueOf = Callable[[str], np.ndarray | None]  # of a tensor; None if the step has none


def maps(
    nodes: Sequence[Node],
    backward: Iterable[str],
    gradients: Mapping[str, str],
    fed: Arrays,
    before: Arrays,
    value_of: ValueOf,
) -> Maps | None:
    """Return what can be drawn of a step; None if no image was fed.

    `gradients` says which gradient a node computes (`dL/dy`), and `before` has the variables before
    the step.
    """
    images = {node_of(tensor): array for tensor, array in fed.items() if np.ndim(array) == 4}
    if not images:
        return None
    batch = len(next(iter(images.values())))
    computed = graph.with_dependents(nodes, images) - {*images, *backward}
    reached = [node for node in nodes if node.name in computed]
    layers = {
        node.name: array
        for node in reached
        if node.outputs and (node.outputs[0].shape is None or len(node.outputs[0].shape) == 4)
        if (array := value_of(node.name)) is not None
        if array.ndim == 4 and len(array) == batch and array.size
    }
    shown = {name: array for name, array in layers.items() if max(array.shape[1:3]) <= SIDE}
    if len(shown) > LAYERS:
        last = list({array.shape: name for name, array in shown.items()}.values())
        shown = {name: shown[name] for name in last[:LAYERS]}
    kernels = {
        name: before[name]
        for name in kernels_of(nodes)
        if name in before and before[name].ndim == 4
    }
    first = dict(list(kernels.items())[: len(kernels) if len(kernels) <= KERNELS else 1])
    gradient_of = reader_of_gradients(nodes, gradients, value_of)

    def drawn(name: str, kind: str, array: np.ndarray) -> FeatureMap:
        part, shape = (cut, array.shape) if kind == KERNEL else (first_row, array.shape[1:])
        gradient = None if kind == IMAGE else gradient_of(name, array.shape)
        return FeatureMap(
            name, kind, shape, part(array), None if gradient is None else part(gradient)
        )

    fitting = (n for n, array in images.items() if len(array) and max(array.shape[1:3]) <= SIDE)
    kinds = dict.fromkeys(shown, LAYER) | dict.fromkeys(first, KERNEL)
    arrays = shown | first
    return Maps(
        maps=(
            *(drawn(name, IMAGE, images[name]) for name in fitting),
            *(drawn(n.name, kinds[n.name], arrays[n.name]) for n in nodes if n.name in kinds),
        ),
        probabilities=probabilities(reached, fed, value_of, gradient_of),
        left_out=len(layers) - len(shown) + len(kernels) - len(first),
    )


def reader_of_gradients(
    nodes: Iterable[Node], gradients: Mapping[str, str], value_of: ValueOf
) -> Callable[[str, Sequence[int]], np.ndarray | None]:
    """Return a function that reads the gradient with respect to a tensor of some shape."""
    by_target: dict[str, list[str]] = {}
    for node in nodes:
        # The first output of these nodes is the gradient, and the only one.
        if len(node.outputs) == 1 or node.op.startswith("FusedBatchNormGrad"):
            by_target.setdefault(gradients.get(node.name, ""), []).append(node.name)

    def gradient_of(name: str, shape: Sequence[int]) -> np.ndarray | None:
        arrays = map(value_of, by_target.get(gradient_name(name), ()))
        return next((a for a in arrays if a is not None and a.shape == tuple(shape)), None)

    return gradient_of


def kernels_of(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the variables that convolutions take as their second input."""
    by_name = {node.name: node for node in nodes}
    for node in by_name.values():
        if node.op in CONVOLUTIONS:
            kernel = by_name.get(node_of(node.inputs[1]))
            while kernel is not None and kernel.op in PASSES_ON and kernel.inputs:
                kernel = by_name.get(node_of(kernel.inputs[0]))
            if kernel is not None and kernel.op in VARIABLES:
                yield kernel.name


def first_row(array: np.ndarray) -> np.ndarray:
    """Copy the first channels, or all classes, of the first row of a batch."""
    part = values.computable(array[0])
    return (part[..., :CHANNELS] if part.ndim > 2 else part).astype(np.float32)


def cut(kernel: np.ndarray) -> np.ndarray:
    """Copy the first channels of a kernel."""
    return values.computable(kernel[:, :, :INPUTS, :CHANNELS]).astype(np.float32)


def probabilities(
    reached: Sequence[Node],
    fed: Arrays,
    value_of: ValueOf,
    gradient_of: Callable[[str, Sequence[int]], np.ndarray | None],
) -> Probabilities | None:
    """Return the probabilities that the step computed, or otherwise the softmax of its scores."""
    arrays = map(np.asarray, fed.values())
    labels = [one for one in arrays if one.ndim == 1 and one.dtype.kind in "iu" and one.size]
    computed = [(node.name, True) for node in reached if node.op == "Softmax"]
    scores = [(node.inputs[0], False) for node in reached if node.op in ENTROPIES]
    for name, is_computed in (*computed, *scores):
        array = value_of(name)
        if array is None or array.ndim != 2 or not array.size or array.shape[1] > CLASSES:
            continue
        shares = first_row(array) if is_computed else softmax(first_row(array).astype(np.float64))
        label = int(labels[0][0]) if len(labels) == 1 else -1
        known = label if 0 <= label < len(shares) else None
        gradient = gradient_of(name, array.shape)
        row = None if gradient is None else first_row(gradient)
        return Probabilities(name, is_computed, shares, row, known)
    return None
