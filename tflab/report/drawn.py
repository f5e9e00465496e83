"""What a drawing of a graph consists of: boxes in layers, and the states that it goes through."""

from __future__ import annotations

from dataclasses import dataclass

from tflab.records.blocks import Frame
from tflab.records.graph import Node
from tflab.records.placed import Transfer

OUTSIDE = "/"  # the end of a lane that leaves its scope, or comes into it
DIRECTIONS = {"Forward": "down", "Backward": "up"}  # in which the edges of a track lead


@dataclass(frozen=True)
class Lane:
    """Room that a long edge takes up in a row which it only passes."""

    source: str  # a box by its name, or OUTSIDE
    target: str


@dataclass(frozen=True)
class Box:
    """A node, or a scope with boxes of its own in rows from top to bottom.

    A scope may bear the name of a node within it, so names of scopes end with a slash.
    """

    name: str
    label: str  # its name within the box around it
    rows: tuple[tuple[Box | Lane, ...], ...] = ()  # none in a node
    framed: bool = True  # else it only keeps its boxes together


@dataclass(frozen=True)
class State:
    """The graph after one stage or pass, as what has changed since the state before."""

    stage: str
    title: str
    about: str  # what is done to get here
    lines: tuple[str, ...]  # what that did to this graph
    gone: tuple[str, ...]
    defined: tuple[Node, ...]  # new or changed
    touched: tuple[str, ...] = ()  # nodes that this state is about
    place: int | None = None  # of the pass among all of the placement, from 0


@dataclass(frozen=True)
class StandIn:
    """A gradient's node that took the place of an equal one of the forward graph.

    What used the forward node takes its stand-in, so an edge leads from Backward to Forward.
    """

    node: str
    replaced: str
    by: str  # the pass


@dataclass(frozen=True)
class Drawing:
    """One graph with all nodes it ever had, each at a place that it keeps.

    The tracks lie side by side and share their rows: a layer's gradients stand beside the layer.
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
