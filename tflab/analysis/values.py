"""Values: which tensors of a step can be fetched, the statistics of their elements, and the nodes
that made NaN or Inf from finite inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflab.analysis.expressions import softmax
from tflab.analysis.gradient_graph import PASSES_ON, gradient_name
from tflab.records import graph
from tflab.records.graph import (
    FORWARD,
    VARIABLES,
    GradientNode,
    Node,
    grouped,
    node_of,
    nodes_needed,
)
from tflab.records.values import IMAGE, KERNEL, LAYER, FeatureMap, Maps, Probabilities, Statistics

KEPT = 64  # elements of a tensor whose values are kept
LONGEST = 64  # characters of an element that is text
NOT_VALUES = ("resource", "variant")  # types of handles
NO_NUMBERS: dict[str, None] = dict.fromkeys(("mean", "min", "max"))


def statistics(array: np.ndarray) -> Statistics:
    """Return the elements, if they are few, and their statistics."""
    array = np.asarray(array)
    few = array if array.dtype.kind == "b" else computable(array)
    values = tuple(map(element, few.ravel().tolist())) if array.size <= KEPT else None
    array = computable(array)
    if array.dtype.kind not in "fiubc":  # text
        return Statistics(values, **NO_NUMBERS, not_finite=0)
    finite = array[np.isfinite(array)]
    not_finite = array.size - finite.size
    if array.dtype.kind == "c" or not finite.size:
        return Statistics(values, **NO_NUMBERS, not_finite=not_finite)
    with np.errstate(over="ignore"):  # sums of the largest float64
        mean = float(finite.mean(dtype=np.float64))
    return Statistics(values, mean, finite.min().item(), finite.max().item(), not_finite)


def computable(array: np.ndarray) -> np.ndarray:
    """Return the array in a type that NumPy computes with: bfloat16 and similar types become
    float32, bool and quantised integers become integers."""
    array = np.asarray(array)
    if array.dtype.names:  # quantised: a structure of one field
        array = array[array.dtype.names[0]]
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.num >= 256:  # registered by others, such as bfloat16
        return array.astype(np.float32)
    return array


def element(value: Any) -> Any:
    """Return a number as it is; text and complex numbers as text."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, int | float):
        return value
    text = str(value).strip("()") if isinstance(value, complex) else str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def needed(graph: Sequence[Node], fetches: Iterable[str], feeds: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes that a step needs, in the order of the graph."""
    names = nodes_needed(graph, fetches, feeds)
    return tuple(node for node in graph if node.name in names)


def fetchable(graph: Sequence[Node], feeds: Collection[str]) -> list[str]:
    """Return the tensors (`mul:0`) of these nodes that one `session.run` can fetch: no handles of
    resources or lists, no references to variables, nothing that is fed, and nothing inside a loop
    or branch, where a tensor may not exist, or exists many times."""
    inside = depths(graph)
    return [
        f"{node.name}:{number}"
        for node in graph
        if not inside[node.name] and node.op != "Placeholder"
        for number, output in enumerate(node.outputs)
        if output.dtype not in NOT_VALUES
        and not output.dtype.endswith("_ref")
        and f"{node.name}:{number}" not in feeds
    ]


def depths(graph: Sequence[Node]) -> dict[str, int]:
    """Return in how many loops and branches each node is. Enter and Switch lead inside. A Merge
    that joins a branch leads out; a Merge that begins a loop does not. Exit leaves both the Switch
    and the Enter of its loop. The graph of TensorFlow 1 lists some inputs after their users, so it
    is gone through until nothing changes."""
    inside: dict[str, int] = {}
    ops = {node.name: node.op.removeprefix("Ref") for node in graph}
    known: dict[str, int] | None = None
    while inside != known:
        known = dict(inside)
        for node in graph:
            op, before = ops[node.name], node.waits_for
            depth = max(
                (inside.get(name, 0) for name in before if ops.get(name) != "NextIteration"),
                default=0,
            )
            if op in ("Enter", "Switch"):
                depth += 1
            elif op == "Exit":
                depth -= 2
            elif op == "Merge":
                depth -= not any(ops.get(name) in ("Enter", "NextIteration") for name in before)
            inside[node.name] = max(depth, 0)
    return inside


# Elements that are not finite

CONSTANT = "Const"
SETS = ("Assign", "AssignVariableOp")  # give a variable their second input


@dataclass(frozen=True)
class Bad:
    """The elements of a tensor that are not finite."""

    nan: int
    infinite: int
    size: int


def bad_elements(array: np.ndarray) -> Bad | None:
    """Return the record of a tensor that is not finite; None if it is finite."""
    array = computable(array)
    if array.dtype.kind not in "fc":
        return None
    nan, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    return Bad(nan, infinite, array.size) if nan or infinite else None


def origins(
    nodes: Sequence[Node],
    known: Set[str],
    bads: Mapping[str, Bad],
    spoiled: Mapping[str, str],
) -> list[tuple[Node, str]]:
    """Return the nodes with an output that is not finite although all their inputs are, each with
    that output; `nodes` are in topological order. `known` are the tensors whose values are known,
    as in a GraphDef (`split:1`, plain `mul`), and variables by the name of their node; `bads` are
    those that are not finite. `spoiled` are the nodes whose update made a variable not finite, with
    that variable. An infinite constant is assumed to be intended, such as a mask. What it makes
    infinite is no origin, but a node that makes NaN from it is. If there is no other origin, the
    constant is."""
    by_name = {node.name: node for node in nodes}
    outputs = grouped((node_of(tensor), tensor) for tensor in bads)
    # Tensors without a value, such as handles, stand for what their nodes take
    passing = {
        tensor: by_name[node_of(tensor)].inputs
        for node in nodes
        for tensor in node.inputs
        if tensor not in known and node_of(tensor) in by_name
    }
    found: list[tuple[Node, str]] = []
    constants: list[tuple[Node, str]] = []
    meant: set[str] = set()  # tensors that only infinite constants make infinite
    changed: set[str] = set()  # variables that an update before made not finite
    for node in nodes:
        variable = spoiled.get(node.name)
        own = [variable] if variable else outputs.get(node.name, [])
        if not own:
            continue
        taken = graph.reach(node.inputs, passing) & known
        if not variable and taken & {*spoiled.values()} - {*bads}:
            continue
        causes = {tensor for tensor in taken if tensor in bads}
        if variable and not causes and node.op in SETS and node.inputs[1] in known:
            continue  # a later update spoiled the finite value that it set
        infinite = not variable and not any(bads[tensor].nan for tensor in own)
        if infinite and (causes <= meant if causes else node.op == CONSTANT):
            constants += [] if causes else [(node, own[0])]
            meant.update(own)
        elif (not causes or (not variable and causes <= meant)) and variable not in changed:
            found.append((node, own[0]))
        changed |= {variable} if variable else set()
    return found or constants


# Feature maps
#
# They are found by structure and shape: tensors that depend on a fed image, have its batch size and
# four dimensions, the last of which counts channels; and the variables that convolutions take.

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
    gradient_nodes: Iterable[GradientNode],
    fed: Arrays,
    before: Arrays,
    value_of: ValueOf,
) -> Maps | None:
    """Return what can be drawn of a step; None without a fed image. `before` has the variables."""
    images = {node_of(tensor): array for tensor, array in fed.items() if np.ndim(array) == 4}
    if not images:
        return None
    batch = len(next(iter(images.values())))
    computed = graph.with_dependents(nodes, images) - images.keys()
    reached = [node for node in nodes if node.name in computed and node.phase == FORWARD]
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
    # Of each gradient, the nodes whose first outputs have its value
    makers = grouped((node.towards, node.name) for node in gradient_nodes if node.complete)

    def gradient_of(name: str, shape: Sequence[int]) -> np.ndarray | None:
        arrays = map(value_of, makers.get(gradient_name(name), ()))
        return next((a for a in arrays if a is not None and a.shape == tuple(shape)), None)

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
    part = computable(array[0])
    return (part[..., :CHANNELS] if part.ndim > 2 else part).astype(np.float32)


def cut(kernel: np.ndarray) -> np.ndarray:
    """Copy the first channels of a kernel."""
    return computable(kernel[:, :, :INPUTS, :CHANNELS]).astype(np.float32)


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
