"""Scaling: the same step in this process alone, and on more and more tasks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from tflab import models
from tflab.analysis import scaling, timeline
from tflab.errors import RefusedError
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records import Execution, Options
from tflab.records.scaling import Scaling, ScalingRow
from tflab.runtime import cluster

Tasks = int | tuple[str, ...]  # so many new ones, or those at these addresses


def compare(model: str, phase: str, clusters: Sequence[Tasks], options: Options) -> Scaling:
    """Measure one after the other; a failure keeps what was measured before."""
    measured: list[Execution] = []
    failure = None
    for tasks in (0, *clusters):
        try:
            measured.append(executed(model, phase, tasks, options))
        except RefusedError as error:
            if not measured:
                raise
            failure = str(error)
            break
        if measured[-1].failure or measured[-1].interrupted:
            failure = measured.pop().failure if len(measured) > 1 else measured[-1].failure
            break
    rows = scaling.against_alone([row(stage) for stage in measured])
    networks = [stage.network for stage in measured if stage.network]
    wire = scaling.wire_cost(networks[-1].tensors) if networks else None
    byte_ns = wire.byte_ns if wire else 0.0
    fitted = scaling.amdahl(rows, byte_ns)
    last = measured[-1].quality
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
        quality=last,
        cores=last.cores if last else 0,
        failure=failure,
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
