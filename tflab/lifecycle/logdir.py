"""Logdir: the files of a walk for TensorBoard, with steps of several batch sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import tensorflow.compat.v1 as tf1

from tflab.analysis import wires
from tflab.cli import interrupts
from tflab.exporters import tensorboard, xspace
from tflab.exporters.tensorboard import Captured
from tflab.records.options import BATCH_SIZES, Options, Program
from tflab.records.stages import Execution, Placement, Stage, find_stage
from tflab.records.timed import Capture, StepTime
from tflab.runtime import measure, nodes, session, trace

STEPS = 5  # of each batch size

Traced = Sequence[tuple[StepTime, tf1.RunMetadata]]


@dataclass(frozen=True)
class Captures:
    """The captures, and why others are missing."""

    captured: tuple[Captured, ...]
    left_out: tuple[str, ...] = ()  # a sentence for each batch size without a capture
    interrupted: bool = False


def take(placement: Placement, options: Options) -> Captures:
    """Run warm, traced steps of the walk's batch size, and of other sizes for which the data have
    enough rows, in one session, so that XLA numbers its clusters equally. A failure ends this."""
    program, own = placement.program, placement.batch_size
    others = () if program.model.fixed_batch else BATCH_SIZES
    rows, left_out = program.dataset("train").size, []
    sizes = [size for size in dict.fromkeys((own, *others)) if size <= rows]
    types = {node.name: node.op for node in placement.nodes}
    traced: dict[int, list[tuple[StepTime, tf1.RunMetadata]]] = {size: [] for size in sizes}

    def observe(turn: measure.Turn, timed: StepTime, recorded: measure.Recorded) -> None:
        assert recorded
        traced[turn.batch_size].append((timed, recorded.parsed()))

    rounds = (turns(program, size) for size in sizes)
    plan = measure.Plan("captures", rounds, len(sizes), untraced=False)
    step = session.step_of(program, placement.fetches)
    ended = measure.run(measure.job_of(program, step, options), plan, observe)
    if ended.failure:
        failed = [size for size in sizes if len(traced[size]) < STEPS]
        left_out = [f"A batch of {size} is not captured. {ended.failure}" for size in failed]
    captured = []
    for size in sorted(sizes):
        if len(traced[size]) == STEPS:
            capture = capture_of(program, size, traced[size], types)
            if options.cluster:  # on one axis, with the tensors on the wire
                arrived = (trace.received(t.step, m.step_stats) for t, m in traced[size])
                sent = tuple(nodes.transfers(traced[size][-1][1].partition_graphs, {}))
                received = chain.from_iterable(arrived)
                axis = wires.one_axis(capture.runs, received, capture.steps, sent)
                capture = replace(capture, runs=(*axis.runs, *axis.wires))
            captured.append(Captured(size, capture, traced[size][-1][1]))
    return Captures(tuple(captured), tuple(left_out), ended.interrupted)


def turns(program: Program, size: int) -> Iterator[measure.Turn]:
    """Yield the steps of a batch size. XLA compiles anew for traced steps, so warm-up is traced."""
    batches = session.feed_batches(program, size)
    first = -measure.WARMUP_STEPS
    for number, values in enumerate(islice(batches, measure.WARMUP_STEPS + STEPS), first):
        yield measure.Turn(values, size, number, traced=True, warmup=number < 0)


def capture_of(program: Program, size: int, traced: Traced, types: Mapping[str, str]) -> Capture:
    """Return traced steps as a Capture, called `lenet-batch-16`. The name of data that replace the
    model's own stands at its end."""
    dataset = program.dataset("train")
    name = f"{program.name}-batch-{size}" + f"-{dataset.name}" * bool(dataset.stands_in_for)
    runs = (trace.op_runs(timed.step, metadata.step_stats, types) for timed, metadata in traced)
    return Capture(name, tuple(timed for timed, _ in traced), tuple(chain.from_iterable(runs)))


# The files of a walk in its logdir


def write(folder: Path, stages: Sequence[Stage], options: Options) -> Captures:
    """Write what TensorBoard shows, and the code that XLA generated. The profile shows further
    steps, or the walk's own if the walk ended early."""
    last = stages[-1]
    placement, execution = find_stage(stages, Placement), find_stage(stages, Execution)
    whole = execution and not (execution.interrupted or execution.failure)
    captured = Captures(())
    if placement and execution and whole and not interrupts.current.waiting:
        captured = take(placement, options)
    if interrupts.take():
        captured = replace(captured, interrupted=True)
    tensorboard.write(folder, last, placement, captured.captured)
    if placement and execution and execution.step_times and not whole:
        network = execution.network
        runs = (*execution.runs, *(network.wires if network else ()))
        xspace.write(folder, [Capture(placement.program.name, execution.step_times, runs)])
    for code in placement.generated if placement else ():
        listings = folder / "code" / code.cluster
        listings.mkdir(parents=True)
        for name, content in code.listings.items():
            (listings / name).write_text(content, "utf-8")
    return captured
