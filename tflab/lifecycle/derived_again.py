"""Derived again: the gradients in a file, compared with those that TensorFlow makes of their loss.

Names and edges suggest which tensor is which gradient. So that it is known, `tf.gradients` derives
the loss once more in a copy of the graph, and a step of the copy computes both. A tensor of the
file is a gradient if it has the same values at every point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf

from tflab.analysis.evaluation import Points
from tflab.analysis.gradient_graph import GradientGraph
from tflab.lifecycle import check_points
from tflab.records.gradients import GradientCall
from tflab.records.graph import makers, node_of, output_name, reach
from tflab.records.options import Options, Program
from tflab.runtime import nodes, private

SCOPE = "derived_again"

Calls = Sequence[tuple[Any, Sequence[Any], Sequence[Any]]]


@dataclass
class Derivation:
    """The calls of gradient functions that `tf.gradients` makes for a loss in a copy of its
    graph."""

    loss: str
    updated: Sequence[str]  # variables
    gated: bool  # whether all gradients of an op wait for one another
    calls: Calls = ()
    of_variables: Sequence[Any] = ()

    def derive(self, copy: tf.Graph) -> list[str]:
        """Derive the loss in this copy; returns the tensors to fetch: none if TensorFlow cannot,
        because an op has a gradient function of the program, or a loop has no context."""
        self.calls, self.of_variables = (), ()
        before = {op.name for op in copy.get_operations()}
        operation = copy.get_operation_by_name
        handles = [operation(name).outputs[0] for name in self.updated if name in before]
        try:
            with copy.as_default(), private.gradient_calls() as calls:
                loss = operation(self.loss).outputs[0]
                slopes = tf.compat.v1.gradients(
                    loss, handles, name=SCOPE, gate_gradients=self.gated
                )
        except Exception:  # TensorFlow raises many types
            return []
        calls = [call for call in calls if call[0].graph is copy]  # not within branches or loops
        self.calls = calls
        self.of_variables = [values_of(slope) for slope in slopes if slope is not None]
        tensors = [values_of(g) for _, given, returned in calls for g in (*given, *returned)]
        every = [
            tensor
            for tensor in (*tensors, *self.of_variables)
            if tensor is not None and tensor.dtype.name.startswith(check_points.REAL)
        ]
        names = dict.fromkeys(map(nodes.tensor_name, every))
        hidden = check_points.within_frames(nodes.from_graph(copy))
        return [name for name in names if node_of(name) not in hidden | before]


def values_of(gradient: Any) -> Any:
    """A gradient as one tensor: of one that is only some rows, these rows."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def checked(
    program: Program, graph: GradientGraph, updates: Mapping[str, Sequence[str]], options: Options
) -> tuple[GradientGraph, tuple[str, ...]]:
    """The graph with the calls of gradient functions of the first loss that is the loss of its
    gradients, and all such losses. `updates` are the nodes that take the gradients of each."""
    confirmed: dict[str, GradientGraph] = {}
    gated = any("/tuple/" in name for name in graph.owners())
    inputs = makers(graph.nodes)
    for loss, names in updates.items():
        variables = tuple(dict.fromkeys(inputs[name][0] for name in names))
        again = Derivation(loss, variables, gated)
        computed = check_points.computed(program, graph, options, (loss,), again.derive)
        if computed.values and again.of_variables:
            match = Match(graph, computed)
            if match.confirms(again, [tensor for name in names for tensor in inputs[name][1:]]):
                confirmed[loss] = match.with_calls(again.calls)
    if confirmed:
        return next(iter(confirmed.values())), tuple(confirmed)
    return replace(graph, points=check_points.computed(program, graph, options)), ()


class Match:
    """Finds the tensors of a file that have the values of gradients derived again."""

    def __init__(self, graph: GradientGraph, computed: Points) -> None:
        self.graph, self.points = graph, computed
        self.types = {node.name: node.op for node in graph.nodes}
        owners = graph.owners()
        self.tensors: dict[str, list[str]] = {}  # forward op, or "" -> tensors of its gradients
        for node in graph.nodes:
            if node.name in owners:
                of_node = (output_name(node.name, place) for place in range(len(node.outputs)))
                self.tensors.setdefault(owners[node.name], []).extend(of_node)
        self.taken: dict[str, str] = {}  # derived again -> tensor of the file

    def confirms(self, again: Derivation, taken: Iterable[str]) -> bool:
        """Whether the file has the gradient of each variable, and its updates take nothing else
        that comes from the first gradient. `taken` are the nodes that updates take. A term of the
        loss fails: its gradients are in the file, and the updates also take those of the others."""
        alike = [self.like(slope, self.tensors) for slope in again.of_variables]
        if not all(alike):
            return False
        inputs = makers(self.graph.nodes)
        cut = {node_of(tensor) for tensors in alike for tensor in tensors}
        behind = reach(cut, inputs)
        first = values_of(again.calls[0][1][0])  # the gradient of the loss by itself
        starts = [other for other in self.like(first, [""]) if node_of(other) in behind]
        starts = self.of_type(first, starts) or starts
        self.taken |= {nodes.tensor_name(first): other for other in starts[:1]}
        rest = reach([name for name in taken if name not in cut], inputs, cut)
        return bool(starts) and rest.isdisjoint(map(node_of, starts))

    def of_type(self, tensor: Any, others: Iterable[str]) -> list[str]:
        return [other for other in others if self.types[node_of(other)] == tensor.op.type]

    def like(self, tensor: Any, owners: Iterable[str]) -> list[str]:
        """The tensors of these owners with the values of a tensor."""
        name = nodes.tensor_name(tensor)
        return [
            other
            for owner in owners
            for other in self.tensors.get(owner, ())
            if self.points.equal(other, name)
        ]

    def place(self, gradient: Any, owner: str) -> str | None:
        """The tensor of the file that is this gradient. Of several that are alike, the next."""
        tensor = values_of(gradient)
        if tensor is None:
            return None
        name = nodes.tensor_name(tensor)
        if name not in self.taken:
            like = self.like(tensor, [owner])
            free = [other for other in like if other not in self.taken.values()]
            if chosen := next(iter(self.of_type(tensor, free) or like), None):
                self.taken[name] = chosen
        return self.taken.get(name)

    def with_calls(self, calls: Calls) -> GradientGraph:
        """The graph with these calls, as far as its tensors have their values."""
        records: list[GradientCall] = []
        rows: set[str] = set()
        for op, given, returned in calls:
            incoming = tuple(self.place(gradient, "") for gradient in given)
            outgoing = tuple(self.place(gradient, op.name) for gradient in returned)
            records.append(GradientCall(op.name, incoming, outgoing))
            pairs = zip((*given, *returned), (*incoming, *outgoing), strict=True)
            rows |= {name for g, name in pairs if name and isinstance(g, tf.IndexedSlices)}
        return replace(self.graph, calls=tuple(records), points=self.points, rows=frozenset(rows))
