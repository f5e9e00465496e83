"""Name scopes: node names as a tree, for graphs that are too large to draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
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


@dataclass(frozen=True)
class TreeLine:
    """A line of the drawn tree: a scope with its count, a node, or several that are alike."""

    branches: str  # drawn before the label
    label: str
    count: int  # of all nodes
    what: str  # op types, of one if several are alike
    node: Node  # the node itself, or the first one in the scope
    alike: int = 1  # scopes or nodes on this line, which are numbered alike
    omitted: int = 0  # scopes and nodes that have no line of their own

    @property
    def counted(self) -> str:
        """`28`, or `28 each`"""
        return f"{self.count // self.alike:,} each" if self.alike > 1 else f"{self.count:,}"


def tree(nodes: Sequence[Node]) -> Scope:
    """The scopes of these nodes; children are in the order in which their first node was made."""
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
) -> Iterable[TreeLine]:
    """Yield the children of a scope, one per line; if `opened`, also what is in them.

    Of a scope with more than `most` children those that are numbered alike have one line, and no
    more than `most` lines are listed.
    """
    groups = [[child] for child in scope.children.values()]
    others: list[list[Scope]] = []
    if most is not None and len(groups) > most:
        groups = folded(scope.children.values())
        groups, others = groups[:most], groups[most:]
    for group in groups:
        last = group is groups[-1] and not others
        yield line(group, branches + ("╰─ " if last else "├─ "))
        if opened:
            yield from lines(group[0], True, branches + ("   " if last else "│  "), most)
    if others:
        nodes = [node for group in others for child in group for node in child.nodes()]
        omitted = sum(map(len, others))
        label = group_alike.rest_row(omitted)
        yield TreeLine(branches + "╰─ ", label, len(nodes), kinds(nodes), nodes[0], omitted=omitted)


def line(group: Sequence[Scope], branches: str) -> TreeLine:
    """Return the line of scopes that are alike, with the types of the first."""
    nodes = [node for child in group for node in child.nodes()]
    label = group_alike.label([child.label for child in group])
    return TreeLine(branches, label, len(nodes), kinds(group[0].nodes()), nodes[0], len(group))


def folded(children: Iterable[Scope]) -> list[list[Scope]]:
    """Group the children that are numbered alike and have the same ops."""

    def content(scope: Scope) -> Hashable:
        start = len(scope.name)
        return frozenset(
            Counter(
                (group_alike.pattern(node.name[start:]), node.op) for node in scope.nodes()
            ).items()
        )

    return group_alike.groups(children, lambda scope: scope.label, content)


def kinds(nodes: Iterable[Node]) -> str:
    """`Conv2D, BiasAdd, 2 Const`: the types with their counts, in order of appearance."""
    counts = Counter(node.op for node in nodes)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())
