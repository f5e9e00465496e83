"""Scaling: the same step in this process alone, and on more and more tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from tflab import models
from tflab.analysis import quality, scaling, timeline
from tflab.errors import TflabError, UsageError
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records import Execution, Options
from tflab.records.scaling import Scaling, ScalingRow
from tflab.runtime import cluster

Tasks = int | tuple[str, ...]  # so many new ones, or those at these addresses


def compare(model: str, phase: str, clusters: Sequence[Tasks], options: Options) -> Scaling:
    """Measure one after the other; what ends that keeps what was measured before."""
    measured: list[Execution] = []
    failure, interrupted = None, False
    for tasks in (0, *clusters):
        try:
            measured.append(executed(model, phase, tasks, options))
        except (TflabError, KeyboardInterrupt) as ended:
            if not measured or isinstance(ended, UsageError):
                raise
            interrupted = isinstance(ended, KeyboardInterrupt)
            failure = None if interrupted else str(ended)
            break
        failure, interrupted = measured[-1].failure, measured[-1].interrupted
        if failure or interrupted:
            break
    rows = scaling.against_alone([row(stage) for stage in measured])
    networks = [stage.network for stage in measured if stage.network]
    largest = max(networks, key=lambda network: len(network.tasks), default=None)
    wire = scaling.wire_cost(largest.tensors) if largest else None
    byte_ns = wire.byte_ns if wire else 0.0
    fitted = scaling.amdahl(rows, byte_ns)
    judged = [stage.quality for stage in measured if stage.quality]
    worst = next(filter(quality.disturbed, judged), judged[0] if judged else None)
    return Scaling(
        model=model,
        phase=phase,
        batch_size=options.batch_size,
        split=options.split,
        data=measured[0].data,
        rows=rows,
        wire=wire,
        amdahl=fitted,
        extrapolated=scaling.extrapolated(rows, fitted, byte_ns, options.batch_size),
        quality=worst,
        cores=worst.cores if worst else 0,
        local=all(isinstance(tasks, int) or cluster.are_local(tasks) for tasks in clusters),
        failure=failure,
        interrupted=interrupted,
    )


def executed(model: str, phase: str, tasks: Tasks, options: Options) -> Execution:
    with cluster.tasks(tasks) if tasks else nullcontext(()) as addresses:
        options = replace(options, cluster=addresses, values=False)
        built = frontend.build((model, models.find(model, options.saved)), options)
        derived = backward.differentiate(built, options)
        if phase == "inference":
            options = replace(options, fetches=(derived.program.model.output.name,))
        return execution.execute(placement.place(derived, options), options)


def row(stage: Execution) -> ScalingRow:
    """What was measured, before it is compared."""
    network = stage.network
    owners = {owner.owner: owner.ns for owner in stage.time_ledger}
    tensors = network.tensors if network else ()
    return ScalingRow(
        tasks=len(network.tasks) - 1 if network else 0,  # the client is one
        steps=stage.steps,
        step_ns=stage.untraced_step_ns,
        images_per_second=stage.batch_size * 1e9 / stage.untraced_step_ns.median,
        speed_up=1.0,
        efficiency=None,
        communication=owners[timeline.WIRE] / stage.wall_ns if network else None,
        messages=len(tensors),
        bytes=sum(tensor.bytes for tensor in tensors),
    )
