"""Layering: boxes in rows, with edges in one direction and few crossings.

Rows come from the longest path to each box, with boxes moved as close to their users as that
allows; the order within a row is igraph's, by the method of Sugiyama, Tagawa and Toda, "Methods for
visual understanding of hierarchical system structures", IEEE Transactions on Systems, Man and
Cybernetics 11(2), 1981.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property

from tflab.records.graph import in_order
from tflab.report.contents import OUTSIDE, Box, Lane, nodes_of

OUTSIDE_BELOW = "/below"  # no name of a node begins with a slash
SWEEPS = 100  # over the rows, each with fewer crossings
MOST_LANES = 2_000  # of one scope: without a limit they grow with the square of its boxes

Row = tuple[Box | Lane, ...]


class Waits(dict[str, set[str]]):
    """For each node, the nodes that it waits for."""

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Return, for each node, the nodes that wait for it."""
        users: dict[str, list[str]] = {name: [] for name in self}
        for name, before in self.items():
            for parent in before:
                users[parent].append(name)
        return users


def rows(boxes: Sequence[Box], waits: Waits) -> tuple[Row, ...]:
    """Return the boxes in rows from top to bottom, an edge's source above its target.

    A long edge has a lane in each row that it crosses, and so has an edge that enters or leaves
    these boxes. If there are more lanes than MOST_LANES, the longest edges have none. One edge of a
    cycle points upwards.
    """
    by_name = {box.name: box for box in boxes}
    ordered = in_order(between(boxes, waits))
    level = {name: 1 + row for name, row in levels(ordered).items()}
    last = 1 + max(level.values(), default=0)
    level |= {OUTSIDE: 0, OUTSIDE_BELOW: last}
    edges = [(parent, name) for name, before in ordered.items() for parent in before]
    entries: list[Box | Lane | None] = [by_name.get(name) for name in level]
    rows_of = list(level.values())
    index = {name: number for number, name in enumerate(level)}
    pieces: list[tuple[int, int]] = []  # parts of edges, each from a row to the next
    for source, target in with_lanes([*edges, *crossings(boxes, waits)], level):
        lane = Lane(source, OUTSIDE if target == OUTSIDE_BELOW else target)
        passed = range(level[source] + 1, level[target])
        lanes = range(len(entries), len(entries) + len(passed))
        pieces += itertools.pairwise((index[source], *lanes, index[target]))
        entries += [lane] * len(passed)
        rows_of += passed
    import igraph  # of an extra

    graph = igraph.Graph(n=len(entries), edges=pieces, directed=True)
    layout = graph.layout_sugiyama(layers=rows_of, maxiter=SWEEPS)
    in_rows: list[list[Box | Lane]] = [[] for _ in range(last)]
    for number in sorted(range(len(entries)), key=lambda number: layout[number][0]):
        entry = entries[number]
        if entry is not None:
            in_rows[rows_of[number]].append(entry)
    return tuple(map(tuple, in_rows[1:]))


def with_lanes(edges: Sequence[tuple[str, str]], level: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the edges, without the longest ones if they would cross more than MOST_LANES rows."""
    crossed = [max(0, level[target] - level[source] - 1) for source, target in edges]
    if sum(crossed) <= MOST_LANES:
        return list(edges)
    shortest = sorted(range(len(edges)), key=crossed.__getitem__)
    totals = itertools.accumulate(crossed[edge] for edge in shortest)
    kept = {edge for edge, total in zip(shortest, totals, strict=True) if total <= MOST_LANES}
    return [edge for number, edge in enumerate(edges) if number in kept]


def crossings(boxes: Sequence[Box], waits: Waits) -> list[tuple[str, str]]:
    """Return one edge from outside for each box that has any, and one edge out for each."""
    around = {name: box.name for box in boxes for name in nodes_of(box)}
    coming = {box for name, box in around.items() if not waits[name] <= around.keys()}
    leaving = {
        box
        for name, box in around.items()
        if any(user not in around for user in waits.users.get(name, ()))
    }
    return [
        *((OUTSIDE, box.name) for box in boxes if box.name in coming),
        *((box.name, OUTSIDE_BELOW) for box in boxes if box.name in leaving),
    ]


def between(boxes: Sequence[Box], waits: Waits) -> dict[str, list[str]]:
    """Return, for each box, the other boxes that its nodes wait for."""
    around = {name: box.name for box in boxes for name in nodes_of(box)}
    parents: dict[str, dict[str, None]] = {box.name: {} for box in boxes}
    for name, box in around.items():
        for parent in sorted(waits.get(name, ())):
            if around.get(parent, box) != box:
                parents[box][around[parent]] = None
    return {name: list(before) for name, before in parents.items()}


def levels(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return a row for each box, below those of its parents; `parents` come before their children.

    A box with at most as many parents as children moves down to just above the first child: a box
    that is used late is not drawn early.
    """
    level: dict[str, int] = {}
    children: dict[str, list[str]] = {}
    for name, before in parents.items():
        level[name] = 1 + max((level[parent] for parent in before), default=-1)
        for parent in before:
            children.setdefault(parent, []).append(name)
    for name in reversed(list(parents)):
        users = children.get(name, ())
        if users and len(parents[name]) <= len(users):
            level[name] = min(level[user] for user in users) - 1
    return level
