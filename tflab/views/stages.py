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
from tflab.units import percent, plural, time
from tflab.views import backward, execution, frontend, placement

ROWS = 3  # of a table on the one screen


@dataclass(frozen=True)
class StageView:
    """How one kind of stage is named and shown."""

    name: str  # on the command line and in JSON
    title: str
    facts: Callable[[Any], list[Fact]]
    tables: Callable[[Any], list[Block]]
    notes: Callable[[Any], Iterable[str]] = lambda stage: stage.notes  # findings come first
    tabled: bool = False  # whether its first table is on the one screen


STAGES: dict[type, StageView] = {
    Frontend: StageView(
        NAMES[0],
        "Frontend: Python calls become nodes",
        frontend.facts,
        frontend.tables,
        tabled=True,
    ),
    Backward: StageView(
        NAMES[1],
        "Backward: gradient functions add the other half of the graph",
        backward.facts,
        backward.tables,
        notes=lambda stage: (),
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
        tabled=True,
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
    facts = (fact for fact in view.facts(stage) if not fact.brief)
    return [*view.notes(stage), fact_table(facts), *view.tables(stage), *bodies]


def on_one_screen(stage: Stage) -> list[Block]:
    """Return the values of the facts that are no details, and the beginning of the first table."""
    view = STAGES[type(stage)]
    tables = [block for block in view.tables(stage) if isinstance(block, Table)]
    first = [beginning(table) for table in tables[: int(view.tabled)]]
    values = (replace(fact, note="") for fact in in_short(stage))
    return [*view.notes(stage), fact_table(values), *first]


def headline(walked: Sequence[Stage]) -> str:
    """Return the main results of a walk in one sentence."""
    last = walked[-1]
    if not isinstance(last, Placement | Execution):
        return f"{plural(len(last.nodes), 'node')} built."
    placed = next(stage for stage in walked if isinstance(stage, Placement))
    built = plural(len(placed.user_nodes), "node")
    parts = [f"{built} built, {len(placed.nodes):,} left to run"]
    if isinstance(last, Execution):
        step = time(last.untraced_step_ns.median)
        parts.append(f"{step} a step at batch size {last.batch_size:,}")
        parts += [f"most expensive: {row.key} ({percent(row.share)})" for row in last.top_ops[:1]]
    return f"{'; '.join(parts)}."


def in_short(stage: Stage) -> list[Fact]:
    return [fact for fact in STAGES[type(stage)].facts(stage) if not fact.detail]


def beginning(table: Table) -> Table:
    """Return a table without most of its rows, if they are many: its title has their number."""
    return replace(table, rows=table.rows[:ROWS], more=0, everything=None)


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
