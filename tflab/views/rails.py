"""Rails: a whole graph as lines of text, one node a line, each value a rail until its last use.

Like the graph beside a version history, but of data: a rail starts at the node that makes a
value, runs down past the nodes that do not need it, and ends where it is used for the last time.

    ●     x
    │ ●   y
    ●─╯   mul
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tflab.records.graph import Node, in_order


def ordered(nodes: Sequence[Node], ends: Iterable[str]) -> list[Node]:
    """Return producers before consumers, what leads to `ends` first, and short rails."""
    by_name = {node.name: node for node in nodes}
    roots = dict.fromkeys([*(name for name in ends if name in by_name), *by_name])
    edges = {name: [end for end in parents(by_name[name]) if end in by_name] for name in roots}
    return [by_name[name] for name in in_order(edges)]


def draw(nodes: Sequence[Node]) -> list[str]:
    """Return the rails of nodes in the order of `ordered`: a string per node, of one length."""
    takes: dict[str, list[str]] = {}  # from above it; the back edge of a loop is not drawn
    for node in nodes:
        takes[node.name] = [parent for parent in parents(node) if parent in takes]
    uses = Counter(parent for taken in takes.values() for parent in taken)
    rails: list[str | None] = []  # what each rail carries now
    resting = None  # the rail of an unused value, which the next node must not seem to use
    rows = []
    for node in nodes:
        taken = [rails.index(parent) for parent in takes[node.name]]
        uses.subtract(takes[node.name])
        ending = [rail for rail in taken if not uses[rails[rail] or ""]]
        free = (n for n, carried in enumerate(rails) if carried is None and n != resting)
        own = min(ending, default=next(free, len(rails)))
        if own == len(rails):
            rails.append(None)
        rows.append(row(rails, own, taken, ending))
        for rail in ending:
            rails[rail] = None
        rails[own] = node.name if uses[node.name] else None
        resting = None if uses[node.name] else own
    width = max(map(len, rows), default=0)
    return [line.ljust(width) for line in rows]


def parents(node: Node) -> list[str]:
    """Return the nodes that a node takes inputs from, each once."""
    return list(dict.fromkeys(node.waits_for))


def row(rails: Sequence[str | None], own: int, taken: Sequence[int], ending: Sequence[int]) -> str:
    left, right = min([own, *taken]), max([own, *taken])
    text = ""
    for rail, carried in enumerate(rails):
        within = left <= rail <= right
        if rail == own:
            char = "●"
        elif rail in taken:
            char = joint(rail, left, right, rail in ending)
        elif carried is not None:
            char = "│"
        else:
            char = "─" if within else " "
        text += char + ("─" if left <= rail < right else " ")
    return text.rstrip()


def joint(rail: int, left: int, right: int, ends: bool) -> str:
    """Return the joint of a rail and the line to the node: the rail ends there, or continues."""
    signs = "╰├" if rail == left else "╯┤" if rail == right else "┴┼"
    return signs[0] if ends else signs[1]
