"""Stages: the name of each stage, its title, its facts and its tables.

All exporters, pages and chapters select from the same facts and tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import shorten
from types import ModuleType

from tflab.records.blocks import Block, Column, Fact, Table, fact_table
from tflab.records.options import STAGES as NAMES
from tflab.records.stages import Backward, Execution, Frontend, Placement, Stage, find_stage
from tflab.units import plural, time
from tflab.views import backward, execution, frontend, placement

LONGEST = 240  # characters of a fact in short
# Rows of the first table on the one screen: the fourth line of the toy is its formula
ROWS: dict[type, int] = {Frontend: 4, Execution: 3}
# Each has a TITLE, and `facts` and `tables` of its stage
STAGES: dict[type, ModuleType] = {
    Frontend: frontend,
    Backward: backward,
    Placement: placement,
    Execution: execution,
}


def name(stage: Stage) -> str:
    return NAMES[list(STAGES).index(type(stage))]


def title(stage: Stage) -> str:
    return str(STAGES[type(stage)].TITLE)


def facts(stage: Stage) -> list[Fact]:
    return list(STAGES[type(stage)].facts(stage))


def tables(stage: Stage) -> list[Block]:
    return list(STAGES[type(stage)].tables(stage))


def notes(stage: Stage) -> Iterable[str]:
    """Return sentences that a reader has to know first, such as findings."""
    if isinstance(stage, Execution):
        return execution.notes(stage)
    return () if isinstance(stage, Backward) else stage.notes


def blocks(stage: Stage) -> list[Block]:
    """Return all facts and tables of one stage."""
    shown = (fact for fact in facts(stage) if not fact.brief)
    return [*notes(stage), fact_table(shown), *tables(stage)]


def on_one_screen(stage: Stage) -> list[Block]:
    """Return the facts that are not details, and the first rows of the first table."""
    values = (
        replace(fact, note="") for fact in in_short(stage, f" ... in full: --stage {name(stage)}")
    )
    said = () if isinstance(stage, Execution) else notes(stage)  # `results` has them
    shown: list[Block] = [*said, fact_table(values)]
    first = next((block for block in tables(stage) if isinstance(block, Table)), None)
    if first and (rows := ROWS.get(type(stage), 0)):
        every = len(first.rows) + first.more
        title = first.title + f": {rows:,} of {every:,}" * (every > rows)
        shown.append(replace(first, title=title, rows=first.rows[:rows], more=0, everything=None))
    return shown


def results(model: str, walked: Sequence[Stage]) -> list[str]:
    """Return the main results of a walk: a sentence, and those that its numbers need."""
    last, placed = walked[-1], find_stage(walked, Placement)
    if placed is None:
        return [f"{model}: {plural(len(last.nodes), 'node')} built."]
    written = f"{model}: {plural(len(placed.user_nodes), 'node')} built"
    built = f"{written}, {len(placed.nodes):,} left to run"
    if not isinstance(last, Execution):
        return [f"{built}."]
    step = f"{time(last.untraced_step_ns.median)} a step"
    return [
        f"{built}; {step} at batch size {last.batch_size:,}.",
        *execution.notes(last, brief=True),
    ]


def in_short(stage: Stage, cut: str = " ...") -> list[Fact]:
    """Return the facts that are not details. A long value ends with `cut`."""
    shown = (fact for fact in facts(stage) if not fact.detail)
    return [replace(fact, value=shorten(fact.value, LONGEST, placeholder=cut)) for fact in shown]


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
