"""View of scaling: the same step on increasing numbers of tasks."""

from __future__ import annotations

from collections.abc import Iterable

from tflab.analysis import quality
from tflab.records.blocks import Block, Column, Table
from tflab.records.cluster import Scaling
from tflab.units import percent, plural, size, time
from tflab.views import execution
from tflab.views.op_table import text_or_blank


def blocks(scaling: Scaling) -> Iterable[Block]:
    yield from warnings(scaling)
    yield from tables(scaling)


def warnings(scaling: Scaling) -> Iterable[str]:
    """The sentences above all numbers."""
    if quality.disturbed(scaling.quality) and scaling.quality:
        yield quality.sentence(scaling.quality)
    yield from execution.partial(scaling.interrupted, scaling.failure)


def tables(scaling: Scaling) -> Iterable[Block]:
    yield (
        f"Each row is a step of {scaling.phase} on the same {plural(scaling.batch_size, 'row')} "
        f"of {scaling.data}, split by {scaling.split}. 0 tasks means this process alone. Each "
        "number of tasks was measured once, so speed-ups have no interval."
    )
    yield measured(scaling)
    if not quality.disturbed(scaling.quality):
        yield from reasons(scaling)


def measured(scaling: Scaling) -> Table:
    return Table(
        "Untraced steps; network: share of traced steps in which tensors were sent and no op ran",
        (
            Column("tasks", lambda row: str(row.tasks), right=True),
            Column("step", lambda row: time(row.step_ns.median), right=True),
            Column("p10", lambda row: time(row.step_ns.p10), right=True),
            Column("p90", lambda row: time(row.step_ns.p90), right=True),
            Column("rows/s", lambda row: f"{row.images_per_second:,.0f}", right=True),
            Column("speed-up", lambda row: f"{row.speed_up:.2f}", right=True),
            Column("efficiency", lambda row: text_or_blank(row.efficiency, percent), right=True),
            Column("network", lambda row: text_or_blank(row.communication, percent), right=True),
            Column("messages", lambda row: str(row.messages), right=True),
            Column("bytes", lambda row: size(row.bytes), right=True),
        ),
        scaling.rows,
    )


def reasons(scaling: Scaling) -> Iterable[str]:
    """The reasons why tasks are slower, if they are slower by more than steps vary."""
    alone, *others = scaling.rows
    slower = [row for row in others if row.step_ns.p10 > alone.step_ns.p90]
    if not slower:
        return
    worst = min(slower, key=lambda row: row.speed_up)
    clauses = [
        f"every step sends {plural(worst.messages, 'message')} with {size(worst.bytes)}, while "
        "one process only passes pointers"
    ]
    if scaling.local and worst.tasks > 1 and 0 < scaling.cores <= worst.tasks:
        clauses.append(
            f"tasks on this machine share its {plural(scaling.cores, 'core')}, which one process "
            "already uses"
        )
    if worst.tasks > 1 and scaling.split == "layers":
        clauses.append("layers wait for one another, so most of the time only one task works")
    yield (
        f"With {plural(worst.tasks, 'task')} a step is slower than in one process (its p10 is "
        f"above the p90 of one process): {'; '.join(clauses)}."
    )
