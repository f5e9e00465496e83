"""Graphs: nodes, the tensors between them, the lines that made them, their reads and writes, and
what gradients mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

Shape = tuple[int | None, ...] | None  # None: not even the rank is known

# The phases of a training step. Gradients are backward; nodes that use gradients are update
# (clipping, the optimiser's own ops); everything else is forward.
FORWARD, BACKWARD, UPDATE = PHASES = ("forward", "backward", "update")

VARIABLES = ("VarHandleOp", "VariableV2", "Variable")  # types of nodes that hold a variable


@dataclass(frozen=True)
class Source:
    """The line of the user's program that made a node."""

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True)
class Tensor:
    """One output of a node."""

    dtype: str
    shape: Shape


@dataclass(frozen=True)
class Node:
    name: str
    op: str
    inputs: tuple[str, ...] = ()  # tensors, in the order of the op's arguments
    control_inputs: tuple[str, ...] = ()  # nodes that must have run before
    device: str = ""  # "" until one is requested or the placer assigns one
    outputs: tuple[Tensor, ...] = ()
    source: Source | None = None  # the line that made it
    phase: str = FORWARD  # one of PHASES
    # The line of the forward op, if the program itself made a node that differentiates one
    forward_source: Source | None = None

    @property
    def waits_for(self) -> list[str]:
        """Return the nodes that have to run before it."""
        return [*map(node_of, self.inputs), *self.control_inputs]

    @property
    def line(self) -> Source | None:
        """Return the line to which its costs belong; of a gradient, that of the forward op."""
        return self.forward_source or self.source


@dataclass(frozen=True)
class Call:
    """A node that names a function: `then_branch` of `cond`."""

    node: str
    attribute: str  # "" if the function is the node's type
    function: str | None = None  # the function that contains the node; None: the graph itself


@dataclass(frozen=True)
class Function:
    """A function in the library of a graph. Its body is a separate graph."""

    name: str
    called_by: tuple[Call, ...] = ()
    # its arguments first; empty if the library does not have the function
    nodes: tuple[Node, ...] = ()
    returns: tuple[str, ...] = ()  # tensors
    # Nodes that run although nothing of theirs is returned
    ends: tuple[str, ...] = field(default=(), metadata={"json": None})


@dataclass(frozen=True)
class Access:
    """A node that reads or changes what a variable, a queue or a table holds."""

    node: str
    does: str  # reads, writes, takes or puts; the last two of a queue
    source: Source | None  # its line


@dataclass(frozen=True)
class Unordered:
    """Two accesses, at least one of which changes what the other one finds, without a path of
    tensors and control dependencies between them: the runtime may run either first."""

    resource: str  # the node of the variable, queue or table
    first: Access
    second: Access  # one that changes it
    fetches: tuple[str, ...]  # that are computed from what the first one reads or takes


@dataclass(frozen=True)
class BranchInput:
    """A node outside a branch that only this branch uses, and that runs in every step."""

    node: str
    op: str
    source: Source | None
    branch: str  # `then_branch of cond`


def node_of(tensor: str) -> str:
    """Return the name of the node that makes a tensor: `split:1` comes from `split`."""
    return tensor.partition(":")[0]


def graph_def_name(tensor: str) -> str:
    """Return a tensor as a GraphDef writes it: `mul` for `mul:0`."""
    return tensor.removesuffix(":0")


def session_name(tensor: str) -> str:
    """Return a tensor as a session takes it: `mul:0` for `mul`."""
    return tensor if ":" in tensor else f"{tensor}:0"


def output_name(node: str, slot: int) -> str:
    """Return an output as a GraphDef writes it: `mul` for slot 0 of `mul`, `split:1` for slot 1."""
    return f"{node}:{slot}" if slot else node


def edge_count(nodes: tuple[Node, ...]) -> int:
    """Return the number of all inputs and control inputs of all nodes."""
    return sum(len(node.inputs) + len(node.control_inputs) for node in nodes)


def makers(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Return for each node, the nodes that make its inputs."""
    return {node.name: [node_of(tensor) for tensor in node.inputs] for node in nodes}


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, all in the order of the pairs."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def turned_around(edges: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the edges in the other direction: from makers of nodes, the users of nodes."""
    return grouped((end, name) for name, ends in edges.items() for end in dict.fromkeys(ends))


def reach(
    starts: Iterable[str], edges: Mapping[str, Iterable[str]], stop: Collection[str] = ()
) -> set[str]:
    """Return the starts, and all that can be reached from them without passing `stop`."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for name in edges.get(waiting.pop(), ()):
            if name not in reached and name not in stop:
                reached.add(name)
                waiting.append(name)
    return reached


def in_order(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the nodes in topological order, in time linear in the edges.

    A depth-first search with an explicit stack, because a chain may be longer than Python's stack.
    Edges that close a cycle are omitted: TensorFlow makes only those of `NextIteration`, but a
    graph from a file may have others.
    """
    ordered: dict[str, list[str]] = {}
    for root in parents:
        stack: dict[str, Iterator[str]] = {}  # node -> its remaining parents
        if root not in ordered:
            stack[root] = iter(parents[root])
        while stack:
            name, rest = next(reversed(stack.items()))
            unvisited = (parent for parent in rest if parent not in ordered and parent not in stack)
            parent = next(unvisited, None)
            if parent is not None:
                stack[parent] = iter(parents[parent])
                continue
            stack.popitem()
            ordered[name] = [parent for parent in parents[name] if parent in ordered]
    return ordered


def with_dependents(nodes: Iterable[Node], starts: Iterable[str]) -> set[str]:
    """Return the starts, and all nodes that depend on them by data."""
    return reach(starts, turned_around(makers(nodes)))


def with_makers(nodes: Iterable[Node], tensors: Iterable[str]) -> set[str]:
    """Return the nodes that make these tensors, and all nodes on which they depend by data."""
    edges = makers(nodes)
    return reach(map(node_of, tensors), edges) & edges.keys()


def nodes_needed(nodes: Sequence[Node], fetches: Iterable[str], feeds: Iterable[str]) -> set[str]:
    """Return all nodes that the fetches depend on. The node of a fed tensor is needed if the tensor
    is; its inputs are needed only for another of its outputs, or if the node itself has to run."""
    starts = [graph_def_name(name) if ":" in name else f"^{name}" for name in fetches]
    edges = {  # what a run of a node needs, then of which run each tensor is
        f"^{node.name}": [*node.inputs, *(f"^{name}" for name in node.control_inputs)]
        for node in nodes
    }
    tensors = {*starts, *(tensor for node in nodes for tensor in node.inputs)}
    for tensor in tensors - {graph_def_name(name) for name in feeds} - edges.keys():
        edges[tensor] = [f"^{node_of(tensor)}"]
    needed = {node_of(name.removeprefix("^")) for name in reach(starts, edges)}
    return needed & {node.name for node in nodes}


# Gradients: what the nodes that differentiation added mean, and which derivatives they compute


@dataclass(frozen=True)
class GradientCall:
    """One call of a gradient function: the gradients with respect to the op's outputs that it
    received, and those with respect to its inputs that it returned, as tensors or None."""

    forward: str
    incoming: tuple[str | None, ...]
    returned: tuple[str | None, ...]


@dataclass(frozen=True)
class GradientNode:
    """The purpose of a node that starts, computes or adds up gradients."""

    name: str
    # Of forward nodes and incoming gradients: `x * dL/d(mul)`; "" if no formula gives the value
    formula: str
    towards: str | None  # `dL/dy`: the gradient that it leads to
    complete: bool  # whether it is that gradient, and not only a step towards it
    used: bool  # whether the gradient of a variable needs it
    bookkeeping: str | None  # the kind of bookkeeping, if it adds nothing to the formula


@dataclass(frozen=True)
class GradientStop:
    """A variable without a gradient, or with one of zeros, and an op at which its gradient ends."""

    variable: str
    node: str  # that op; "" if the loss does not depend on the variable
    op: str
    source: Source | None  # its line
    reason: str
    path: tuple[str, ...]  # the first nodes from the variable over that op to the loss


@dataclass(frozen=True)
class Link:
    """A step of the chain rule, from the gradient of an output of an op to that of an input."""

    forward: str  # `error`
    computes: str  # `(add - targets)**2`; "" if no formula gives its value
    by: str  # the input: `add`
    source: str  # the node that the input comes from
    gradient: str  # `dL/d(add)`
    formula: str  # `2 * dL/d(error) * (add - targets)`; "" if no formula gives that gradient
    # whether one gradient came in, and nothing else contributes to the one that goes out
    alone: bool
    lacks: str = ""  # why there is no formula


@dataclass(frozen=True)
class Derivative:
    """The derivative of the loss with respect to a variable, if a formula gives its value."""

    variable: str
    formula: str  # from the gradient graph
    # computed by that graph for the first batch: a number, or a list of the variable's shape
    value: Any
    difference: float | None  # largest |value - finite difference|; None if there is none
    checked: float  # largest |value - the formula, evaluated on the same batch and variables|
