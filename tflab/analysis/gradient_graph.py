"""Gradient graph: the formulas of gradient nodes, over forward nodes and incoming gradients.

What a gradient function was given and what it returned is TensorFlow's own note (`GradientCall`);
for graphs from files it is inferred from who takes what from whom. No TensorFlow in here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tflab.analysis import formula_text, formulas, op_rules
from tflab.analysis.expressions import Expression
from tflab.records import Gradient, GradientCall, Node, node_of

PASSES_ON = ("ReadVariableOp", "Identity", "ReadVariableXlaSplitND")  # reads of variables
VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


@dataclass(frozen=True)
class GradientGraph:
    """The nodes of a differentiated graph, and what is known of where they came from."""

    nodes: tuple[Node, ...]
    gradients: tuple[Gradient, ...]
    shared: tuple[str, ...]  # that start or add up gradients
    calls: tuple[GradientCall, ...]
    attributes: formulas.Attributes

    def owners(self) -> dict[str, str]:
        """Each gradient node's forward node; "" for those that belong to no one op."""
        owners = dict.fromkeys(self.shared, "")
        return owners | {name: g.forward for g in self.gradients for name in g.nodes}


class Reader:
    """Reads formulas off a differentiated graph."""

    def __init__(self, graph: GradientGraph) -> None:
        self.graph = graph
        self.composer = formulas.Composer(graph.nodes, graph.attributes)
        self.nodes = self.composer.nodes
        self.owners = graph.owners()
        self.incoming = {
            (call.forward, tensor): f"{call.forward}:{number}" if number else call.forward
            for call in graph.calls
            for number, tensor in enumerate(call.incoming)
            if tensor
        }
        self.parts = Counter(
            self.label(tensor)
            for call in graph.calls
            if not self.is_read(call.forward)
            for tensor, gradient in self.returned(call)
            if gradient
        )
        self.names: dict[str, str] = {}
        for call in graph.calls:
            if not self.is_read(call.forward):
                for tensor, gradient in self.returned(call):
                    self.names.setdefault(gradient, self.contribution(call, tensor))
        self.names |= dict(self.sums())
        self.expressions = formulas.composed(
            self.composer, (n for n in graph.nodes if n.name in self.owners), self.argument
        )

    def label(self, tensor: str) -> str:
        """What a formula calls a forward tensor: a variable's value bears the variable's name."""
        node = self.nodes.get(node_of(tensor))
        if node is not None and self.is_read(node.name):
            return node_of(node.inputs[0])
        return tensor

    def is_read(self, name: str) -> bool:
        """Whether a node only reads a variable."""
        node = self.nodes.get(name)
        if node is None or node.op not in PASSES_ON or not node.inputs:
            return False
        source = self.nodes.get(node_of(node.inputs[0]))
        return source is not None and source.op in VARIABLES

    def returned(self, call: GradientCall) -> Iterable[tuple[str, str]]:
        """(input of the forward op, gradient by it) of one call."""
        inputs = self.nodes[call.forward].inputs
        pairs = zip(inputs, call.returned, strict=False)
        return [(tensor, gradient) for tensor, gradient in pairs if gradient]

    def contribution(self, call: GradientCall, tensor: str) -> str:
        """`dL/dy`; `dL/dy by mul` where other ops contribute to it, too."""
        name = gradient_name(self.label(tensor))
        return name if self.parts[self.label(tensor)] == 1 else f"{name} by {call.forward}"

    def sums(self) -> Iterable[tuple[str, str]]:
        """The nodes that add up what several ops contributed to one gradient."""
        owner: dict[str, str] = {}
        for call in self.graph.calls:
            if not self.is_read(call.forward):
                owner |= {gradient: self.label(t) for t, gradient in self.returned(call)}
        for name in self.graph.shared:
            node = self.nodes[name]
            labels = {owner.get(tensor) for tensor in node.inputs}
            if node.op == "AddN" and len(labels) == 1 and None not in labels:
                yield name, gradient_name(*filter(None, labels))

    def argument(self, node: Node, tensor: str) -> Expression | None:
        """How a gradient node calls one of its inputs; None: by that input's own formula."""
        owner = self.owners[node.name]
        if node_of(tensor) not in self.owners:
            return self.forward_name(tensor)
        if (owner, tensor) in self.incoming:
            label = self.label(self.incoming[owner, tensor])
            return self.composer.name(gradient_name(label), tensor)
        if self.owners[node_of(tensor)] != owner or not owner:
            name = self.names.get(tensor)
            return self.composer.name(name, tensor) if name else None
        return None

    def forward_name(self, tensor: str) -> Expression:
        """A forward value under its name; of a cross entropy's second output, the formula."""
        node = self.nodes.get(node_of(tensor))
        if node is None:
            return self.composer.name(tensor, tensor)
        if node.op in op_rules.DERIVATIVES and tensor.endswith(":1"):
            args = [self.composer.name(self.label(t), t) for t in node.inputs]
            return op_rules.DERIVATIVES[node.op](*args)
        return self.composer.constant(node) or self.composer.name(self.label(tensor), tensor)

    def computes(self, name: str) -> str:
        """What a forward node computes of the values that go into it."""
        node = self.nodes[name]
        args = [self.forward_name(tensor) for tensor in node.inputs]
        return formula_text.text(self.composer.formula(node, args))


def gradient_name(label: str) -> str:
    """`dL/dy`, and `dL/d(mul_1)` for what would be hard to read otherwise."""
    return f"dL/d{label}" if label.isalpha() and len(label) == 1 else f"dL/d({label})"


def leading_to(nodes: Mapping[str, Node], ends: Iterable[str]) -> set[str]:
    """All nodes whose values are needed for these tensors."""
    needed, waiting = set(), [node_of(tensor) for tensor in ends]
    while waiting:
        name = waiting.pop()
        if name not in needed and name in nodes:
            needed.add(name)
            waiting.extend(map(node_of, nodes[name].inputs))
    return needed
