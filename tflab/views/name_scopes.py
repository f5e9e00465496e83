"""Name scopes: node names as a tree, for graphs that are too large to draw."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tflab.errors import UsageError
from tflab.records.graph import Function, Node
from tflab.views import numbered

LISTED = 10  # functions that an error lists


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


def names_and_scopes(nodes: Iterable[Node]) -> dict[str, None]:
    """The names of all nodes, and of the scopes that contain them."""
    names: dict[str, None] = {}
    for node in nodes:
        parts = node.name.split("/")
        names |= dict.fromkeys("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return names


def names_inside(function: str, names: Iterable[str]) -> list[str]:
    """The names inside a function, without its own name: `add` for `f/add` in `f`."""
    return [name.removeprefix(f"{function}/") for name in names if name.startswith(f"{function}/")]


def check(nodes: Sequence[Node], names: Iterable[str], functions: Sequence[Function] = ()) -> None:
    """Raise UsageError for a name that is neither a scope, a node nor a function."""
    if not names:
        return
    existing = names_and_scopes(nodes) | dict.fromkeys(function.name for function in functions)
    for name in names:
        around = [function for function in functions if names_inside(function.name, [name])]
        within = {
            f"{function.name}/{scope}"
            for function in around
            for scope in names_and_scopes(function.nodes)
        }
        if name in existing or name in within:
            continue
        nearest = difflib.get_close_matches(name, [*existing, *within], n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        listed = ", ".join(function.name for function in functions[:LISTED])
        more = f" and {len(functions) - LISTED:,} more" if len(functions) > LISTED else ""
        have = f" Its functions: {listed}{more}." if functions else ""
        what = "scope or function" if functions else "scope"
        raise UsageError(f"There is no {what} '{name}' in the graph to expand.{hint}{have}")


def lines(
    scope: Scope, expanded: Sequence[str] = (), branches: str = "", most: int | None = None
) -> Iterable[TreeLine]:
    """The children of a scope, one per line; those in `expanded`, and the scopes that contain
    them, are opened.

    Of a scope with more than `most` children those that are numbered alike have one line, and no
    more than `most` lines and the opened scopes are listed.
    """
    groups = [[child] for child in scope.children.values()]
    others: list[list[Scope]] = []
    if most is not None and len(groups) > most:
        groups, others = bounded(folded(scope.children.values(), expanded), expanded, most)
    by_pattern: dict[str, list[Scope]] = {}  # pattern -> the first group of several
    for group in groups:
        pattern = numbered.pattern(group[0].label)
        if len(group) > 1:
            by_pattern.setdefault(pattern, group)
        last = group is groups[-1] and not others
        yield line(group, branches + ("╰─ " if last else "├─ "), by_pattern.get(pattern, group))
        if is_opened(group[0], expanded):
            yield from lines(group[0], expanded, branches + ("   " if last else "│  "), most)
    if others:
        nodes = [node for group in others for child in group for node in child.nodes()]
        omitted = sum(map(len, others))
        label = numbered.rest_row(omitted)
        yield TreeLine(branches + "╰─ ", label, len(nodes), kinds(nodes), nodes[0], omitted=omitted)


def line(group: Sequence[Scope], branches: str, similar: Sequence[Scope]) -> TreeLine:
    """The line of scopes that are alike. `similar` are others that are numbered like them: of
    these only the difference is written."""
    nodes = [node for child in group for node in child.nodes()]
    first = list(group[0].nodes())
    what = kinds(first)
    if similar is not group:
        what = difference(first, list(similar[0].nodes()), similar[0].label) or what
    label = numbered.label([child.label for child in group])
    return TreeLine(branches, label, len(nodes), what, nodes[0], len(group))


def difference(nodes: Sequence[Node], others: Sequence[Node], name: str) -> str:
    """`like block_1, with 2 Mul, without Relu`; "" if the types are the same."""
    op_counts, other_counts = (
        Counter(node.op for node in nodes),
        Counter(node.op for node in others),
    )
    if op_counts == other_counts:
        return ""
    parts = (("with", op_counts - other_counts), ("without", other_counts - op_counts))
    changes = (f"{word} {counts_text(ops)}" for word, ops in parts if ops)
    return f"like {name}, {', '.join(changes)}"


def is_opened(scope: Scope, expanded: Sequence[str]) -> bool:
    return any(name == scope.name or name.startswith(scope.name + "/") for name in expanded)


def folded(children: Iterable[Scope], expanded: Sequence[str]) -> list[list[Scope]]:
    """The children that are numbered alike and have the same ops, together; opened ones alone."""

    def content(scope: Scope) -> Hashable:
        if is_opened(scope, expanded):
            return scope.name
        start = len(scope.name)
        return frozenset(
            Counter(
                (numbered.pattern(node.name[start:]), node.op) for node in scope.nodes()
            ).items()
        )

    return numbered.groups(children, lambda scope: scope.label, content)


def bounded(
    groups: Sequence[list[Scope]], expanded: Sequence[str], most: int
) -> tuple[list[list[Scope]], list[list[Scope]]]:
    """The groups that are listed, which are the first ones and the opened ones, and the others."""
    listed: list[list[Scope]] = []
    others: list[list[Scope]] = []
    for place, group in enumerate(groups):
        (listed if place < most or is_opened(group[0], expanded) else others).append(group)
    return listed, others


def kinds(nodes: Iterable[Node]) -> str:
    """`Conv2D, BiasAdd, 2 Const`: the types with their counts, in order of appearance."""
    return counts_text(Counter(node.op for node in nodes))


def counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())
