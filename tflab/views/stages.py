"""Stages: the name of each stage, its title, its facts and its tables.

All exporters, pages and chapters select from the same facts and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tflab.records.blocks import Block, Column, Fact, Table, fact_table
from tflab.records.options import STAGES as NAMES
from tflab.records.stages import Backward, Execution, Frontend, Placement, Stage
from tflab.views import backward, execution, frontend, placement

ROWS = 7  # of a table on the one screen, if these are all of its rows
FIRST_ROWS = 5  # of a longer one


@dataclass(frozen=True)
class StageView:
    """How one kind of stage is named and shown."""

    name: str  # on the command line and in JSON
    title: str
    facts: Callable[[Any], list[Fact]]
    tables: Callable[[Any], list[Block]]
    notes: Callable[[Any], Iterable[str]] = lambda stage: stage.notes  # findings come first
    tabled: bool = True  # whether its first table is on the one screen


STAGES: dict[type, StageView] = {
    Frontend: StageView(
        NAMES[0], "Frontend: Python calls become nodes", frontend.facts, frontend.tables
    ),
    Backward: StageView(
        NAMES[1],
        "Backward: gradient functions add the other half of the graph",
        backward.facts,
        backward.tables,
        notes=lambda stage: (),
        tabled=False,  # its facts have the formulas
    ),
    Placement: StageView(
        NAMES[2],
        "Placement: the graph is rewritten, given devices and cut into partitions",
        placement.facts,
        placement.tables,
    ),
    Execution: StageView(
        NAMES[3],
        "Execution: ops run in the order of their dependencies",
        execution.facts,
        execution.tables,
        execution.notes,
    ),
}


def name(stage: Stage) -> str:
    return STAGES[type(stage)].name


def title(stage: Stage) -> str:
    return STAGES[type(stage)].title


def summary(stage: Stage) -> str:
    """Return the first fact of a stage in one line."""
    return STAGES[type(stage)].facts(stage)[0].text


def blocks(stage: Stage, full: bool = False) -> list[Block]:
    """Return all facts and tables of one stage; if `full`, with the bodies of its functions."""
    view = STAGES[type(stage)]
    bodies = frontend.bodies(stage) if full and isinstance(stage, Frontend) else []
    return [*view.notes(stage), fact_table(view.facts(stage)), *view.tables(stage), *bodies]


def on_one_screen(stage: Stage) -> list[Block]:
    """Return the values of the facts that are no details, and the beginning of the first table."""
    view = STAGES[type(stage)]
    tables = [block for block in view.tables(stage) if isinstance(block, Table)]
    first = [beginning(table) for table in tables[: int(view.tabled)]]
    values = (replace(fact, note="") for fact in in_short(stage))
    return [*view.notes(stage), fact_table(values), *first]


def in_short(stage: Stage) -> list[Fact]:
    return [fact for fact in STAGES[type(stage)].facts(stage) if not fact.detail]


def beginning(table: Table) -> Table:
    """Return a table without most of its rows, if they are many: its title has their number."""
    most = ROWS if len(table.rows) + table.more <= ROWS else FIRST_ROWS
    return replace(table, rows=table.rows[:most], more=0, everything=None)


def story(stages: Sequence[Stage]) -> Table:
    """Return the facts of several stages in short, in one table."""
    rows = [
        (title(stage).partition(":")[0] if number == 0 else "", fact)
        for stage in stages
        for number, fact in enumerate(in_short(stage))
    ]
    return Table(
        "In short",
        (
            Column("", lambda row: row[0]),
            Column("", lambda row: row[1].label),
            Column("", lambda row: row[1].text),
        ),
        tuple(rows),
    )


def page(stage: Stage) -> list[Block]:
    """Return the title of a stage, then its blocks."""
    return [f"{title(stage)}.", *blocks(stage)]
