"""Chain rule: the steps from the loss to the variables, as a graph's gradients take them.

No TensorFlow in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tflab.analysis import expressions as ex
from tflab.analysis import formula_text, formulas, op_rules
from tflab.analysis.expressions import Expression, Name
from tflab.analysis.gradient_graph import GradientGraph, Reader, gradient_name, leading_to
from tflab.records import GradientCall, Link, Node, node_of

LONGEST = 400  # names and ops of a derivative


def links(graph: GradientGraph, ends: Iterable[str]) -> tuple[Link, ...]:
    """The chain rule, step by step from the loss: what variables need, in the order of calls."""
    reader = Reader(graph)
    needed = leading_to(reader.nodes, ends)
    steps = []
    for call in graph.calls:
        if reader.is_read(call.forward):
            continue
        for tensor, gradient in reader.returned(call):
            if node_of(gradient) in needed:
                steps.append(link(reader, call, tensor, gradient))
    return tuple(steps)


def link(reader: Reader, call: GradientCall, tensor: str, gradient: str) -> Link:
    if (call.forward, gradient) in reader.incoming:
        value: Expression = Name(gradient_name(reader.incoming[call.forward, gradient]))
    else:
        value = reader.expressions.get(gradient) or Name(gradient)
    factor, added_up = single_factor(reader, call, value)
    return Link(
        forward=call.forward,
        computes=reader.computes(call.forward),
        by=reader.label(tensor),
        source=node_of(tensor),
        gradient=reader.contribution(call, tensor),
        formula=formula_text.text(value),
        factor=factor,
        added_up=added_up,
    )


def single_factor(reader: Reader, call: GradientCall, value: Expression) -> tuple[str | None, bool]:
    """The factor beside the one gradient that came in."""
    outputs = {reader.incoming[call.forward, tensor] for tensor in call.incoming if tensor}
    incoming = [Name(gradient_name(label)) for label in outputs]
    beside = [name for name in incoming if name in ex.names(value)]
    if len(beside) != 1:
        return None, False
    factor, added_up = ex.without(value, beside[0])
    return (None if factor is None else formula_text.text(factor)), added_up


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


def is_formula(graph: GradientGraph) -> bool:
    """Whether a loss is a formula of numbers: elementwise ops, and sums and means of everything.

    What no variable goes into may be of any type.
    """
    reader = Reader(graph)
    called = {call.forward for call in graph.calls}
    steps = [node for node in graph.nodes if node.name in called]
    return all(
        node.op in op_rules.ELEMENTWISE
        or (node.op in ("Sum", "Mean") and reader.composer.all_axes(node))
        or reader.is_read(node.name)
        for node in steps
    )


def derivatives(graph: GradientGraph, ends: dict[str, str]) -> dict[str, str]:
    """The formula of each variable's derivative, with nothing left but variables, constants and
    what is fed; none for a variable whose formula would be too long to read. `ends` are the
    gradients of the variables, as tensors."""
    reader = Reader(graph)
    needed = leading_to(reader.nodes, ends.values())

    def argument(node: Node, tensor: str) -> Expression | None:
        if reader.is_read(node_of(tensor)):
            return reader.composer.name(reader.label(tensor), tensor)
        return None

    ordered = (node for node in graph.nodes if node.name in needed)
    whole = formulas.composed(reader.composer, ordered, argument, LONGEST)
    known = {variable: whole[tensor] for variable, tensor in ends.items()}
    return {
        variable: formula_text.text(formula)
        for variable, formula in known.items()
        if not any(node_of(name.text) in reader.owners for name in ex.names(formula))
    }
