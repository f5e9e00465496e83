"""Name scopes: node names as a tree, for graphs that are too large to draw."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tflab.errors import UsageError
from tflab.records import Function, Node

LISTED = 10  # functions that an error lists


@dataclass
class Scope:
    """A part of the name tree. `y` is both a scope and a node if there is a `y/Assign`."""

    name: str
    node: Node | None = None
    children: dict[str, Scope] = field(default_factory=dict)

    def nodes(self) -> Iterable[Node]:
        if self.node:
            yield self.node
        for child in self.children.values():
            yield from child.nodes()


@dataclass(frozen=True)
class TreeLine:
    """A line of the drawn tree: a scope with its count, or a node."""

    branches: str  # drawn before the label
    label: str
    count: int
    what: str  # its op types
    node: Node  # the node itself, or the first one in the scope


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


def known(nodes: Iterable[Node]) -> dict[str, None]:
    """The names of all nodes, and of the scopes that contain them."""
    names: dict[str, None] = {}
    for node in nodes:
        parts = node.name.split("/")
        names |= dict.fromkeys("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return names


def inside(function: str, names: Iterable[str]) -> list[str]:
    """The names inside a function, without its own name: `add` for `f/add` in `f`."""
    return [name.removeprefix(f"{function}/") for name in names if name.startswith(f"{function}/")]


def check(nodes: Sequence[Node], names: Iterable[str], functions: Sequence[Function] = ()) -> None:
    """Raise UsageError for a name that is neither a scope, a node nor a function."""
    if not names:
        return
    there = known(nodes) | dict.fromkeys(function.name for function in functions)
    for name in names:
        around = [function for function in functions if inside(function.name, [name])]
        within = {
            f"{function.name}/{scope}" for function in around for scope in known(function.nodes)
        }
        if name in there or name in within:
            continue
        nearest = difflib.get_close_matches(name, [*there, *within], n=1)
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        listed = ", ".join(function.name for function in functions[:LISTED])
        more = f" and {len(functions) - LISTED:,} more" if len(functions) > LISTED else ""
        have = f" Its functions: {listed}{more}." if functions else ""
        what = "scope or function" if functions else "scope"
        raise UsageError(f"There is no {what} '{name}' in the graph to expand.{hint}{have}")


def lines(scope: Scope, expanded: Sequence[str] = (), branches: str = "") -> Iterable[TreeLine]:
    """The children of a scope, one per line; those in `expanded`, and the scopes that contain
    them, are opened."""
    children = list(scope.children.items())
    for label, child in children:
        last = child is children[-1][1]
        nodes = list(child.nodes())
        yield TreeLine(
            branches + ("╰─ " if last else "├─ "), label, len(nodes), kinds(nodes), nodes[0]
        )
        if any(name == child.name or name.startswith(child.name + "/") for name in expanded):
            yield from lines(child, expanded, branches + ("   " if last else "│  "))


def kinds(nodes: Iterable[Node]) -> str:
    """`Conv2D, BiasAdd, 2 Const`: the types with their counts, in order of appearance."""
    counts = Counter(node.op for node in nodes)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())
