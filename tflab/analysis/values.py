"""Values: which tensors of a step can be fetched, the statistics of their elements, and the nodes
that made NaN or Inf from finite inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflab.records.graph import Node, node_of, nodes_needed
from tflab.records.values import Entered, Statistics

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


def largest_change(before: np.ndarray, after: np.ndarray) -> float | None:
    """Return the largest change of an element that is finite before and after; None if there is
    none."""
    before, after = computable(before), computable(after)
    if before.shape != after.shape or before.dtype.kind not in "fiub":
        return None
    with np.errstate(invalid="ignore"):  # infinite before and after
        change = np.abs(after.astype(np.float64) - before)
    change = change[np.isfinite(change)]
    return float(change.max()) if change.size else None


def needed(graph: Sequence[Node], fetches: Iterable[str], feeds: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes that a step needs, in the order of the graph."""
    names = nodes_needed(graph, fetches, feeds)
    return tuple(node for node in graph if node.name in names)


def fetchable(graph: Sequence[Node], feeds: Collection[str]) -> list[str]:
    """Return the tensors (`mul:0`) of these nodes that one `session.run` can fetch.

    These are the outputs that are values: no handles of resources or lists, no references to
    variables, nothing that is fed, and nothing inside a loop or branch, where a tensor may not
    exist, or exists many times.
    """
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
    """Return in how many loops and branches each node is.

    Enter and Switch lead inside. The Merge that joins a branch leads out, the one that begins a
    loop does not. Exit leaves both the Switch and the Enter of its loop. TensorFlow 1 lists what a
    branch takes after the nodes that take it, so the graph is gone through until nothing changes.
    """
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
    known: Collection[str],
    bads: Mapping[str, Bad],
    spoiled: Mapping[str, str],
) -> list[tuple[Node, str]]:
    """Return the nodes with an output that is not finite although all their inputs are, each with
    that output; `nodes` are in topological order.

    `known` are the tensors whose values are known, as in a GraphDef (`split:1`, plain `mul`), and
    variables by the name of their node; `bads` are those that are not finite. A node takes what is
    known before it: inputs without a value, such as handles, lists and the nodes inside a loop, are
    passed through. `spoiled` are the nodes whose update made a variable not finite, with that
    variable; a node that reads it afterwards is no origin.

    An infinite constant is assumed to be intended, such as a mask. What it makes infinite is no
    origin, but a node that makes NaN from it is. If there is no other origin, the constant is.
    """
    by_name = {node.name: node for node in nodes}
    outputs: dict[str, list[str]] = {}
    for tensor in bads:
        outputs.setdefault(node_of(tensor), []).append(tensor)
    found: list[tuple[Node, str]] = []
    constants: list[tuple[Node, str]] = []
    meant: set[str] = set()  # tensors that only infinite constants make infinite
    changed: set[str] = set()  # variables that an update before made not finite
    for node in nodes:
        variable = spoiled.get(node.name)
        own = [variable] if variable else outputs.get(node.name, [])
        if not own:
            continue
        taken = consumed(node, by_name, known)
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


def consumed(node: Node, by_name: Mapping[str, Node], known: Collection[str]) -> set[str]:
    """Return the known tensors and variables that a node takes, through inputs without a value."""
    waiting, seen, taken = [*node.inputs], set[str](), set[str]()
    while waiting:
        tensor = waiting.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor in known:
            taken.add(tensor)
        elif node_of(tensor) in by_name:
            waiting += by_name[node_of(tensor)].inputs
    return taken


def entered(inputs: Iterable[tuple[str, np.ndarray | None]]) -> Iterator[Entered]:
    """Yield what a node took: the statistics of each input that has numbers."""
    for tensor, array in inputs:
        if array is None or (values := computable(array)).dtype.kind not in "fiu":
            continue
        if values.size:
            yield Entered(
                tensor=tensor,
                size=values.size,
                zeros=int((values == 0).sum()),
                negative=int((values < 0).sum()),
                min=float(values.min()),
                max=float(values.max()),
            )
