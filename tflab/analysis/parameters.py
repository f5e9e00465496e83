"""Parameters: how many numbers a graph learns, by its variables and the ops that update them.

A graph does not say which of its variables are trained; the ops that update them do. An optimiser's
own op (`ResourceApplyAdam`, `SparseApplyFtrl`) takes the trained variable first and its slots after
it. Scatters and assignments update anything: the table of an embedding, but also a slot, a moving
average or a counter. In these cases a variable is trained if its update depends on what the forward
pass computed from it, as a gradient does. The forward pass is everything that leads to the loss, or
to any other result that is not an update.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tflab.analysis import critical_path
from tflab.analysis.gradient_search import OPTIMISERS, UPDATES
from tflab.records.graph import Node, Shape, makers, reach
from tflab.records.placed import Transfer

TO_OTHERS = ("_HostRecv", "_HostSend", "_Recv", "_Retval", "_Send")
PASSING = ("Enter", "Identity", "ReadVariableOp", "RefEnter", "RefIdentity", "Switch", *TO_OTHERS)
NO_RESULT = (
    "Assert",
    "IsVariableInitialized",
    "SaveV2",
    "VarIsInitializedOp",
    "_HostSend",
    "_Send",
)


@dataclass(frozen=True)
class Variable:
    """A node that is a variable. Nodes of one shared name are one variable."""

    name: str
    shared_name: str
    shape: Shape


@dataclass(frozen=True)
class Parameters:
    """The variables of a graph, and their elements. Trained variables are those that updates
    train."""

    variables: int
    elements: int  # of variables with a known shape
    trained_variables: int
    trained_elements: int | None  # None if some variables are undecided
    undecided_variables: int  # updated in a graph without a loss: trained variables, or slots
    without_shape: int  # variables whose elements cannot be counted
    ran: bool  # whether this is the graph that ran, which has only the variables of its steps


def count(
    nodes: Iterable[Node], variables: Iterable[Variable], transfers: Iterable[Transfer] = ()
) -> Parameters:
    nodes = list(nodes)
    of_name: dict[str, Variable] = {}
    shared: dict[str, str] = {}  # node -> the shared name of its variable
    for variable in variables:
        of_name.setdefault(variable.shared_name, variable)
        shared[variable.name] = variable.shared_name
    trained, undecided = Updates(nodes, shared, transfers).trained()
    return Parameters(
        variables=len(of_name),
        elements=elements(of_name.values()),
        trained_variables=len(trained),
        trained_elements=None if undecided else elements(of_name[name] for name in trained),
        undecided_variables=len(undecided),
        without_shape=sum(size(variable) is None for variable in of_name.values()),
        ran=all(node.device for node in nodes),
    )


def elements(variables: Iterable[Variable]) -> int:
    return sum(size(variable) or 0 for variable in variables)


def size(variable: Variable) -> int | None:
    """The number of elements; None if the shape is open."""
    dims = [dim for dim in variable.shape or () if dim is not None]
    whole = variable.shape is not None and len(dims) == len(variable.shape)
    return prod(dims) if whole else None


OTHER = 1  # the bit of everything that is not a variable: data, random numbers


class Updates:
    """Which variables of a graph affect which updates, with one bit for each variable."""

    def __init__(
        self, nodes: Sequence[Node], shared: Mapping[str, str], transfers: Iterable[Transfer]
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        names = dict.fromkeys(shared.values())
        self.bits = {name: OTHER << place for place, name in enumerate(names, start=1)}
        self.variable = dict(shared)  # node -> the variable that it is, or only passes on
        self.inputs = makers(nodes)
        for transfer in transfers:
            if transfer.recv in self.nodes:
                self.inputs[transfer.recv].append(transfer.send)
        self.consumed = {name for tensors in self.inputs.values() for name in tensors}
        self.updates = {
            name: [one for one in node.control_inputs if is_update(self.nodes.get(one))]
            for name, node in self.nodes.items()
        }
        parents = {
            name: [one for one in (*self.inputs[name], *self.updates[name]) if one in self.nodes]
            for name in self.nodes
        }
        self.order = list(critical_path.in_order(parents))
        for name in self.order:
            tensors = self.inputs[name][:1]
            if self.nodes[name].op in PASSING and tensors and tensors[0] in self.variable:
                self.variable[name] = self.variable[tensors[0]]
        self.old = self.old_values()

    def old_values(self) -> dict[str, int]:
        """For each node, the variables whose values before the step it depends on."""
        bits: dict[str, int] = {}
        for name in self.order:
            if is_update(self.nodes[name]) or self.updates_before(name):
                bits[name] = 0
            elif name in self.variable:
                bits[name] = self.bits[self.variable[name]]
            elif self.inputs[name]:
                bits[name] = union(bits, self.inputs[name])
            else:
                bits[name] = 0 if self.nodes[name].op == "Const" else OTHER
        return bits

    def through(self, forward: Container[str]) -> dict[str, int]:
        """For each node, the variables on which it depends through a node of the forward pass,
        including through values that were written to another variable."""
        bits: dict[str, int] = {}
        for name in self.order:
            own = self.old[name] if name in forward else 0
            bits[name] = own | union(bits, [*self.inputs[name], *self.updates_before(name)])
        return bits

    def updates_before(self, name: str) -> list[str]:
        """The updates after which a node reads the variable that they change."""
        variable = self.variable.get(name)
        return [one for one in self.updates[name] if self.owner(self.nodes[one]) == variable]

    def owner(self, node: Node) -> str | None:
        """The variable that an update changes."""
        inputs = self.inputs[node.name]
        return self.variable.get(inputs[0]) if inputs else None

    def trained(self) -> tuple[set[str], set[str]]:
        """The variables that are trained, and those that may be, because the graph has no loss."""
        updates = [(node, self.owner(node)) for node in self.nodes.values() if is_update(node)]
        by_optimiser = [
            (node, owner) for node, owner in updates if owner and OPTIMISERS.fullmatch(node.op)
        ]
        certain = {owner for _, owner in by_optimiser}
        taken = (name for node, _ in by_optimiser for name in self.inputs[node.name][1:])
        known = certain | {self.variable[name] for name in taken if name in self.variable}
        results = [name for name, node in self.nodes.items() if self.is_result(node)]
        lost = not union(self.old, results) & ~OTHER
        forward = set(self.nodes) if lost else self.leading_to(results)
        gradients = self.through(forward)
        rest = set()
        for node, owner in updates:
            values = self.inputs[node.name][1:]
            by_gradient = union(gradients, values)
            if owner is None or owner in known or not by_gradient & self.bits[owner]:
                continue
            if (by_gradient | union(self.old, values)) & ~self.bits[owner]:
                rest.add(owner)
        return (certain, rest) if lost else (certain | rest, set())

    def leading_to(self, results: Iterable[str]) -> set[str]:
        """The results and everything they are computed from, except nodes that only pass a variable
        on."""
        return reach(results, self.inputs) - self.variable.keys()

    def is_result(self, node: Node) -> bool:
        """Whether it makes a value that no other node takes, other than the value of a variable."""
        return (
            node.name not in self.consumed
            and node.name not in self.variable
            and node.op not in NO_RESULT
            and not is_update(node)
        )


def union(bits: Mapping[str, int], names: Iterable[str]) -> int:
    together = 0
    for name in names:
        together |= bits.get(name, 0)
    return together


def is_update(node: Node | None) -> bool:
    return node is not None and UPDATES.fullmatch(node.op) is not None
