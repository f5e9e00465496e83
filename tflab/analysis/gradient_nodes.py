"""Gradient nodes: the purpose of each one, and the gradient that it leads to.

Some compute the formula; the others are bookkeeping of several kinds, each with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflab.analysis import op_rules
from tflab.analysis.gradient_graph import GradientGraph, gradient_name
from tflab.records.gradients import GradientNode
from tflab.records.graph import Node, node_of, with_makers

STARTS = "start"
WHOLE = "whole numbers"
GATES = "gate"
SAME = "same numbers"
ZEROS = "zeros"
FETCH = "fetch"
MOVES = (*op_rules.SEEN_THROUGH, *op_rules.RESHAPES, "Sum")  # may hand on the same numbers
WHY = {
    STARTS: "The chain starts with the gradient of the loss with respect to itself, which is 1.",
    WHOLE: "Shapes, axes, counts and indices are tensors too, because some are known only when the "
    "graph runs. They have no gradient, but gradients need them.",
    GATES: "These nodes wait until all gradients of an op are ready, and pass them on unchanged.",
    SAME: "These nodes pass on the same numbers in the shape or type that the next op needs.",
    ZEROS: "Every element is 0: no gradient arrives here, or the op passes none on.",
    FETCH: "A program that fetches this node computes all gradients at once, without an update.",
}


def described(graph: GradientGraph, ends: Iterable[str]) -> tuple[GradientNode, ...]:
    """Return the purpose of every gradient node. `ends` are the gradients of variables, as
    tensors."""
    kinds = bookkeeping(graph)
    needed = with_makers(graph.nodes, ends)
    towards = destinations(graph, kinds, needed)
    rows = []
    for node in graph.nodes:
        if node.name in graph.owners:
            kind, (target, complete) = kinds.get(node.name), towards.get(node.name, (None, False))
            formula, used = formula_of(graph, node, kind), node.name in needed
            rows.append(GradientNode(node.name, formula, target, complete, used, kind))
    return tuple(rows)


def formula_of(graph: GradientGraph, node: Node, kind: str | None) -> str:
    """Return the formula of a node; "" if no formula gives its value."""
    shown = kind in (None, STARTS, SAME) and graph.composer.whole[node.name] is None
    return graph.gradient_text(node.name) if shown else ""


def bookkeeping(graph: GradientGraph) -> dict[str, str]:
    """Return the gradient nodes that add nothing to the formula, each with its kind of bookkeeping.
    From the end backwards: a node that serves only bookkeeping of one kind may be of that kind."""
    served: dict[str, set[str | None]] = {}  # node -> the kinds of the gradient nodes that take it
    kinds: dict[str, str] = {}
    for node in reversed(graph.nodes):
        if node.name in graph.owners:
            if kind := kind_of(graph, node, served.get(node.name, set())):
                kinds[node.name] = kind
            for tensor in node.inputs:
                served.setdefault(node_of(tensor), set()).add(kind)
    return kinds


def kind_of(graph: GradientGraph, node: Node, served: set[str | None]) -> str | None:
    """Return the kind of bookkeeping of a node; `served` are the kinds of those that take it."""
    if not node.outputs:
        return GATES if "/tuple/" in node.name else FETCH
    if node.op == "Fill" and node.name in graph.starts:
        return STARTS if graph.points.filled(node.name, 1) else None
    if served == {STARTS}:
        return STARTS
    if all(output.dtype.startswith("int") for output in node.outputs):
        return WHOLE
    if node.op in ("ZerosLike", "Fill") and graph.points.filled(node.name, 0):
        return ZEROS
    return handed_on(graph, node)


def handed_on(graph: GradientGraph, node: Node) -> str | None:
    """Return the kind of a node that hands on the numbers of its first input, each in its place."""
    if node.op not in MOVES or not node.inputs or graph.composer.rounds(node):
        return None
    keeps = node.op in op_rules.UNCHANGING
    if not keeps and not graph.points.same(node.name, node.inputs[0]):
        return None
    if "/tuple/" in node.name:
        return GATES
    owner = graph.by_name.get(graph.owners[node.name])
    reshapes = owner is not None and owner.op in op_rules.RESHAPES
    return None if reshapes and node.op in op_rules.RESHAPES else SAME


def destinations(
    graph: GradientGraph, kinds: Mapping[str, str], needed: set[str]
) -> dict[str, tuple[str, bool]]:
    """Return, for each gradient node, the gradient that it leads to, and whether it is that
    gradient."""
    destination_of = {
        node_of(tensor): (gradient_name(output), True)
        for (_, tensor), output in graph.incoming.items()
        if kinds.get(node_of(tensor)) == STARTS
    }
    starts = [(name, graph.names[name]) for name in graph.shared if name in graph.names]
    starts += [(own[-1], graph.contribution(*own)) for own in graph.returned]
    # What a variable needs comes first: a node that leads to two gradients is listed there.
    starts.sort(key=lambda pair: node_of(pair[0]) not in needed)
    for gradient, name in starts:
        owner = graph.owners.get(node_of(gradient))
        # Back to the incoming gradients; the name of a node is its first output
        waiting = [(gradient, gradient == node_of(gradient))] if owner is not None else []
        while waiting:
            tensor, complete = waiting.pop()
            node = node_of(tensor)
            leads = graph.owners.get(node) == owner and (owner, tensor) not in graph.incoming
            if not leads or node in destination_of or kinds.get(node, SAME) not in (SAME, GATES):
                continue
            destination_of[node] = (name, complete)
            inputs = graph.by_name[node].inputs[: 1 if node in kinds else None]
            passes = complete and node in kinds
            waiting.extend((parent, passes and parent == node_of(parent)) for parent in inputs)
    return destination_of
