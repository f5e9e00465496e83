"""Drawn: the parts of a drawn graph: boxes in layers, and the states of the graph."""

from __future__ import annotations

from dataclasses import dataclass

from tflab.records.blocks import Frame
from tflab.records.graph import Node
from tflab.records.placed import Transfer

OUTSIDE = "/"  # the end of a lane that leaves or enters its scope
DIRECTIONS = {"Forward": "down", "Backward": "up"}  # direction of the edges in a track


@dataclass(frozen=True)
class Lane:
    """The space of a long edge in a row that it crosses."""

    source: str  # a box by its name, or OUTSIDE
    target: str


@dataclass(frozen=True)
class Box:
    """A node, or a scope with boxes of its own in rows from top to bottom.

    A scope may have the name of a node inside it, so names of scopes end with a slash.
    """

    name: str
    label: str  # its name inside the box around it
    rows: tuple[tuple[Box | Lane, ...], ...] = ()  # empty for a node
    framed: bool = True  # otherwise it only keeps its boxes together


@dataclass(frozen=True)
class State:
    """The graph after one stage or pass, as its changes since the previous state."""

    stage: str
    title: str
    about: str  # what this step does
    lines: tuple[str, ...]  # its effect on this graph
    gone: tuple[str, ...]
    defined: tuple[Node, ...]  # new or changed
    touched: tuple[str, ...] = ()  # nodes that this state is about
    place: int | None = None  # index among all passes of the placement


@dataclass(frozen=True)
class StandIn:
    """A gradient node that replaced an equal node of the forward graph.

    The users of the forward node take its stand-in, so an edge leads from Backward to Forward.
    """

    node: str
    replaced: str
    by: str  # the pass


@dataclass(frozen=True)
class Drawing:
    """One graph with all nodes that it ever had, each at a fixed place.

    The tracks are side by side and share their rows: a layer's gradients are beside the layer.
    """

    tracks: tuple[Box, ...]  # forward, backward, update
    states: tuple[State, ...]
    idle: Frame | None = None  # the passes that changed nothing
    stand_ins: tuple[StandIn, ...] = ()
    transfers: tuple[Transfer, ...] = ()  # between devices


def nodes_of(box: Box) -> list[str]:
    """The names of all nodes in a box."""
    if not box.rows:
        return [] if box.name.endswith("/") else [box.name]
    boxes = (entry for row in box.rows for entry in row if isinstance(entry, Box))
    return [name for inner in boxes for name in nodes_of(inner)]
