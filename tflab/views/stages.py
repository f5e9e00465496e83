"""Stages: the name of each stage, its title, its summary and its blocks.

All exporters show the same blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tflab.records.blocks import Block
from tflab.records.graph import edge_count
from tflab.records.options import STAGES as NAMES
from tflab.records.stages import Backward, Execution, Frontend, Placement, Stage
from tflab.units import plural, time
from tflab.views import backward, execution, frontend, placement


@dataclass(frozen=True)
class StageView:
    """How one kind of stage is named and shown."""

    name: str  # on the command line and in JSON
    title: str
    # from the record; those of the frontend also from whether they are wanted in full
    blocks: Callable[..., Iterable[Block]]
    more: Callable[[Any], str] = lambda stage: ""  # what its summary says besides nodes and edges
    opens: bool = False  # whether it shows more in full than longer tables


STAGES: dict[type, StageView] = {
    Frontend: StageView(
        NAMES[0], "Frontend: Python calls become nodes", frontend.blocks, opens=True
    ),
    Backward: StageView(
        NAMES[1],
        "Backward: gradient functions add the other half of the graph",
        backward.blocks,
        lambda stage: f", {len(stage.added_nodes):,} of the nodes new",
    ),
    Placement: StageView(
        NAMES[2],
        "Placement: the graph is rewritten, given devices and cut into partitions",
        placement.blocks,
        lambda stage: f" on {plural(len(stage.partitions), 'device')}",
    ),
    Execution: StageView(
        NAMES[3],
        "Execution: ops run in the order of their dependencies",
        execution.blocks,
        lambda stage: f", {time(stage.untraced_step_ns.median)} a step",
    ),
}


def name(stage: Stage) -> str:
    return STAGES[type(stage)].name


def title(stage: Stage) -> str:
    return STAGES[type(stage)].title


def summary(stage: Stage) -> str:
    """The result of a stage in one line."""
    counts = f"{plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}"
    return counts + STAGES[type(stage)].more(stage)


def blocks(stage: Stage, full: bool = False) -> list[Block]:
    """Return the blocks of one stage; if `full`, with the bodies of its functions."""
    view = STAGES[type(stage)]
    return list(view.blocks(stage, full) if view.opens else view.blocks(stage))


def page(stage: Stage) -> list[Block]:
    """The title and the summary of a stage, then its blocks."""
    return [f"{title(stage)}: {summary(stage)}.", *blocks(stage)]
