"""Gradient graph: the formulas of gradient nodes, in terms of forward nodes and incoming gradients.

TensorFlow records the arguments and results of each gradient function (`GradientCall`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tflab.analysis import formulas, op_rules
from tflab.analysis.evaluation import NOWHERE, Points
from tflab.analysis.expressions import Expression, Name
from tflab.records.gradients import GradientCall
from tflab.records.graph import VARIABLES, Node, node_of, output_name, with_makers
from tflab.records.stages import Gradient

PASSES_ON = ("ReadVariableOp", "Identity", "ReadVariableXlaSplitND")  # reads of variables


@dataclass(frozen=True)
class GradientGraph:
    """The nodes of a differentiated graph, and what is known about their origin."""

    nodes: tuple[Node, ...]
    gradients: tuple[Gradient, ...]
    shared: tuple[str, ...]  # that start or add up gradients
    calls: tuple[GradientCall, ...]
    attributes: formulas.Attributes
    points: Points = NOWHERE  # the values that formulas are checked against
    # Tensors of the calls that are only some rows of a gradient (`tf.IndexedSlices`)
    rows: frozenset[str] = frozenset()

    def owners(self) -> dict[str, str]:
        """Return the forward node of each gradient node; "" if it belongs to no single op."""
        owners = dict.fromkeys(self.shared, "")
        return owners | {name: g.forward for g in self.gradients for name in g.nodes}

    @cached_property
    def reader(self) -> Reader:
        return Reader(self)


class Reader:
    """Derives formulas from a differentiated graph."""

    def __init__(self, graph: GradientGraph) -> None:
        self.graph = graph
        self.composer = formulas.Composer(graph.nodes, graph.attributes)
        self.nodes = self.composer.nodes
        self.owners = graph.owners()
        self.points = graph.points
        self.called = {call.forward for call in graph.calls}
        self.calls = [call for call in graph.calls if not self.is_read(call.forward)]
        self.incoming = {
            (call.forward, tensor): output_name(call.forward, number)
            for call in graph.calls
            for number, tensor in enumerate(call.incoming)
            if tensor
        }
        self.parts = Counter(
            self.label(tensor) for call in self.calls for tensor, _ in self.returned(call)
        )
        self.uses = self.counted_uses()
        self.rows = set(graph.rows)
        self.names: dict[str, str] = {}
        self.whole: dict[str, str] = {}  # value -> the tensor that is its whole gradient
        for call in self.calls:
            for tensor, gradient in self.returned(call):
                self.names.setdefault(gradient, self.contribution(call, tensor, gradient))
                if self.is_whole(tensor):
                    self.whole[self.label(tensor)] = gradient
        for name, label in self.sums():
            self.names[name] = "rows of " * (name in self.rows) + gradient_name(label)
            self.whole[label] = name
        for name in graph.shared:  # contributions of rows, as tensors of all rows
            if self.is_of_rows(name, "UnsortedSegmentSum"):
                part = self.names.get(self.nodes[name].inputs[0], "")
                self.names.setdefault(name, part.removeprefix("rows of "))

    @cached_property
    def starts(self) -> set[str]:
        """What gradient functions received that none of them made: the gradient of the loss with
        respect to itself, and sums."""
        return {tensor for _, tensor in self.incoming if not self.owners.get(node_of(tensor))}

    @cached_property
    def expressions(self) -> dict[str, Expression]:
        """The formulas of the gradient nodes, by tensor; none without values to check them."""
        if not self.points.values:
            return {}
        gradient_nodes = (node for node in self.graph.nodes if node.name in self.owners)
        return formulas.composed(self.composer, gradient_nodes, self.argument)

    def label(self, tensor: str) -> str:
        """Return the name of a forward tensor in a formula: the value of a variable has the
        variable's name."""
        node = self.nodes.get(node_of(tensor))
        if node is not None and self.is_read(node.name):
            return node_of(node.inputs[0])
        return tensor

    def is_read(self, name: str) -> bool:
        """Return whether a node only reads a variable."""
        node = self.nodes.get(name)
        if node is None or node.op not in PASSES_ON or not node.inputs:
            return False
        source = self.nodes.get(node_of(node.inputs[0]))
        return source is not None and source.op in VARIABLES

    def counted_uses(self) -> Counter[str]:
        """Return how often each value is used by the forward ops that lead to the loss."""
        forward = with_makers(self.graph.nodes, (call.forward for call in self.graph.calls))
        return Counter(
            self.label(tensor)
            for name in forward
            if name not in self.owners
            for tensor in self.nodes[name].inputs
        )

    def returned(self, call: GradientCall) -> Iterable[tuple[str, str]]:
        """Return each input of the forward op of a call that has a gradient, with that."""
        inputs = self.nodes[call.forward].inputs
        pairs = zip(inputs, call.returned, strict=False)
        return [(tensor, gradient) for tensor, gradient in pairs if gradient]

    def contribution(self, call: GradientCall, tensor: str, gradient: str) -> str:
        """Return `dL/dy`, or `dL/dy by mul` if other ops contribute to it too, and `dL/dy by
        mul[0]` and `dL/dy by mul[1]` if that op takes y as both of its inputs."""
        label = self.label(tensor)
        name = "rows of " * (gradient in self.rows) + gradient_name(label)
        if self.is_whole(tensor):
            return name
        inputs = self.nodes[call.forward].inputs
        places = [place for place, taken in enumerate(inputs) if self.label(taken) == label]
        here = [place for place in places if call.returned[place : place + 1] == (gradient,)]
        return f"{name} by {call.forward}" + (f"[{here[0]}]" if len(places) > 1 else "")

    def is_whole(self, tensor: str) -> bool:
        """Return whether a single op contributes to the gradient with respect to a value.

        A gradient function also makes gradients of values that need none; such a gradient is whole
        only if no other op uses the value.
        """
        label = self.label(tensor)
        is_shown = self.is_read(node_of(tensor)) or node_of(tensor) in self.called
        return self.parts[label] == 1 and (is_shown or self.uses[label] == 1)

    def sums(self) -> Iterable[tuple[str, str]]:
        """Yield (node, value) for the nodes that add up the contributions of several ops to a
        gradient. Contributions of rows are put one after the other, or made tensors of all rows."""
        parts: dict[str, Counter[str]] = {}
        for call in self.calls:
            for tensor, gradient in self.returned(call):
                parts.setdefault(self.label(tensor), Counter())[gradient] += 1
        labels: dict[frozenset[tuple[str, int]], list[str]] = {}
        for label, part in parts.items():
            labels.setdefault(frozenset(part.items()), []).append(label)
        added: dict[str, Counter[str]] = {}  # node -> what it adds up
        for name in self.graph.shared:
            inputs = self.nodes[name].inputs
            if self.is_of_rows(name, "ConcatV2"):
                inputs = inputs[:-1]
                self.rows.add(name)
            elif self.is_of_rows(name, "UnsortedSegmentSum"):
                inputs = inputs[:1]
            elif self.nodes[name].op != "AddN":
                continue
            terms = (added.get(t, Counter({t: 1})) for t in inputs)
            added[name] = sum(terms, Counter())
            for label in labels.get(frozenset(added[name].items()), ()):
                yield name, label

    def is_of_rows(self, name: str, op: str) -> bool:
        """Return whether a node is of this type, and takes rows of gradients."""
        node = self.nodes[name]
        return node.op == op and bool(node.inputs) and node.inputs[0] in self.rows

    def argument(self, node: Node, tensor: str) -> Expression | None:
        """Return the name of an input of a gradient node in formulas; None if that input's own
        formula is used."""
        owner = self.owners[node.name]
        if node_of(tensor) not in self.owners:
            return self.forward_name(tensor)
        if (owner, tensor) in self.incoming:
            return Name(self.incoming_name(owner, tensor), tensor)
        if self.owners[node_of(tensor)] != owner or not owner:
            name = self.names.get(tensor)
            return Name(name, tensor) if name else None
        return None

    def forward_name(self, tensor: str) -> Expression:
        """Return the name of a forward value; for the second output of a cross entropy, its
        formula."""
        node = self.nodes.get(node_of(tensor))
        if node is None:
            return Name(tensor, tensor)
        if node.op in op_rules.DERIVATIVES and tensor.endswith(":1"):
            args = [Name(self.label(t), t) for t in node.inputs]
            if derivative := op_rules.applied(op_rules.DERIVATIVES[node.op], args):
                return derivative
        return self.composer.constant(node) or Name(self.label(tensor), tensor)

    def incoming_name(self, forward: str, tensor: str) -> str:
        """Return the name of the gradient with respect to an op's output, as its gradient function
        received it."""
        name = gradient_name(self.label(self.incoming[forward, tensor]))
        return "rows of " * (tensor in self.rows) + name

    def text(self, formula: Expression, tensor: str) -> str:
        """Return a formula as it is printed; "" if it does not give this tensor, or is only the
        name of another gradient node."""
        if isinstance(formula, Name) and node_of(formula.id) in self.owners:
            return ""
        return self.points.text(formula, tensor)

    def computes(self, name: str) -> str:
        """Return the formula of a forward node in terms of its inputs; "" if that does not give its
        value."""
        return self.text(self.step(self.nodes[name]), name)

    def step(self, node: Node) -> Expression:
        """Return the formula of a forward node in terms of the values that go into it,
        unchecked."""
        return self.composer.formula(node, [self.forward_name(tensor) for tensor in node.inputs])


def gradient_name(label: str) -> str:
    """Return `dL/dy`, or `dL/d(mul_1)` if the name needs brackets to be readable."""
    return f"dL/d{label}" if label.isalpha() and len(label) == 1 else f"dL/d({label})"
