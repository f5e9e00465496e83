"""Scaling: the same step in this process alone, and on more and more tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from tflab import models
from tflab.analysis import quality, scaling, timeline
from tflab.errors import RefusedError
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records import Execution, Options
from tflab.records.scaling import Scaling, ScalingRow
from tflab.runtime import cluster

Tasks = int | tuple[str, ...]  # so many new ones, or those at these addresses


def compare(model: str, phase: str, clusters: Sequence[Tasks], options: Options) -> Scaling:
    """Measure one after the other; a failure and Ctrl-C keep what was measured before."""
    measured: list[Execution] = []
    failure, interrupted = None, False
    for tasks in (0, *clusters):
        try:
            stage = executed(model, phase, tasks, options)
        except (RefusedError, KeyboardInterrupt) as error:
            if not measured:
                raise
            interrupted = isinstance(error, KeyboardInterrupt)
            failure = None if interrupted else str(error)
            break
        failure, interrupted = stage.failure, stage.interrupted
        ended_early = failure or interrupted
        if not (measured and ended_early):  # of this process alone a part is better than nothing
            measured.append(stage)
        if ended_early:
            break
    rows = scaling.against_alone([row(stage) for stage in measured])
    networks = [stage.network for stage in measured if stage.network]
    largest = max(networks, key=lambda network: len(network.tasks), default=None)
    wire = scaling.wire_cost(largest.tensors) if largest else None
    byte_ns = wire.byte_ns if wire else 0.0
    judgements = [stage.quality for stage in measured]
    judgement = next(filter(quality.disturbed, judgements), judgements[-1])
    fitted = None if quality.disturbed(judgement) else scaling.amdahl(rows, byte_ns)
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
        quality=judgement,
        cores=judgement.cores if judgement else 0,
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
