"""The chapter of a step over several tasks: its parts, the tensors on the wire, its time, and
the effect of more tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflab.analysis import step_times, wires
from tflab.compare import scaling_view
from tflab.exporters import plots
from tflab.records.cluster import Network, as_given
from tflab.records.placed import Partition
from tflab.records.stages import Placement
from tflab.report import contents, over_tasks
from tflab.report.contents import Method, OneStep, OverTasks, Part
from tflab.runtime import trace
from tflab.units import plural, short_task, size, task_of
from tflab.views import execution, network, placement

CUT = {  # by the value of --split
    "layers": "Each task has consecutive layers",
    "batch": "Each task has a copy of the model and its part of the rows; task 0 has the variables",
}


def parts(model: str, measured: OverTasks) -> Iterator[Part]:
    if measured.scaling is None:
        yield f"{model} was not run over tasks. {measured.failure}"
        return
    yield from scaling_view.warnings(measured.scaling)
    if measured.shown:
        yield from one_step(model, measured, measured.shown)
    yield from scaling_view.tables(measured.scaling)
    yield Method(
        f"{measured.steps} untraced steps and as many traced ones, alternating, at each number of "
        "tasks, each with new sessions and, on this machine, new tasks.",
        scaled(model, measured),
    )


def one_step(model: str, measured: OverTasks, shown: OneStep) -> Iterator[Part]:
    step = shown.execution
    yield (
        f"A {measured.phase} step of {model} on {over_tasks.title(shown.tasks)} of TensorFlow's "
        "distributed runtime, and on this process, the client, which feeds the data. "
        f"{CUT[measured.split]}."
    )
    yield placement.partitions(in_order(shown.placement))
    yield sent(shown.network)
    middle = step_times.median_step(step.step_times)
    runs = [run for run in step.runs if run.name != trace.EXECUTOR]
    path, transfers = step.critical_path, shown.placement.transfers
    yield contents.picture("tasks", plots.tasks.draw, runs, step.wires, middle, path, transfers)
    yield execution.owners(step)
    yield from network.blocks(step)
    yield Method(contents.warm(step), walking(model, measured, shown))


def in_order(placing: Placement) -> Placement:
    """The client's part first, then that of task 0, 1 and so on."""

    def task(part: Partition) -> tuple[bool, int, str]:
        return wires.order(short_task(task_of(part.device)))

    return replace(placing, partitions=tuple(sorted(placing.partitions, key=task)))


def sent(over: Network) -> str:
    amount = size(sum(tensor.bytes for tensor in over.tensors))
    return (
        f"A step sends {plural(len(over.tensors), 'tensor')} over the wire, {amount} in all. A "
        "tensor of 0 bytes only enforces an order."
    )


def walking(model: str, measured: OverTasks, shown: OneStep) -> str:
    return (
        f"python -m tflab.lifecycle --model {model} --batch-size {measured.batch_size} "
        f"--steps {measured.steps} --cluster {as_given(shown.tasks)} --split {measured.split}"
    )


def scaled(model: str, measured: OverTasks) -> str:
    clusters = " ".join(map(as_given, measured.clusters))
    return (
        f"python -m tflab.compare --model {model} --phase {measured.phase} "
        f"--batch-sizes {measured.batch_size} --steps {measured.steps} --cluster {clusters} "
        f"--split {measured.split}"
    )
