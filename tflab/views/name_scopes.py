"""Name scopes: node names as a tree, for graphs that are too large to draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tflab.records.graph import Node


@dataclass
class Scope:
    """A part of the name tree. `y` is both a scope and a node if there is a `y/Assign`."""

    node: Node | None = None
    children: dict[str, Scope] = field(default_factory=dict)

    def nodes(self) -> Iterable[Node]:
        if self.node:
            yield self.node
        for child in self.children.values():
            yield from child.nodes()


def tree(nodes: Sequence[Node]) -> Scope:
    """Return the scopes of these nodes; children are in the order in which their first node was
    made."""
    root = Scope()
    for node in nodes:
        scope = root
        for part in node.name.split("/"):
            scope = scope.children.setdefault(part, Scope())
        scope.node = node
    return root


def lines(
    scope: Scope, opened: bool = False, branches: str = ""
) -> Iterator[tuple[str, list[Node]]]:
    """Yield the children of a scope as lines of a drawn tree, each with all nodes in it; if
    `opened`, also what is in them."""
    for number, (label, child) in enumerate(scope.children.items(), 1):
        last = number == len(scope.children)
        yield branches + ("╰─ " if last else "├─ ") + label, list(child.nodes())
        if opened:
            yield from lines(child, True, branches + ("   " if last else "│  "))


def kinds(nodes: Iterable[Node]) -> str:
    """Return `Conv2D, BiasAdd, 2 Const`: the types with their counts, in order of appearance."""
    counts = Counter(node.op for node in nodes)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())
