"""Chain rule: the steps from the loss to the variables, as a graph's gradients take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tflab.analysis import expressions as ex
from tflab.analysis import formula_text, formulas
from tflab.analysis.expressions import Expression
from tflab.analysis.gradient_graph import GradientGraph, Reader, leading_to
from tflab.records import GradientCall, Link, Node, node_of

LONGEST = 400  # names and ops of a derivative


def links(graph: GradientGraph, ends: Iterable[str]) -> tuple[Link, ...]:
    """The chain rule, step by step from the loss: what variables need, in the order of calls."""
    reader = Reader(graph)
    needed = leading_to(reader.nodes, ends)
    return tuple(
        link(reader, call, tensor, gradient)
        for call in reader.calls
        for tensor, gradient in reader.returned(call)
        if node_of(gradient) in needed
    )


def link(reader: Reader, call: GradientCall, tensor: str, gradient: str) -> Link:
    if (call.forward, gradient) in reader.incoming:
        formula = reader.incoming_name(call.forward, gradient)
        value: Expression = reader.composer.name(formula, gradient)
    else:
        value = reader.expressions.get(gradient, reader.composer.name(gradient, gradient))
        formula = reader.text(value, gradient)
    incoming = [t for t in call.incoming if t and not reader.points.filled(t, 0)]
    factor, added_up = single_factor(reader, call.forward, incoming, value, gradient)
    return Link(
        forward=call.forward,
        computes=reader.computes(call.forward),
        by=reader.label(tensor),
        source=node_of(tensor),
        gradient=reader.contribution(call, tensor, gradient),
        formula=formula,
        factor=factor,
        added_up=added_up,
        alone=len(incoming) == 1 == reader.parts[reader.label(tensor)],
    )


def single_factor(
    reader: Reader, forward: str, incoming: Sequence[str], value: Expression, gradient: str
) -> tuple[str | None, bool]:
    """The factor beside the one gradient that came in, where their product, or its sum over what
    was repeated, is the gradient that goes out."""
    if len(incoming) != 1:
        return None, False
    given = reader.composer.name(reader.incoming_name(forward, incoming[0]), incoming[0])
    factor, added_up = ex.without(value, given)
    if factor is None:
        return None, False
    product, whole = ex.times(factor, given), ex.Name("it", None, gradient)
    if reader.points.hold(product, gradient):
        return formula_text.text(factor), False
    summed = ex.operation("SumTo", product, ex.operation("Shape", whole))
    if added_up and reader.points.hold(summed, gradient):
        return formula_text.text(factor), True
    return None, False


def path(links: Sequence[Link], loss: str) -> list[Link]:
    """The longest way from the loss to a variable: each link begins where the last one ended."""
    lengths = {loss: 0}  # of the longest way to each op
    last: dict[str, Link] = {}  # on that way
    for link in links:  # an op's link comes before those of what it was computed from
        if link.forward in lengths and lengths[link.forward] >= lengths.get(link.source, 0):
            lengths[link.source] = lengths[link.forward] + 1
            last[link.source] = link
    name = max(lengths, key=lambda source: lengths[source])
    way: list[Link] = []
    while name in last and len(way) < len(last):
        way.append(last[name])
        name = way[-1].forward
    return way[::-1]


def derivatives(graph: GradientGraph, ends: Mapping[str, str]) -> dict[str, Expression]:
    """The formula of each variable's derivative, with nothing left but variables, constants, what
    is fed, and forward values for which there is no rule; none where it would be too long to read
    or is not right. `ends` are the gradients of the variables, as tensors."""
    reader = Reader(graph)
    needed = leading_to(reader.nodes, ends.values())

    def argument(node: Node, tensor: str) -> Expression | None:
        if reader.is_read(node_of(tensor)):
            return reader.composer.name(reader.label(tensor), tensor)
        return None

    ordered = (node for node in graph.nodes if node.name in needed)
    whole = formulas.composed(reader.composer, ordered, argument, LONGEST)
    known = {variable: whole[tensor] for variable, tensor in ends.items() if tensor in whole}
    return {
        variable: formula
        for variable, formula in known.items()
        if graph.points.hold(formula, ends[variable])
        and not any(node_of(tensor) in reader.owners for tensor in ex.tensors(formula))
    }
