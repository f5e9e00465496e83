"""Gradient nodes: what each of them is for, and towards which gradient it leads. No TensorFlow.

Some compute the formula; the others are bookkeeping, each of a kind that has a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflab.analysis import formula_text, formulas, op_rules
from tflab.analysis.gradient_graph import (
    PASSES_ON,
    GradientGraph,
    Reader,
    gradient_name,
    leading_to,
)
from tflab.records import GradientNode, Node, Source, node_of

STARTS = "start"
SHAPES = "shape"
BROADCASTING = "broadcasting"
COUNTS = "count"
GATES = "gate"
SAME = "same numbers"
ZEROS = "zeros"
FETCH = "fetch"
WHY = {
    STARTS: "The chain starts with the gradient of the loss by itself, which is 1.",
    SHAPES: "Shapes and axes are tensors, too: the batch size is known only when the graph runs.",
    BROADCASTING: "Where an op had repeated an input to fit the other one, the input's gradient is "
    "the sum of what comes back. These find the axes and restore the shape.",
    COUNTS: "A mean divides by how many elements there are: these count them when the graph runs.",
    GATES: "An op's gradients wait for one another here, and are handed on unchanged.",
    SAME: "The same numbers in another shape or type, as the next op takes them.",
    ZEROS: "An output that the loss does not use has the gradient 0.",
    FETCH: "A name by which all gradients can be fetched at once, without an update.",
}
COUNTING = ("Prod", "GatherV2", "Size", "FloorMod", "FloorDiv")


def described(
    graph: GradientGraph, ends: Iterable[str], lines: Mapping[str, Source | None]
) -> tuple[GradientNode, ...]:
    """What every gradient node is for. `ends` are the gradients of variables, as tensors."""
    reader = Reader(graph)
    kinds = bookkeeping(reader)
    needed = leading_to(reader.nodes, ends)
    towards = destinations(reader, kinds, needed)
    known = []
    for node in graph.nodes:
        if node.name in reader.owners:
            target, complete = towards.get(node.name, (None, False))
            known.append(
                GradientNode(
                    name=node.name,
                    formula=formula_of(reader, node, kinds.get(node.name)),
                    towards=target,
                    complete=complete,
                    used=node.name in needed,
                    bookkeeping=kinds.get(node.name),
                    line=lines.get(node.name),
                )
            )
    return tuple(known)


def formula_of(reader: Reader, node: Node, kind: str | None) -> str:
    if (
        kind not in (None, STARTS, SAME)
        or not node.outputs
        or reader.composer.whole[node.name] is not None
    ):
        return ""
    content = formula_text.text(reader.expressions[node.name])
    return f"repeat({content})" if node.op in op_rules.REPEATS else content


def bookkeeping(reader: Reader) -> dict[str, str]:
    """The gradient nodes that compute nothing of the formula, and their kinds. The last come
    first: what only serves bookkeeping of one kind is of that kind."""
    users: dict[str, list[str]] = {}
    used: dict[str, set[bool]] = {}
    for name in reader.owners:
        for place, tensor in enumerate(reader.nodes[name].inputs):
            users.setdefault(node_of(tensor), []).append(name)
            used.setdefault(node_of(tensor), set()).add(says_shape(reader.nodes[name], place))
    kinds: dict[str, str] = {}
    started = {t for t in reader.graph.shared if reader.nodes[t].op == "Fill"}
    for node in reversed(reader.graph.nodes):
        if node.name in reader.owners:
            served = {kinds.get(user) for user in users.get(node.name, ())}
            kind = STARTS if node.name in started else kind_of(reader, node, served)
            if kind is None and used.get(node.name) == {True}:
                kind = SHAPES
            if kind:
                kinds[node.name] = kind
    return kinds


def says_shape(node: Node, place: int) -> bool:
    """Whether an input only tells a node which shape its result has, or over which axes to add."""
    return place == 1 and node.op in (*op_rules.RESHAPES, *op_rules.REPEATS, "Sum")


def kind_of(reader: Reader, node: Node, served: set[str | None]) -> str | None:
    if "/tuple/" in node.name and node.op in ("NoOp", "Identity"):
        return GATES
    if node.op == "NoOp":
        return FETCH
    if node.op == "ZerosLike":
        return ZEROS
    if node.op == "BroadcastGradientArgs":
        return BROADCASTING
    if served == {STARTS}:
        return STARTS
    whole = all(output.dtype.startswith("int") for output in node.outputs)
    if node.op == "Cast" and served_by_count(reader, node):
        return COUNTS
    if whole and node.outputs:
        if served in ({COUNTS}, {BROADCASTING}):
            return served.pop()
        return COUNTS if node.op in COUNTING else SHAPES
    if formulas.undoes_broadcasting(reader.nodes, node):
        return BROADCASTING if formulas.broadcast_nothing(reader.composer, node) else None
    if node.op in op_rules.RESHAPES and node.inputs:
        source = reader.nodes[node_of(node.inputs[0])]
        if formulas.undoes_broadcasting(reader.nodes, source):
            return BROADCASTING
        owner = reader.nodes.get(reader.owners[node.name])
        return None if owner is not None and owner.op in op_rules.RESHAPES else SAME
    return SAME if node.op in ("Cast", "Identity", *PASSES_ON) else None


def served_by_count(reader: Reader, node: Node) -> bool:
    source = reader.nodes.get(node_of(node.inputs[0]))
    return (
        source is not None
        and source.op in (*COUNTING, "Const")
        and bool(source.outputs and source.outputs[0].dtype.startswith("int"))
    )


def destinations(
    reader: Reader, kinds: Mapping[str, str], needed: set[str]
) -> dict[str, tuple[str, bool]]:
    """For each gradient node the gradient that it leads to, and whether it is that gradient."""
    known: dict[str, tuple[str, bool]] = {}
    starts = [(name, reader.names[name]) for name in reader.graph.shared if name in reader.names]
    for call in reader.graph.calls:
        if not reader.is_read(call.forward):
            pairs = reader.returned(call)
            starts += [(gradient, reader.contribution(call, tensor)) for tensor, gradient in pairs]
    for (_, tensor), output in reader.incoming.items():
        if kinds.get(node_of(tensor)) == STARTS:
            known[node_of(tensor)] = (gradient_name(output), True)
    # What a variable needs comes first: a node on the way to two gradients is said to lead there.
    starts.sort(key=lambda pair: node_of(pair[0]) not in needed)
    for tensor, name in starts:
        follow(reader, kinds, known, tensor, name)
    return known


def follow(
    reader: Reader,
    kinds: Mapping[str, str],
    known: dict[str, tuple[str, bool]],
    gradient: str,
    name: str,
) -> None:
    """Mark what leads to a gradient, up to where the gradients come in that it is made of."""
    owner = reader.owners.get(node_of(gradient))
    waiting = [(gradient, True)]
    while waiting:
        tensor, complete = waiting.pop()
        node = node_of(tensor)
        if reader.owners.get(node) != owner or node in known or owner is None:
            continue
        if (owner, tensor) in reader.incoming:
            continue
        if node in kinds and kinds[node] not in (SAME, GATES, BROADCASTING):
            continue
        known[node] = (name, complete)
        passes = complete and node in kinds
        inputs = reader.nodes[node].inputs[:1] if node in kinds else reader.nodes[node].inputs
        waiting.extend((parent, passes) for parent in inputs)
