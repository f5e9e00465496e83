"""Scaling: the same step in this process alone, and on increasing numbers of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from tflab.analysis import quality, timeline
from tflab.errors import TflabError, UsageError
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records.cluster import Scaling, ScalingRow, Tasks
from tflab.records.options import Options
from tflab.records.stages import Execution, OnTasks
from tflab.runtime import cluster


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
