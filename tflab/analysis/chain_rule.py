"""Chain rule: the steps from the loss to the variables, as the gradients of a graph take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tflab.analysis import expressions as ex
from tflab.analysis import formula_text, formulas
from tflab.analysis.expressions import Expression
from tflab.analysis.gradient_graph import GradientGraph, Reader, gradient_name, leading_to
from tflab.records.gradients import GradientCall, Link
from tflab.records.graph import Node, node_of

LONGEST = 400  # number of names and ops in a derivative


def links(graph: GradientGraph, ends: Iterable[str]) -> tuple[Link, ...]:
    """The steps of the chain rule that variables need, in the order of the gradient calls, starting
    at the loss."""
    reader = graph.reader
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
    """The factor by which the only incoming gradient is multiplied, if that product (or its sum
    over what was repeated) is the outgoing gradient."""
    if len(incoming) != 1:
        return None, False
    incoming_term = reader.composer.name(reader.incoming_name(forward, incoming[0]), incoming[0])
    factor, added_up = ex.cofactor(value, incoming_term)
    if factor is None:
        return None, False
    product, whole = ex.times(factor, incoming_term), ex.Name("it", None, gradient)
    if reader.points.hold(product, gradient):
        return formula_text.text(factor), False
    summed = ex.operation("SumTo", product, ex.operation("Shape", whole))
    if added_up and reader.points.hold(summed, gradient):
        return formula_text.text(factor), True
    return None, False


def path(links: Sequence[Link], loss: str) -> list[Link]:
    """The longest path from the loss to a variable; each link starts where the previous one
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
    """The `StopGradient` nodes that end a gradient other than 0, although their values depend on
    these variables through differentiable ops."""
    passing = {gradient.forward for gradient in graph.gradients if gradient.function}
    behind = set(variables)
    for node in graph.nodes:  # each node comes after its inputs
        passes = node.op == "StopGradient" or node.name in passing
        if passes and any(node_of(tensor) in behind for tensor in node.inputs):
            behind.add(node.name)
    reader = graph.reader
    arriving = {
        node_of(tensor)
        for call in reader.calls
        for tensor, gradient in reader.returned(call)
        if not graph.points.filled(gradient, 0)
    }
    return tuple(
        node.name
        for node in graph.nodes
        if node.op == "StopGradient" and node.name in behind & arriving
    )


def derivatives(graph: GradientGraph, ends: Mapping[str, str]) -> dict[str, Expression]:
    """The formula of each variable's derivative, from the variable as far towards the loss as it is
    correct.

    The whole formula contains only variables, constants, fed tensors, and forward values without a
    rule. If it is too long to read, or does not give the gradient, the formula covers the steps
    next to the variable, and contains the names of the gradients at which these end (`unwritten`).
    A variable without a single correct step has no formula. `ends` are the gradients of the
    variables, as tensors.
    """
    reader = graph.reader
    needed = leading_to(reader.nodes, ends.values())
    ordered = [node for node in graph.nodes if node.name in needed]

    def argument(node: Node, tensor: str) -> Expression | None:
        if reader.is_read(node_of(tensor)):
            return reader.composer.name(reader.label(tensor), tensor)
        return None

    formulas_by_tensor = formulas.composed(reader.composer, ordered, argument, LONGEST)
    known = {
        variable: formulas_by_tensor[tensor]
        for variable, tensor in ends.items()
        if tensor in formulas_by_tensor
        and not unwritten(graph, formulas_by_tensor[tensor])
        and graph.points.hold(formulas_by_tensor[tensor], tensor)
    }
    if len(known) < len(ends):
        partial = Partial(reader, argument).formulas(ordered)
        known |= {
            variable: partial[tensor]
            for variable, tensor in ends.items()
            if variable not in known
            and tensor in partial
            and gradient_name(variable) not in unwritten(graph, partial[tensor])
            and graph.points.hold(partial[tensor], tensor)
        }
    return {
        variable: graph.points.simplest(known[variable], ends[variable])
        for variable in ends
        if variable in known
    }


def unwritten(graph: GradientGraph, formula: Expression) -> tuple[str, ...]:
    """The names of gradients in a formula, each once."""
    owners = graph.owners()
    names = {name.text for name in ex.names(formula) if node_of(name.tensor) in owners}
    return tuple(sorted(names))


class Partial:
    """Formulas that are checked at every value that has a name: at a step that is wrong or too
    long, the formula ends with that name."""

    def __init__(self, reader: Reader, argument: Callable[[Node, str], Expression | None]) -> None:
        self.reader = reader
        self.whole = argument

    def formulas(self, ordered: Sequence[Node]) -> dict[str, Expression]:
        return formulas.composed(
            self.reader.composer, ordered, self.argument, LONGEST, self.checked
        )

    def argument(self, node: Node, tensor: str) -> Expression | None:
        name = self.reader.names.get(tensor)
        if name and tensor != node_of(tensor):  # formulas are composed of first outputs only
            return self.reader.composer.name(name, tensor)
        return self.whole(node, tensor)

    def checked(self, node: Node, formula: Expression) -> Expression:
        """The formula of a node; otherwise only its last step; otherwise its name."""
        composer, points = self.reader.composer, self.reader.points
        own = node.name not in self.reader.owners
        name = self.reader.label(node.name) if own else self.reader.names.get(node.name)
        if name is None or not points.same(node.name, node.name):
            return formula
        step = self.reader.step(node) if own else self.reader.expressions[node.name]
        for candidate in (formula, step):
            if self.readable(candidate) and points.hold(candidate, node.name):
                return candidate
        return composer.name(name, node.name)

    def readable(self, formula: Expression) -> bool:
        """Whether a formula is short enough and names no gradient node without a meaning of its
        own."""
        return formula.size <= LONGEST and not any(
            node_of(name.text) in self.reader.owners for name in ex.names(formula)
        )
