"""Gradient graph: the formulas of gradient nodes, in terms of forward nodes and incoming gradients,
and the ops at which gradients end.

TensorFlow records the arguments and results of each gradient function (`GradientCall`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tflab.analysis import formulas
from tflab.analysis.expressions import NOWHERE, Expression, Name, Points
from tflab.records.graph import (
    VARIABLES,
    GradientCall,
    Node,
    grouped,
    makers,
    node_of,
    output_name,
    reach,
    turned_around,
    with_makers,
)
from tflab.records.stages import Gradient

PASSES_ON = ("ReadVariableOp", "Identity", "ReadVariableXlaSplitND")  # reads of variables


@dataclass(frozen=True)
class GradientGraph:
    """A differentiated graph, the origin of its nodes, and the names and formulas that follow."""

    nodes: tuple[Node, ...]
    gradients: tuple[Gradient, ...]
    shared: tuple[str, ...]  # nodes that start or add up gradients
    calls: tuple[GradientCall, ...]
    attributes: formulas.Attributes
    points: Points = NOWHERE  # the values that formulas are checked against
    # Tensors of the calls that are only some rows of a gradient (`tf.IndexedSlices`)
    rows: frozenset[str] = frozenset()

    @cached_property
    def composer(self) -> formulas.Composer:
        return formulas.Composer(self.nodes, self.attributes)

    @property
    def by_name(self) -> Mapping[str, Node]:
        return self.composer.nodes

    @cached_property
    def owners(self) -> dict[str, str]:
        """Return the forward node of each gradient node; "" if it belongs to no single op."""
        owners = dict.fromkeys(self.shared, "")
        return owners | {name: g.forward for g in self.gradients for name in g.nodes}

    @cached_property
    def returned(self) -> list[tuple[GradientCall, str, str]]:
        """Return (call, input, gradient) for each returned gradient, except for reads."""
        return [
            (call, tensor, gradient)
            for call in self.calls
            if call.forward not in self.reads
            for tensor, gradient in zip(
                self.by_name[call.forward].inputs, call.returned, strict=False
            )
            if gradient
        ]

    @cached_property
    def incoming(self) -> dict[tuple[str, str], str]:
        """Return, by (op, gradient that it received), the output that the gradient belongs to."""
        return {
            (call.forward, tensor): output_name(call.forward, number)
            for call in self.calls
            for number, tensor in enumerate(call.incoming)
            if tensor
        }

    @cached_property
    def all_rows(self) -> set[str]:
        """Return the tensors that are only some rows, and the tensors that join such rows."""
        rows = set(self.rows)
        for name in self.shared:
            node = self.by_name[name]
            if node.op == "ConcatV2" and node.inputs[0] in rows:
                rows.add(name)
        return rows

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the gradient that each tensor is or contributes to."""
        names: dict[str, str] = {}
        for call, tensor, gradient in self.returned:
            names.setdefault(gradient, self.contribution(call, tensor, gradient))
        names |= {name: self.named(label, name) for name, label in self.sums}
        for name in self.shared:  # contributions of rows, as tensors of all rows
            if self.adds_rows(name):
                part = names.get(self.by_name[name].inputs[0], "")
                names.setdefault(name, part.removeprefix("rows of "))
        return names

    @cached_property
    def whole(self) -> dict[str, str]:
        """Return the tensor that is the whole gradient with respect to each value."""
        alone = {self.label(t): gradient for _, t, gradient in self.returned if self.is_whole(t)}
        return alone | {label: name for name, label in self.sums}

    @cached_property
    def expressions(self) -> dict[str, Expression]:
        """Return the formulas of the gradient nodes, by tensor; none if no values check them."""
        if not self.points.values:
            return {}
        gradient_nodes = (node for node in self.nodes if node.name in self.owners)
        return formulas.composed(self.composer, gradient_nodes, self.argument)

    @cached_property
    def reads(self) -> dict[str, str]:
        """Return the variable that each node reads, if reading is all that the node does."""
        variables = {node.name for node in self.nodes if node.op in VARIABLES}
        readers = (node for node in self.nodes if node.op in PASSES_ON and node.inputs)
        sources = {node.name: node_of(node.inputs[0]) for node in readers}
        return {name: source for name, source in sources.items() if source in variables}

    def label(self, tensor: str) -> str:
        """Return a forward tensor's name in formulas: that of the variable, if it is a read."""
        return self.reads.get(node_of(tensor), tensor)

    @cached_property
    def uses(self) -> Counter[str]:
        """Return how often each value is used by the forward ops that lead to the loss."""
        return Counter(
            self.label(tensor)
            for name in with_makers(self.nodes, self.called)
            if name not in self.owners
            for tensor in self.by_name[name].inputs
        )

    @cached_property
    def called(self) -> set[str]:
        return {call.forward for call in self.calls}

    @cached_property
    def parts(self) -> Counter[str]:
        """Return how many ops contribute to the gradient with respect to each value."""
        return Counter(self.label(tensor) for _, tensor, _ in self.returned)

    def named(self, label: str, gradient: str) -> str:
        """Return `dL/dy`, or `rows of dL/dy`."""
        return "rows of " * (gradient in self.all_rows) + gradient_name(label)

    def contribution(self, call: GradientCall, tensor: str, gradient: str) -> str:
        """Return `dL/dy`, or `dL/dy by mul` if other ops contribute to it too, and `dL/dy by
        mul[0]` and `dL/dy by mul[1]` if that op takes y as both of its inputs."""
        label = self.label(tensor)
        name = self.named(label, gradient)
        if self.is_whole(tensor):
            return name
        inputs = self.by_name[call.forward].inputs
        places = [place for place, taken in enumerate(inputs) if self.label(taken) == label]
        here = [place for place in places if call.returned[place : place + 1] == (gradient,)]
        return f"{name} by {call.forward}" + (f"[{here[0]}]" if len(places) > 1 else "")

    def is_whole(self, tensor: str) -> bool:
        """Return whether a single op contributes to the gradient with respect to a value. If the
        value needs no gradient, it counts as whole only if no other op uses the value."""
        label, node = self.label(tensor), node_of(tensor)
        is_shown = node in self.reads or node in self.called
        return self.parts[label] == 1 and (is_shown or self.uses[label] == 1)

    @cached_property
    def sums(self) -> list[tuple[str, str]]:
        """Return (node, value) for the nodes that add up what several ops contribute to a gradient.
        Gradients of only some rows are joined one after another, or become tensors of all rows."""
        parts: dict[str, Counter[str]] = {}
        for _, tensor, gradient in self.returned:
            parts.setdefault(self.label(tensor), Counter())[gradient] += 1
        labels = grouped((frozenset(part.items()), label) for label, part in parts.items())
        added: dict[str, Counter[str]] = {}  # node -> what it adds up
        for name in self.shared:
            inputs = self.by_name[name].inputs
            if name in self.all_rows:
                inputs = inputs[:-1]
            elif self.adds_rows(name):
                inputs = inputs[:1]
            elif self.by_name[name].op != "AddN":
                continue
            added[name] = sum((added.get(t, Counter({t: 1})) for t in inputs), Counter())
        return [
            (name, label)
            for name, terms in added.items()
            for label in labels.get(frozenset(terms.items()), ())
        ]

    def adds_rows(self, name: str) -> bool:
        """Return whether a node makes a tensor of all rows from some rows of a gradient."""
        node = self.by_name[name]
        return node.op == "UnsortedSegmentSum" and node.inputs[0] in self.all_rows

    def argument(self, node: Node, tensor: str) -> Expression | None:
        """Return the name that stands for an input; None if the input's own formula does."""
        owner = self.owners[node.name]
        if node_of(tensor) not in self.owners:
            return self.forward_name(tensor)
        if (owner, tensor) in self.incoming:
            return Name(self.named(self.label(self.incoming[owner, tensor]), tensor), tensor)
        if self.owners[node_of(tensor)] != owner or not owner:
            name = self.names.get(tensor)
            return Name(name, tensor) if name else None
        return None

    def forward_name(self, tensor: str) -> Expression:
        """Return a forward tensor as its name, a number or the derivative of a cross entropy."""
        node = self.by_name.get(node_of(tensor))
        if node is None:
            return Name(tensor, tensor)
        if node.op in formulas.DERIVATIVES and tensor.endswith(":1"):
            args = [Name(self.label(t), t) for t in node.inputs]
            if derivative := formulas.applied(formulas.DERIVATIVES[node.op], args):
                return derivative
        return self.composer.constant(node) or Name(self.label(tensor), tensor)

    def gradient_text(self, tensor: str) -> str:
        """Return the formula of a gradient as it is printed. Return "" if the formula does not give
        this tensor, or is only the name of another gradient node."""
        if tensor not in self.texts:
            formula = self.expressions.get(tensor, Name(tensor, tensor))
            is_node = isinstance(formula, Name) and node_of(formula.id) in self.owners
            self.texts[tensor] = "" if is_node else self.points.text(formula, tensor)
        return self.texts[tensor]

    def lacks(self, tensor: str) -> str:
        """Return why the formula of a gradient is not printed."""
        formula = self.expressions.get(tensor, Name(tensor, tensor))
        if not self.points.values:
            return "no values could be computed"
        if not isinstance(formula, Name) or node_of(formula.id) not in self.owners:
            return "the values did not confirm the formula"
        known = not isinstance(self.expressions.get(formula.id, formula), Name)
        return "the formula is too long" if known else "tflab has no rule for such gradients"

    @cached_property
    def texts(self) -> dict[str, str]:
        return {}

    def computes(self, name: str) -> str:
        """Return a forward node's formula in terms of its inputs; "" if it gives another value."""
        node = self.by_name[name]
        formula = self.composer.formula(node, [*map(self.forward_name, node.inputs)])
        return self.points.text(formula, name)


def gradient_name(label: str) -> str:
    """Return `dL/dy`, or `dL/d(mul_1)` if the name needs brackets to be readable."""
    return f"dL/d{label}" if label.isalpha() and len(label) == 1 else f"dL/d({label})"


# Where the gradient stops

MOST_STOPS = 3  # stops that are named for one node
RETURNED_NONE = "its gradient function returned none"
ZEROS = "its gradient function returned only zeros"


@dataclass(frozen=True)
class Stops:
    """For each node that no gradient reaches: the ops at which its gradients end."""

    reasons: Mapping[str, str]  # why an op hands no gradient on
    ways: Mapping[str, Mapping[str, str]]  # node -> op at its end -> the next node on the way
    towards_loss: Mapping[str, str]  # node -> the next one on a shortest way to the loss

    def at(self, name: str) -> tuple[str, ...]:
        return tuple(end for end in self.ways.get(name, ()) if end in self.reasons)

    def path(self, name: str, stop: str) -> Iterator[str]:
        """Yield the nodes from this one to the op that ends its gradient, and on to the loss."""
        while name != stop:
            yield name
            name = self.ways[name][stop]
        while name:
            yield name
            name = self.towards_loss.get(name, "")


def stops(
    nodes: Sequence[Node],
    loss: str,
    without: Mapping[str, str],
    handed: Mapping[tuple[str, str], str],
) -> Stops:
    """Return where gradients stop in a graph. `without` says why ops have no gradient. `handed`
    says, by (op, node of the input), what is wrong with the gradient that a gradient function
    returned; "" if nothing is. If several such ops follow one another, the nearest to the node
    counts."""
    inputs = makers(nodes)
    users = turned_around(inputs)
    given = {
        name: [at for at in before if handed.get((name, at)) == ""]
        for name, before in inputs.items()
    }
    reached = reach([loss], given)
    reasons = dict(without)
    ways: dict[str, dict[str, str]] = {}
    waiting: deque[str] = deque()
    for node in nodes:
        ends = [user for user in users.get(node.name, ()) if user in reached]
        if node.name not in reached and ends:
            ways[node.name] = dict(zip(ends[:MOST_STOPS], ends, strict=False))
            waiting.append(node.name)
            wrongs = {end: handed.get((end, node.name)) for end in ends if end not in without}
            reasons |= {end: wrong for end, wrong in wrongs.items() if wrong}
    while waiting:
        name = waiting.popleft()
        ends = [name] if name in without else [*ways[name]]
        for before in dict.fromkeys(inputs.get(name, ())):
            if before in reached or before not in inputs:
                continue
            known = ways.setdefault(before, {})
            new = [end for end in ends if end not in known][: MOST_STOPS - len(known)]
            if new:
                known |= dict.fromkeys(new, name)
                waiting.append(before)
    towards = {loss: ""}  # on shortest ways
    waiting = deque(towards)
    while waiting:
        name = waiting.popleft()
        for before in inputs.get(name, ()):
            if before not in towards:
                towards[before] = name
                waiting.append(before)
    return Stops(reasons, ways, towards)
