"""Chain rule: the steps from the loss to the variables, as the gradients of a graph take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tflab.analysis import expressions as ex
from tflab.analysis import formulas
from tflab.analysis.expressions import Expression, Name
from tflab.analysis.gradient_graph import GradientGraph, gradient_name
from tflab.records.graph import (
    VARIABLES,
    GradientNode,
    Link,
    Node,
    node_of,
    with_dependents,
    with_makers,
)

LONGEST = 400  # number of names and ops in a derivative
ENDS = ("StopGradient", "PyFunc", "PyFuncStateless")  # of gradients, but not of slopes


def links(graph: GradientGraph, ends: Iterable[str]) -> tuple[Link, ...]:
    """Return the steps of the chain rule that lead to a variable, in order from the loss. If no
    step leads to a variable, return all of them."""
    needed = with_makers(graph.nodes, ends)
    every = []
    for call, tensor, gradient in graph.returned:
        if node_of(gradient) not in needed:
            continue
        if output := graph.incoming.get((call.forward, gradient)):
            formula = graph.named(graph.label(output), gradient)
        else:
            formula = graph.gradient_text(gradient)
        incoming = [t for t in call.incoming if t and not graph.points.filled(t, 0)]
        own = Link(
            forward=call.forward,
            computes=graph.computes(call.forward),
            by=graph.label(tensor),
            source=node_of(tensor),
            gradient=graph.contribution(call, tensor, gradient),
            formula=formula,
            alone=len(incoming) == 1 == graph.parts[graph.label(tensor)],
            lacks="" if formula else graph.lacks(gradient),
        )
        every.append(own)
    kept: set[str] = set()  # ops with a link on such a way
    on_way = []
    for step in reversed(every):  # the link of an op comes before the links of its inputs
        node = graph.by_name.get(node_of(step.by))
        if step.source in kept or (node is not None and node.op in VARIABLES):
            kept.add(step.forward)
            on_way.append(step)
    return tuple(on_way[::-1] or every)


def path(links: Sequence[Link], loss: str) -> list[Link]:
    """Return the longest path from the loss to a variable, link by link."""
    lengths = {loss: 0}  # of the longest path to each op
    last: dict[str, Link] = {}  # the last link on that path
    for link in links:  # the link of an op comes before the links of its inputs
        if link.forward in lengths and lengths[link.forward] >= lengths.get(link.source, 0):
            lengths[link.source] = lengths[link.forward] + 1
            last[link.source] = link
    name = max(lengths, key=lambda source: lengths[source])
    way: list[Link] = []
    while name in last and len(way) < len(last):
        way.append(last[name])
        name = way[-1].forward
    return way[::-1]


def stopped(graph: GradientGraph, variables: Iterable[str]) -> tuple[str, ...]:
    """Return the nodes of types in `ENDS` that end a gradient other than 0, although their values
    depend on these variables through differentiable ops."""
    passing = {gradient.forward for gradient in graph.gradients if gradient.function}
    stops = [node.name for node in graph.nodes if node.op in ENDS]
    way = (node for node in graph.nodes if node.name in passing or node.op in ENDS)
    behind = with_dependents(way, variables)
    arriving = {
        node_of(tensor)
        for _, tensor, gradient in graph.returned
        if not graph.points.filled(gradient, 0)
    }
    return tuple(name for name in stops if name in behind & arriving)


def derivatives(graph: GradientGraph, ends: Mapping[str, str]) -> dict[str, Expression]:
    """Return the formula of each variable's derivative, if it is correct and short enough to read.
    It contains only variables, constants, feeds, and forward values without a rule. `ends` has the
    gradient of each variable, as a tensor."""
    needed = with_makers(graph.nodes, ends.values())
    ordered = [node for node in graph.nodes if node.name in needed]

    def argument(_: Node, tensor: str) -> Expression | None:
        variable = graph.reads.get(node_of(tensor))
        return Name(variable, tensor) if variable else None

    by_tensor = formulas.composed(graph.composer, ordered, argument, LONGEST, graph.owners)
    return {
        variable: by_tensor[tensor]
        for variable, tensor in ends.items()
        if tensor in by_tensor
        and not any(node_of(name) in graph.owners for name in ex.tensors(by_tensor[tensor]))
        and graph.points.hold(by_tensor[tensor], tensor)
    }


# Gradient nodes
#
# Some compute the formula; the others are bookkeeping of several kinds, each with a reason.

STARTS = "start"
WHOLE = "whole numbers"
GATES = "gate"
SAME = "same numbers"
ZEROS = "zeros"
FETCH = "fetch"
MOVES = (*formulas.SEEN_THROUGH, *formulas.RESHAPES, "Sum")  # may hand on the same numbers
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
    """Return the purpose of every gradient node; `ends` are the tensors of variables' gradients."""
    served: dict[str, set[str | None]] = {}  # node -> the kinds of the gradient nodes that take it
    kinds: dict[str, str] = {}  # of the gradient nodes that add nothing to the formula
    for node in (node for node in reversed(graph.nodes) if node.name in graph.owners):
        if kind := kind_of(graph, node, served.get(node.name, set())):
            kinds[node.name] = kind
        for tensor in node.inputs:
            served.setdefault(node_of(tensor), set()).add(kind)
    needed = with_makers(graph.nodes, ends)
    towards = destinations(graph, kinds, needed)
    rows = []
    for node in graph.nodes:
        if node.name in graph.owners:
            own, (target, complete) = kinds.get(node.name), towards.get(node.name, (None, False))
            shown = own in (None, STARTS, SAME) and graph.composer.whole[node.name] is None
            formula = graph.gradient_text(node.name) if shown else ""
            used = node.name in needed
            rows.append(GradientNode(node.name, formula, target, complete, used, own))
    return tuple(rows)


def kind_of(graph: GradientGraph, node: Node, served: set[str | None]) -> str | None:
    """Return what bookkeeping a node does, if any; `served` are the kinds of its users."""
    if not node.outputs:
        return GATES if "/tuple/" in node.name else FETCH
    is_shared = not graph.owners[node.name]
    if node.op == "Fill" and is_shared and any(t == node.name for _, t in graph.incoming):
        return STARTS if graph.points.filled(node.name, 1) else None
    if served == {STARTS}:
        return STARTS
    if all(output.dtype.startswith("int") for output in node.outputs):
        return WHOLE
    if node.op in ("ZerosLike", "Fill") and graph.points.filled(node.name, 0):
        return ZEROS
    # What is left may hand on the numbers of its first input, each in its place
    if node.op not in MOVES or not node.inputs or graph.composer.rounds(node):
        return None
    keeps = node.op in formulas.UNCHANGING or graph.points.same(node.name, node.inputs[0])
    if not keeps:
        return None
    if "/tuple/" in node.name:
        return GATES
    owner = graph.by_name.get(graph.owners[node.name])
    reshapes = owner is not None and owner.op in formulas.RESHAPES
    return None if reshapes and node.op in formulas.RESHAPES else SAME


def destinations(
    graph: GradientGraph, kinds: Mapping[str, str], needed: set[str]
) -> dict[str, tuple[str, bool]]:
    """Return for each gradient node the gradient it leads to, and whether it is that gradient."""
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
