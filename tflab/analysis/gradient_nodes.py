"""Gradient nodes: the purpose of each one, and the gradient that it leads to.

Some compute the formula; the others are bookkeeping of several kinds, each with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflab.analysis import op_rules
from tflab.analysis.gradient_graph import GradientGraph, Reader, gradient_name
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
    reader = graph.reader
    kinds = bookkeeping(reader)
    needed = with_makers(graph.nodes, ends)
    towards = destinations(reader, kinds, needed)
    rows = []
    for node in graph.nodes:
        if node.name in reader.owners:
            target, complete = towards.get(node.name, (None, False))
            rows.append(
                GradientNode(
                    name=node.name,
                    formula=formula_of(reader, node, kinds.get(node.name)),
                    towards=target,
                    complete=complete,
                    used=node.name in needed,
                    bookkeeping=kinds.get(node.name),
                )
            )
    return tuple(rows)


def formula_of(reader: Reader, node: Node, kind: str | None) -> str:
    """Return the formula of a node; "" if no formula gives its value."""
    if kind not in (None, STARTS, SAME) or not node.outputs:
        return ""
    formula = reader.expressions.get(node.name)
    if formula is None or reader.composer.whole[node.name] is not None:
        return ""
    return reader.text(formula, node.name)


def bookkeeping(reader: Reader) -> dict[str, str]:
    """Return the gradient nodes that add nothing to the formula, and their kinds. The search goes
    backwards: a node that only serves bookkeeping of one kind may have that kind."""
    users: dict[str, set[str]] = {}
    for name in reader.owners:
        for tensor in reader.nodes[name].inputs:
            users.setdefault(node_of(tensor), set()).add(name)
    kinds: dict[str, str] = {}
    for node in reversed(reader.graph.nodes):
        if node.name in reader.owners:
            served = {kinds.get(user) for user in users.get(node.name, ())}
            if kind := kind_of(reader, node, served):
                kinds[node.name] = kind
    return kinds


def kind_of(reader: Reader, node: Node, served: set[str | None]) -> str | None:
    """Return the kind of bookkeeping of a node; `served` are those of the nodes that take it."""
    if not node.outputs:
        return GATES if "/tuple/" in node.name else FETCH
    if node.op == "Fill" and node.name in reader.starts:
        return STARTS if reader.points.filled(node.name, 1) else None
    if served == {STARTS}:
        return STARTS
    if all(output.dtype.startswith("int") for output in node.outputs):
        return WHOLE
    if node.op in ("ZerosLike", "Fill") and reader.points.filled(node.name, 0):
        return ZEROS
    return handed_on(reader, node)


def handed_on(reader: Reader, node: Node) -> str | None:
    """Return the kind of a node that has the numbers of its first input, each in its place."""
    if node.op not in MOVES or not node.inputs or reader.composer.rounds(node):
        return None
    keeps = node.op in op_rules.UNCHANGING
    if not keeps and not reader.points.same(node.name, node.inputs[0]):
        return None
    if "/tuple/" in node.name:
        return GATES
    owner = reader.nodes.get(reader.owners[node.name])
    reshapes = owner is not None and owner.op in op_rules.RESHAPES
    return None if reshapes and node.op in op_rules.RESHAPES else SAME


def destinations(
    reader: Reader, kinds: Mapping[str, str], needed: set[str]
) -> dict[str, tuple[str, bool]]:
    """Return, for each gradient node the gradient that it leads to, and whether it is that
    gradient."""
    destination_of: dict[str, tuple[str, bool]] = {}
    starts = [(name, reader.names[name]) for name in reader.graph.shared if name in reader.names]
    for call in reader.calls:
        pairs = reader.returned(call)
        starts += [(g, reader.contribution(call, tensor, g)) for tensor, g in pairs]
    for (_, tensor), output in reader.incoming.items():
        if kinds.get(node_of(tensor)) == STARTS:
            destination_of[node_of(tensor)] = (gradient_name(output), True)
    # What a variable needs comes first: a node that leads to two gradients is listed there.
    starts.sort(key=lambda pair: node_of(pair[0]) not in needed)
    for tensor, name in starts:
        follow(reader, kinds, destination_of, tensor, name)
    return destination_of


def follow(
    reader: Reader,
    kinds: Mapping[str, str],
    destination_of: dict[str, tuple[str, bool]],
    gradient: str,
    name: str,
) -> None:
    """Mark the nodes that lead to a gradient, back to the incoming gradients."""
    owner = reader.owners.get(node_of(gradient))
    waiting = [(gradient, gradient == node_of(gradient))]  # the name of a node is its first output
    while waiting:
        tensor, complete = waiting.pop()
        node = node_of(tensor)
        if reader.owners.get(node) != owner or node in destination_of or owner is None:
            continue
        if (owner, tensor) in reader.incoming:
            continue
        if node in kinds and kinds[node] not in (SAME, GATES):
            continue
        destination_of[node] = (name, complete)
        passes = complete and node in kinds
        inputs = reader.nodes[node].inputs[:1] if node in kinds else reader.nodes[node].inputs
        waiting.extend((parent, passes and parent == node_of(parent)) for parent in inputs)
