"""Graphs: nodes, the tensors between them, and the lines that made them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

Shape = tuple[int | None, ...] | None  # None: not even the rank is known

# The phases of a training step. Gradients are backward; what is made of gradients is update
# (clipping, the optimiser's own ops); forward is everything else.
FORWARD, BACKWARD, UPDATE = PHASES = ("forward", "backward", "update")


@dataclass(frozen=True)
class Source:
    """The line of the user's program that made a node."""

    file: str
    line: int
    function: str
    code: str


# The lines of nodes, by the function in whose body they stand (None: the graph itself) and name.
Lines = Mapping[tuple[str | None, str], Source]


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
    source: Source | None = None
    phase: str = FORWARD  # what it is there for: one of PHASES


@dataclass(frozen=True)
class Call:
    """A node that names a function: `then_branch` of `cond`."""

    node: str
    attribute: str  # "" where the function is the node's very type
    function: str | None = None  # in whose body the node stands; None: in the graph itself


@dataclass(frozen=True)
class Function:
    """A function in the library of a graph. Its body is a graph of its own."""

    name: str
    called_by: tuple[Call, ...] = ()
    nodes: tuple[Node, ...] = ()  # its arguments first; none where the library does not have it
    returns: tuple[str, ...] = ()  # tensors


def node_of(tensor: str) -> str:
    """The name of the node that makes a tensor: `split:1` comes from `split`."""
    return tensor.partition(":")[0]


def edge_count(nodes: tuple[Node, ...]) -> int:
    """Edges of a graph: every input and every control input of every node."""
    return sum(len(node.inputs) + len(node.control_inputs) for node in nodes)


def makers(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Each node with the nodes that make the tensors it takes."""
    return {node.name: [node_of(tensor) for tensor in node.inputs] for node in nodes}


def turned_around(edges: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The edges in the other direction: of `makers`, each node with those that take from it."""
    turned: dict[str, list[str]] = {}
    for name, ends in edges.items():
        for end in dict.fromkeys(ends):
            turned.setdefault(end, []).append(name)
    return turned


def reach(
    starts: Iterable[str], edges: Mapping[str, Iterable[str]], stop: Collection[str] = ()
) -> set[str]:
    """All that can be reached from the starts, themselves included, without what stops it."""
    reached = set(starts)
    waiting = list(reached)
    while waiting:
        for name in edges.get(waiting.pop(), ()):
            if name not in reached and name not in stop:
                reached.add(name)
                waiting.append(name)
    return reached


def after(nodes: Iterable[Node], starts: Iterable[str]) -> set[str]:
    """The starts and all nodes that take something from them, by data."""
    return reach(starts, turned_around(makers(nodes)))
