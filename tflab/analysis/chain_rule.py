"""Chain rule: the steps from the loss to the variables, as the gradients of a graph take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tflab.analysis import expressions as ex
from tflab.analysis import formulas
from tflab.analysis.expressions import Expression, Name
from tflab.analysis.gradient_graph import GradientGraph
from tflab.records.gradients import GradientCall, Link
from tflab.records.graph import VARIABLES, Node, node_of, with_makers

LONGEST = 400  # number of names and ops in a derivative


def links(graph: GradientGraph, ends: Iterable[str]) -> tuple[Link, ...]:
    """Return the steps of the chain rule that lead to a variable, in the order of the gradient
    calls, starting at the loss. If the loss is differentiated with respect to other tensors, return
    all steps."""
    needed = with_makers(graph.nodes, ends)
    every = [link(graph, *own) for own in graph.returned if node_of(own[-1]) in needed]
    kept: set[str] = set()  # ops with a link on such a way
    on_way = []
    for step in reversed(every):  # the link of an op comes before the links of its inputs
        node = graph.by_name.get(node_of(step.by))
        if step.source in kept or (node is not None and node.op in VARIABLES):
            kept.add(step.forward)
            on_way.append(step)
    return tuple(on_way[::-1] or every)


def link(graph: GradientGraph, call: GradientCall, tensor: str, gradient: str) -> Link:
    if (call.forward, gradient) in graph.incoming:
        formula = graph.incoming_name(call.forward, gradient)
    else:
        formula = graph.gradient_text(gradient)
    incoming = [t for t in call.incoming if t and not graph.points.filled(t, 0)]
    return Link(
        forward=call.forward,
        computes=graph.computes(call.forward),
        by=graph.label(tensor),
        source=node_of(tensor),
        gradient=graph.contribution(call, tensor, gradient),
        formula=formula,
        alone=len(incoming) == 1 == graph.parts[graph.label(tensor)],
    )


def path(links: Sequence[Link], loss: str) -> list[Link]:
    """Return the longest path from the loss to a variable; each link starts where the previous one
    ends."""
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
    """Return the `StopGradient` nodes that end a gradient other than 0, although their values
    depend on these variables through differentiable ops."""
    passing = {gradient.forward for gradient in graph.gradients if gradient.function}
    behind = set(variables)
    for node in graph.nodes:  # each node comes after its inputs
        passes = node.op == "StopGradient" or node.name in passing
        if passes and any(node_of(tensor) in behind for tensor in node.inputs):
            behind.add(node.name)
    arriving = {
        node_of(tensor)
        for _, tensor, gradient in graph.returned
        if not graph.points.filled(gradient, 0)
    }
    stops = (node.name for node in graph.nodes if node.op == "StopGradient")
    return tuple(name for name in stops if name in behind & arriving)


def derivatives(graph: GradientGraph, ends: Mapping[str, str]) -> dict[str, Expression]:
    """Return the formula of each variable's derivative, if it is correct and short enough to read.

    It contains only variables, constants, fed tensors, and forward values without a rule. `ends`
    are the gradients of the variables, as tensors.
    """
    needed = with_makers(graph.nodes, ends.values())
    ordered = [node for node in graph.nodes if node.name in needed]

    def argument(_: Node, tensor: str) -> Expression | None:
        if graph.is_read(node_of(tensor)):
            return Name(graph.label(tensor), tensor)
        return None

    by_tensor = formulas.composed(graph.composer, ordered, argument, LONGEST, graph.owners)
    return {
        variable: by_tensor[tensor]
        for variable, tensor in ends.items()
        if tensor in by_tensor
        and not any(node_of(name) in graph.owners for name in ex.tensors(by_tensor[tensor]))
        and graph.points.hold(by_tensor[tensor], tensor)
    }
