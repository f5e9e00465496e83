"""Name scopes: node names as a tree, for graphs that are too large to draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tflab.records.graph import Node
from tflab.views import group_alike


@dataclass
class Scope:
    """A part of the name tree. `y` is both a scope and a node if there is a `y/Assign`."""

    name: str
    node: Node | None = None
    children: dict[str, Scope] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name.rpartition("/")[2]

    def nodes(self) -> Iterable[Node]:
        if self.node:
            yield self.node
        for child in self.children.values():
            yield from child.nodes()


Line = tuple[str, list[Node]]  # a scope or a node in the drawn tree, and all nodes in it


def tree(nodes: Sequence[Node]) -> Scope:
    """Return the scopes of these nodes; children are in the order in which their first node was
    made."""
    root = Scope("")
    for node in nodes:
        scope = root
        for part in node.name.split("/"):
            name = f"{scope.name}/{part}" if scope.name else part
            scope = scope.children.setdefault(part, Scope(name))
        scope.node = node
    return root


def lines(
    scope: Scope, opened: bool = False, branches: str = "", most: int | None = None
) -> Iterator[Line]:
    """Yield the children of a scope, one per line; if `opened`, also what is in them. Of more than
    `most` children, those that are numbered alike have one line."""
    groups = [[child] for child in scope.children.values()]
    if most is not None and len(groups) > most:
        groups = folded(scope.children.values())
    for group in groups:
        last = group is groups[-1]
        label = group_alike.label([child.label for child in group])
        nodes = [node for child in group for node in child.nodes()]
        yield branches + ("╰─ " if last else "├─ ") + label, nodes
        if opened:
            yield from lines(group[0], True, branches + ("   " if last else "│  "))


def folded(children: Iterable[Scope]) -> list[list[Scope]]:
    """Group the children that are numbered alike and have the same ops."""

    def content(scope: Scope) -> Hashable:
        own = ((node.name[len(scope.name) :], node.op) for node in scope.nodes())
        return frozenset(Counter((group_alike.pattern(name), op) for name, op in own).items())

    return group_alike.groups(children, lambda scope: scope.label, content)


def kinds(nodes: Iterable[Node]) -> str:
    """Return `Conv2D, BiasAdd, 2 Const`: the types with their counts, in order of appearance."""
    counts = Counter(node.op for node in nodes)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())
