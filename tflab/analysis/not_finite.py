"""Not finite: the nodes that made NaN or Inf from finite inputs, and what those inputs were."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflab.analysis.values import computable
from tflab.records.graph import Node, node_of
from tflab.records.values import Entered

CONSTANT = "Const"


@dataclass(frozen=True)
class Bad:
    """The elements of a tensor that are not finite."""

    nan: int
    infinite: int
    size: int


def record_of(array: np.ndarray) -> Bad | None:
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
