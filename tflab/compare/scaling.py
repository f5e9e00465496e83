"""Scaling: the same step in this process alone, and on increasing numbers of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from tflab.analysis import quality, timeline
from tflab.errors import TflabError, UsageError
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records.blocks import Block, Column, Table
from tflab.records.cluster import Scaling, ScalingRow, Tasks
from tflab.records.options import Options
from tflab.records.stages import Execution, Placement
from tflab.runtime import cluster
from tflab.units import percent, plural, size, time


@dataclass(frozen=True)
class OnTasks:
    """A model's step on a number of tasks: the devices of its nodes, and its measurements."""

    tasks: Tasks
    placement: Placement
    execution: Execution


@dataclass(frozen=True)
class Series:
    """The step in this process alone, then on each number of tasks."""

    measured: tuple[OnTasks, ...]  # by number of tasks; the last may be partial
    failure: str | None = None  # that ended it
    interrupted: bool = False


def measure(model: str, phase: str, clusters: Sequence[Tasks], options: Options) -> Series:
    """Measure one number of tasks after the other; a failure or Ctrl-C keeps the measurements so
    far."""
    measured: list[OnTasks] = []
    for tasks in (0, *clusters):
        try:
            measured.append(on_tasks(model, phase, tasks, options))
        except (TflabError, KeyboardInterrupt) as error:
            if isinstance(error, UsageError) or not measured:
                raise
            interrupted = isinstance(error, KeyboardInterrupt)
            return Series(tuple(measured), None if interrupted else str(error), interrupted)
        last = measured[-1].execution
        if last.failure or last.interrupted:
            return Series(tuple(measured), last.failure, last.interrupted)
    return Series(tuple(measured))


def on_tasks(model: str, phase: str, tasks: Tasks, options: Options) -> OnTasks:
    with cluster.tasks(tasks) if tasks else nullcontext(()) as addresses:
        options = replace(options, cluster=addresses, values=False)
        built = frontend.of_model(model, options)
        derived = backward.differentiate(built, options)
        if phase == "inference":
            options = replace(options, fetches=(derived.program.model.output.name,))
        placed = placement.place(derived, options)
        return OnTasks(tasks, placed, execution.execute(placed, options))


def compare(model: str, phase: str, series: Series, options: Options) -> Scaling:
    """The effect of more tasks."""
    stages = [on.execution for on in series.measured]
    judgements = [stage.quality for stage in stages]
    judgement = next(filter(quality.disturbed, judgements), judgements[-1])
    return Scaling(
        model=model,
        phase=phase,
        batch_size=options.batch_size,
        split=options.split,
        data=stages[0].data,
        rows=against_alone([row(stage) for stage in stages]),
        quality=judgement,
        cores=judgement.cores if judgement else 0,
        local=all(
            isinstance(on.tasks, int) or cluster.are_local(on.tasks) for on in series.measured
        ),
        failure=series.failure,
        interrupted=series.interrupted,
    )


def row(stage: Execution) -> ScalingRow:
    """The measurements, before they are compared."""
    network = stage.network
    owners = {owner.owner: owner.ns for owner in stage.time_ledger}
    tensors = network.tensors if network else ()
    return ScalingRow(
        tasks=len(network.tasks) - 1 if network else 0,  # the client is one of them
        steps=stage.steps,
        step_ns=stage.untraced_step_ns,
        images_per_second=stage.batch_size * 1e9 / stage.untraced_step_ns.median,
        speed_up=1.0,
        efficiency=None,
        communication=owners[timeline.WIRE] / stage.wall_ns if network else None,
        messages=len(tensors),
        bytes=sum(tensor.bytes for tensor in tensors),
    )


def against_alone(rows: Sequence[ScalingRow]) -> tuple[ScalingRow, ...]:
    """The rows with their speed-up against the first one, which is this process alone."""
    alone = rows[0].step_ns.median
    filled = []
    for row in rows:
        speed_up = alone / row.step_ns.median
        efficiency = speed_up / row.tasks if row.tasks else None
        filled.append(replace(row, speed_up=speed_up, efficiency=efficiency))
    return tuple(filled)


# The view


def blocks(scaling: Scaling) -> Iterable[Block]:
    yield from warnings(scaling)
    yield from tables(scaling)


def warnings(scaling: Scaling) -> Iterable[str]:
    """The sentences above all numbers."""
    if quality.disturbed(scaling.quality) and scaling.quality:
        yield quality.sentence(scaling.quality)
    if scaling.interrupted:
        yield "Interrupted: these are the measurements up to that point."
    if scaling.failure:
        yield f"These are the measurements up to this error: {scaling.failure}"


def tables(scaling: Scaling) -> Iterable[Block]:
    yield (
        f"A step of {scaling.phase} on the same {plural(scaling.batch_size, 'row')} of "
        f"{scaling.data}, split by {scaling.split}. 0 tasks are this process alone. Each number of "
        "tasks was measured once, so speed-ups have no interval."
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
            Column("efficiency", efficiency, right=True),
            Column("network", communication, right=True),
            Column("messages", lambda row: str(row.messages), right=True),
            Column("bytes", lambda row: size(row.bytes), right=True),
        ),
        scaling.rows,
    )


def efficiency(row: ScalingRow) -> str:
    return "" if row.efficiency is None else percent(row.efficiency)


def communication(row: ScalingRow) -> str:
    return "" if row.communication is None else percent(row.communication)


def reasons(scaling: Scaling) -> Iterable[str]:
    """The reasons why tasks are slower, if they are slower by more than steps vary."""
    alone, *others = scaling.rows
    slower = [row for row in others if row.step_ns.p10 > alone.step_ns.p90]
    if not slower:
        return
    worst = min(slower, key=lambda row: row.speed_up)
    clauses = [
        f"every step sends {plural(worst.messages, 'message')} with {size(worst.bytes)}, where one "
        "process passes pointers"
    ]
    if scaling.local and worst.tasks > 1 and 0 < scaling.cores <= worst.tasks:
        clauses.append(
            f"tasks of this machine share its {plural(scaling.cores, 'core')}, which one process "
            "already uses"
        )
    if worst.tasks > 1 and scaling.split == "layers":
        clauses.append("layers wait for one another, so mostly one task works at a time")
    yield (
        f"With {plural(worst.tasks, 'task')} a step is slower than in one process (its p10 is "
        f"above the p90 of one process): {'; '.join(clauses)}."
    )
