"""Drawing: the place of each node of a graph, from the graph as written to the graph that ran.

Forward nodes are laid out in layers that flow down. The gradients of a layer are beside it and flow
up, and the updates of its variables are beside those. The nodes of all states of the graph are laid
out at once, so that each keeps its place. This module decides the order of boxes; their sizes are
set where they are drawn.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from math import ceil, sqrt

from tflab.records.graph import grouped, in_order, node_of
from tflab.records.stages import NodeHistory, Placement, Stage, find_stage
from tflab.report import graph_states
from tflab.report.contents import OUTSIDE, Box, Drawing, Lane, nodes_of

LEAST = 3  # nodes of a scope with a box; nodes of smaller scopes are drawn separately
CROWD = 500  # boxes of a scope; if there are more, they are combined in the order of their nodes
MOST = 0.75  # of the forward nodes: a larger scope is always open
KINDS = ("forward", "gradient", "update")  # of nodes, in the order of their tracks
CAPTURED = "captured tensors"  # the scope of a function's nodes that have numbers as names
TRACKS = {kind: track for track, kind in enumerate(KINDS)}  # where each kind is drawn

Path = tuple[str, ...]  # the scopes that contain a node, and its own label
Homes = dict[str, tuple[int, Path]]  # node -> its track, and its path there
Anchors = Mapping[str, str]  # node -> the box of the forward track next to which it is drawn


def draw(stages: Sequence[Stage], histories: Mapping[str, NodeHistory]) -> Drawing:
    """Return the layered drawing of a walk, with a state for each step that changed the graph."""
    states = graph_states.states(stages)
    waited: dict[str, set[str]] = {}  # in any state
    for node in (node for state in states for node in state.defined):
        waited.setdefault(node.name, set()).update(map(node_of, node.inputs), node.control_inputs)
    waits = Waits({name: before & waited.keys() for name, before in waited.items()})
    homes = homes_of(waits, histories, stages)
    within = Waits(
        {
            name: {parent for parent in before if homes[parent][0] == homes[name][0]}
            for name, before in waits.items()
        }
    )
    own = [(path, name) for name, (where, path) in homes.items() if where == 0]
    forward = without_outer_scope(parts(own, within), within)
    anchors = anchors_of(waits, within, homes, histories, forward)
    placement = find_stage(stages, Placement)
    transfers = placement.transfers if placement else ()
    return Drawing(tracks(forward, within, homes, anchors), states, transfers)


def homes_of(waits: Waits, histories: Mapping[str, NodeHistory], stages: Sequence[Stage]) -> Homes:
    """Return the track and path of each node. A node of the runtime is in the scope of the call
    that was expanded into it, or with a node whose work it does, or with a user."""
    homes: Homes = {
        name: (TRACKS[histories[name].kind], (*(CAPTURED,) * name.isdecimal(), *name.split("/")))
        for name in waits
        if histories[name].kind in TRACKS
    }
    placement = find_stage(stages, Placement)
    near = {
        taken.into: taken.name
        for step in (placement.passes if placement else ())
        for added in [set(step.added)]
        for taken in step.taken
        if taken.into in added
    }
    running = {node.name for node in placement.nodes} if placement else set()
    expanded = {name: home for name, home in homes.items() if name not in running}
    for name in waits:
        inside = tuple(name.removeprefix("Func/").split("/"))
        around = ("/".join(inside[:end]) for end in range(len(inside) - 1, 0, -1))
        call = next((scope for scope in around if scope in expanded), None)
        if name not in homes and call:
            homes[name] = expanded[call][0], inside
        elif name not in homes:
            neighbours = (near.get(name, name), *waits.users[name], *sorted(waits[name]))
            host = next((node for node in neighbours if node in homes), None)
            track, path = homes[host] if host else (0, (name,))
            homes[name] = track, (*path[:-1], name)
    return homes


def parts(
    nodes: Sequence[tuple[Path, str]], waits: Waits, scope: str = "", least: int = LEAST
) -> tuple[Box, ...]:
    """Return the boxes of some nodes: scopes that are large enough, and single nodes."""
    boxes: list[Box] = []
    for label, members_of in grouped((path[0], (path[1:], name)) for path, name in nodes).items():
        own = tuple(Box(name, label) for path, name in members_of if not path)
        name = f"{scope}{label}/"
        inner = parts([(path, name) for path, name in members_of if path], waits, name, least)
        if len(members_of) < least or (len(inner) == 1 and not own):
            boxes += (*own, *(replace(box, label=f"{label}/{box.label}") for box in inner))
        else:
            boxes.append(Box(name, label, rows((*own, *inner), waits)))
    if len(boxes) <= CROWD:
        return tuple(boxes)
    # Boxes for as many neighbours each as there are such boxes: `step_0 ... step_57`
    count = ceil(sqrt(len(boxes)))
    crowds = [boxes[start : start + count] for start in range(0, len(boxes), count)]
    labels = [f"{crowd[0].label} ... {crowd[-1].label}" for crowd in crowds]
    return tuple(
        Box(f"{scope}{label}/", label, rows(crowd, waits))
        for label, crowd in zip(labels, crowds, strict=True)
    )


def without_outer_scope(boxes: Sequence[Box], waits: Waits) -> tuple[Box, ...]:
    """Return the boxes; a scope around nearly everything is replaced by its contents."""
    total = sum(len(nodes_of(box)) for box in boxes)
    large = next((box for box in boxes if box.rows and len(nodes_of(box)) > MOST * total), None)
    if large is None:
        return tuple(boxes)
    boxes_in = (entry for row in large.rows for entry in row if isinstance(entry, Box))
    inner = (replace(box, label=f"{large.label}/{box.label}") for box in boxes_in)
    rest = (box for box in boxes if box is not large)
    return without_outer_scope((*inner, *rest), waits)


def anchors_of(
    waits: Waits,
    within: Waits,
    homes: Homes,
    histories: Mapping[str, NodeHistory],
    forward: Iterable[Box],
) -> Anchors:
    """Return the forward box that each node belongs beside: its op's, variable's or neighbours'."""
    anchors = {name: box.name for box in forward for name in nodes_of(box)}
    for name, before in waits.items():
        track, history = homes[name][0], histories[name]
        if history.derived_from in anchors:
            anchors[name] = anchors[history.derived_from]
        elif track == TRACKS["update"]:
            parent_anchors = {anchors[parent] for parent in before if homes[parent][0] == 0}
            if len(parent_anchors) == 1:
                anchors[name] = parent_anchors.pop()
    while spread_anchors(anchors, within) or spread_anchors(anchors, waits):
        pass
    return anchors


def spread_anchors(anchors: dict[str, str], waits: Waits) -> bool:
    """Give nodes the anchor that their users, or else inputs, share; return whether any got one."""
    known = len(anchors)
    for name in [name for name in waits if name not in anchors]:
        for around in (waits[name], waits.users[name]):  # the last counts
            neighbour_anchors = {anchors.get(node, "") for node in around}
            if len(neighbour_anchors) == 1 and neighbour_anchors != {""}:
                anchors[name] = neighbour_anchors.pop()
    return len(anchors) > known


def tracks(forward: Sequence[Box], waits: Waits, homes: Homes, anchors: Anchors) -> tuple[Box, ...]:
    """Return the boxes of the tracks (forward, gradients, updates), whose rows are common."""
    ladder = rows(forward, waits)
    gradients = place_beside(ladder, 1, waits, homes, anchors)
    updates = place_beside(ladder, 2, waits, homes, anchors)
    high = max(map(len, (ladder, gradients, updates)))
    return tuple(
        Box(name, label, (*rows, *((),) * (high - len(rows))), framed=False)
        for name, label, rows in (
            ("forward/", "Forward", ladder),
            ("backward/", "Backward", gradients),
            ("update/", "Updates", updates),
        )
    )


def place_beside(
    ladder: Sequence[Row], track: int, waits: Waits, homes: Homes, anchors: Anchors
) -> tuple[Row, ...]:
    """Return the rows of another track, each box next to its forward box. A box that belongs to
    none has a free row, as near to its beginning as possible."""
    nodes = [(path, name) for name, (where, path) in homes.items() if where == track]
    common = len(shared([path for path, name in nodes if name in anchors]))
    groups = grouped(
        (anchors.get(name, ""), (path[common:] if len(path) > common else path[-1:], name))
        for path, name in nodes
    )
    labels = {e.name: e.label for row in ladder for e in row if isinstance(e, Box)}
    boxes = {
        anchor: one_box(f"{track}:{anchor}/", labels.get(anchor), inside, waits)
        for anchor, inside in groups.items()
    }
    alike = Counter(box.label for box in boxes.values())
    up = KINDS[track] == "gradient"
    for anchor, box in boxes.items():
        label = box.label
        if anchor and box.rows and alike[label] > 1:
            label = f"{label} of {labels[anchor]}"
        elif box.rows and label in labels.values():  # of a forward box
            label = f"{label} {KINDS[track]}s"
        boxes[anchor] = replace(upside_down(box) if up else box, label=label)

    def entries(row: Row) -> Iterator[Box | Lane]:
        for entry in row:
            if isinstance(entry, Box):
                if entry.name in boxes:
                    yield boxes[entry.name]
            elif entry.source in boxes and entry.target in boxes:
                ends = boxes[entry.source].name, boxes[entry.target].name
                yield Lane(*(reversed(ends) if up else ends))

    rows = [tuple(entries(row)) for row in ladder]
    if "" in boxes:
        free = [place for place, row in enumerate((*rows, ())) if not row]
        place = free[-2] if up and len(free) > 1 else free[0]
        rows[place : place + 1] = [(boxes[""],)]
    return tuple(rows)


def one_box(name: str, label: str | None, nodes: Sequence[tuple[Path, str]], waits: Waits) -> Box:
    """Return one box for all nodes next to a layer, labelled by the scope that they share."""
    boxes = parts(nodes, waits, name)
    if len(boxes) == 1:
        return boxes[0]
    common = shared([path for path, _ in nodes])
    if common:
        label = "/".join(common)
        boxes = parts([(path[len(common) :], node) for path, node in nodes], waits, name)
    return Box(name, label or "", rows(boxes, waits), framed=label is not None)


def shared(paths: Iterable[Path]) -> Path:
    """Return the scopes that all of these paths begin with."""
    levels = zip(*(path[:-1] for path in paths), strict=False)
    return tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))


def upside_down(box: Box) -> Box:
    """Return the box with its rows from bottom to top."""
    return replace(
        box,
        rows=tuple(
            tuple(upside_down(entry) if isinstance(entry, Box) else entry for entry in row)
            for row in reversed(box.rows)
        ),
    )


# Layers
#
# Rows come from the longest path to each box, with boxes moved as close to their users as that
# allows; the order within a row is igraph's, by the method of Sugiyama, Tagawa and Toda, "Methods
# for visual understanding of hierarchical system structures", IEEE Transactions on Systems, Man and
# Cybernetics 11(2), 1981.

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
    """Return the boxes in rows from top to bottom, an edge's source above its target. A long edge,
    and one that enters or leaves these, has a lane in each row. One edge of a cycle points up."""
    by_name = {box.name: box for box in boxes}
    around = {name: box.name for box in boxes for name in nodes_of(box)}
    parents: dict[str, dict[str, None]] = {box.name: {} for box in boxes}
    coming: dict[str, None] = {}  # boxes with inputs from outside
    leaving: dict[str, None] = {}  # boxes that are used outside
    for name, box in around.items():
        for parent in sorted(waits.get(name, ())):
            if parent not in around:
                coming[box] = None
            elif around[parent] != box:
                parents[box][around[parent]] = None
        if any(user not in around for user in waits.users.get(name, ())):
            leaving[box] = None
    ordered = in_order({name: list(before) for name, before in parents.items()})
    level = {name: 1 + row for name, row in levels(ordered).items()}
    last = 1 + max(level.values(), default=0)
    level |= {OUTSIDE: 0, OUTSIDE_BELOW: last}
    edges = [
        *((parent, name) for name, before in ordered.items() for parent in before),
        *((OUTSIDE, box) for box in coming),
        *((box, OUTSIDE_BELOW) for box in leaving),
    ]
    entries: list[Box | Lane | None] = [by_name.get(name) for name in level]
    rows_of = list(level.values())
    index = {name: number for number, name in enumerate(level)}
    pieces: list[tuple[int, int]] = []  # parts of edges, each from a row to the next
    for source, target in with_lanes(edges, level):
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
    """Return the edges with lanes: the shortest ones, which cross MOST_LANES rows at most."""
    crossed = [max(0, level[target] - level[source] - 1) for source, target in edges]
    if sum(crossed) <= MOST_LANES:
        return list(edges)
    shortest = sorted(range(len(edges)), key=crossed.__getitem__)
    totals = itertools.accumulate(crossed[edge] for edge in shortest)
    kept = {edge for edge, total in zip(shortest, totals, strict=True) if total <= MOST_LANES}
    return [edge for number, edge in enumerate(edges) if number in kept]


def levels(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return a row for each box, below those of its parents, which come first in `parents`. A box
    with at most as many parents as children moves down to just above its first child."""
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
