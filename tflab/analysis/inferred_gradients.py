"""Inferred gradients: the results of gradient functions, if only the graph is known.

A graph from a file has no record of them. If the gradient of one op passes a tensor to the gradient
of another op, from which the first op takes an input, the tensor is the gradient with respect to
that input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tflab.analysis.formulas import Attributes
from tflab.analysis.gradient_graph import VARIABLES, GradientGraph
from tflab.records.gradients import GradientCall
from tflab.records.graph import Node, node_of
from tflab.records.stages import Gradient


def graph_of(
    nodes: Sequence[Node],
    gradients: Sequence[Gradient],
    shared: Sequence[str],
    attributes: Attributes,
) -> GradientGraph:
    """The differentiated graph, with the calls of gradient functions as its edges show them.

    `shared` are the gradient nodes that belong to no single op.
    """
    return GradientGraph(
        nodes=tuple(nodes),
        gradients=tuple(gradients),
        shared=tuple(shared),
        calls=tuple(Inference(nodes, gradients, shared).calls()),
        attributes=attributes,
    )


def ends(graph: GradientGraph) -> list[str]:
    """The gradients that other nodes of the graph take; all of them if there are none."""
    owners = graph.owners()
    others = (node for node in graph.nodes if node.name not in owners)
    outer_inputs = [
        tensor for node in others for tensor in node.inputs if node_of(tensor) in owners
    ]
    return outer_inputs or [tensor for call in graph.calls for tensor in call.returned if tensor]


class Inference:
    """Finds the tensors that the gradient of one op passes to that of another."""

    def __init__(
        self, nodes: Sequence[Node], gradients: Sequence[Gradient], shared: Sequence[str]
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.gradients = gradients
        adding = (name for name in shared if self.nodes[name].op in ("AddN", "Fill"))
        self.adding = frozenset(adding)  # the nodes that start or add up gradients
        self.owners = {name: g.forward for g in gradients for name in g.nodes}
        self.made = {gradient.forward: gradient.nodes for gradient in gradients}
        self.users: dict[str, list[Node]] = {}
        for node in nodes:
            for tensor in node.inputs:
                self.users.setdefault(tensor, []).append(node)

    def calls(self) -> Iterator[GradientCall]:
        """A call for each forward op with gradient nodes, the last op first."""
        crossing: dict[str, list[str]] = {}
        for tensor, owner in self.crossing():
            crossing.setdefault(owner, []).append(tensor)
        for gradient in reversed(self.gradients):
            forward = self.nodes[gradient.forward]
            yield GradientCall(
                forward=forward.name,
                incoming=self.incoming(forward, crossing.get(forward.name, ())),
                returned=tuple(self.returned(forward, tensor) for tensor in forward.inputs),
            )

    def crossing(self) -> Iterator[tuple[str, str]]:
        """(tensor, forward op): the tensors that the gradient of an op takes from other
        gradients."""
        for name, owner in self.owners.items():
            for tensor in self.nodes[name].inputs:
                source = node_of(tensor)
                if self.owners.get(source, owner) != owner or source in self.adding:
                    yield tensor, owner

    def incoming(self, forward: Node, crossing: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(crossing))[: max(1, len(forward.outputs))]

    def returned(self, forward: Node, tensor: str) -> str | None:
        """The gradient with respect to one input: the tensor that the gradient of that input's op
        takes."""
        maker = self.maker(tensor)
        return next((name for name in self.made[forward.name] if self.goes_to(name, maker)), None)

    def maker(self, tensor: str) -> str:
        """The op with gradient nodes, or the variable, that a tensor comes from."""
        name, seen = node_of(tensor), set()
        while name not in self.made and name not in seen and name in self.nodes:
            seen.add(name)  # a loop returns to itself
            name = node_of((*self.nodes[name].inputs, name)[0])
        return name

    def goes_to(self, tensor: str, maker: str) -> bool:
        for user in self.users.get(tensor, ()):
            if user.name in self.adding and self.goes_to(user.name, maker):
                return True
            if self.owners.get(user.name) == maker and self.owners.get(tensor) != maker:
                return True
            updated = user.name not in self.owners and user.inputs and user.inputs[0] == maker
            if updated and self.nodes[maker].op in VARIABLES:
                return True
        return False
