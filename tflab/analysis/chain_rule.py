"""Chain rule: the steps from the loss to the variables, as the gradients of a graph take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tflab.analysis import expressions as ex
from tflab.analysis import formulas
from tflab.analysis.expressions import Expression, Name
from tflab.analysis.gradient_graph import GradientGraph, Reader
from tflab.records.gradients import GradientCall, Link
from tflab.records.graph import VARIABLES, Node, node_of, with_makers

LONGEST = 400  # number of names and ops in a derivative


def links(graph: GradientGraph, ends: Iterable[str]) -> tuple[Link, ...]:
    """Return the steps of the chain rule that variables need, in the order of the gradient calls,
    starting at the loss."""
    reader = graph.reader
    needed = with_makers(graph.nodes, ends)
    return leading_to_variables(
        reader,
        [
            link(reader, call, tensor, gradient)
            for call in reader.calls
            for tensor, gradient in reader.returned(call)
            if node_of(gradient) in needed
        ],
    )


def leading_to_variables(reader: Reader, every: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links on a way to a variable; all of them if the loss is differentiated with
    respect to other tensors."""
    kept: set[str] = set()  # ops with a link on such a way
    on_way = []
    for link in reversed(every):  # the link of an op comes before the links of its inputs
        node = reader.nodes.get(node_of(link.by))
        if link.source in kept or (node is not None and node.op in VARIABLES):
            kept.add(link.forward)
            on_way.append(link)
    return tuple(on_way[::-1] or every)


def link(reader: Reader, call: GradientCall, tensor: str, gradient: str) -> Link:
    if (call.forward, gradient) in reader.incoming:
        formula = reader.incoming_name(call.forward, gradient)
    else:
        value = reader.expressions.get(gradient, Name(gradient, gradient))
        formula = reader.text(value, gradient)
    incoming = [t for t in call.incoming if t and not reader.points.filled(t, 0)]
    return Link(
        forward=call.forward,
        computes=reader.computes(call.forward),
        by=reader.label(tensor),
        source=node_of(tensor),
        gradient=reader.contribution(call, tensor, gradient),
        formula=formula,
        alone=len(incoming) == 1 == reader.parts[reader.label(tensor)],
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
        for call in graph.reader.calls
        for tensor, gradient in graph.reader.returned(call)
        if not graph.points.filled(gradient, 0)
    }
    stops = (node.name for node in graph.nodes if node.op == "StopGradient")
    return tuple(name for name in stops if name in behind & arriving)


def derivatives(graph: GradientGraph, ends: Mapping[str, str]) -> dict[str, Expression]:
    """Return the formula of each variable's derivative, if it is correct and short enough to read.

    It contains only variables, constants, fed tensors, and forward values without a rule. `ends`
    are the gradients of the variables, as tensors.
    """
    reader = graph.reader
    needed = with_makers(graph.nodes, ends.values())
    ordered = [node for node in graph.nodes if node.name in needed]

    def argument(_: Node, tensor: str) -> Expression | None:
        if reader.is_read(node_of(tensor)):
            return Name(reader.label(tensor), tensor)
        return None

    by_tensor = formulas.composed(reader.composer, ordered, argument, LONGEST, reader.owners)
    return {
        variable: by_tensor[tensor]
        for variable, tensor in ends.items()
        if tensor in by_tensor
        and not any(node_of(name) in reader.owners for name in ex.tensors(by_tensor[tensor]))
        and graph.points.hold(by_tensor[tensor], tensor)
    }
