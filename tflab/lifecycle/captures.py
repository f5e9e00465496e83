"""Captures: traced steps for TensorBoard's graphs and profile, at the batch sizes of the lab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tflab.exporters.tensorboard import Captured
from tflab.records import Capture, Options, Placement, Program, StepTime
from tflab.records.options import BATCH_SIZES
from tflab.runtime import dumps, measure, plans, session, trace

STEPS = 5  # of each batch size

Traced = Sequence[tuple[StepTime, Any]]  # with their RunMetadata


def take(placement: Placement, options: Options) -> tuple[tuple[Captured, ...], bool]:
    """Warm, traced steps of every batch size, and whether Ctrl-C left some out."""
    program = placement.program
    types = {node.name: node.op for node in placement.nodes}
    folder = dumps.prepare() if options.xla else None
    known: dict[int, set[Path]] = {}  # the HloProtos that were there before a batch size
    traced: dict[int, list[tuple[StepTime, Any]]] = {size: [] for size in BATCH_SIZES}

    def rounds() -> Iterator[Iterable[measure.Turn]]:
        for size in BATCH_SIZES:
            known[size] = protos(folder)
            yield turns(program, size)

    def observe(turn: measure.Turn, timed: StepTime, recorded: Any) -> None:
        traced[turn.batch_size].append((timed, recorded.parsed()))

    plan = measure.Plan("captures", rounds(), len(BATCH_SIZES))
    step = session.step_of(program, placement.fetches)
    ending = measure.run([measure.job_of(program, step, options)], plan, observe)
    if ending.failure:
        raise ending.failure
    after = [*list(known.values())[1:], protos(folder)]
    captured = []
    for (size, before), then in zip(known.items(), after, strict=True):
        if len(traced[size]) == STEPS:
            capture = captured_of(capture_name(program, size), traced[size], types)
            modules = modules_of(capture, then - before)
            captured.append(Captured(size, capture, traced[size][-1][1], modules))
    return tuple(captured), ending.interrupted


def turns(program: Program, size: int) -> Iterator[measure.Turn]:
    """XLA compiles for the traced step by itself, so that is the one to warm up."""
    batches = session.feed_batches(program, size)
    first = -plans.WARMUP_STEPS
    for number, values in enumerate(islice(batches, plans.WARMUP_STEPS + STEPS), first):
        yield measure.Turn(values, size, number, traced=True, warmup=number < 0)


def capture_name(program: Program, batch_size: int) -> str:
    """`lenet-batch-16`, and never silent about data that are not the ones asked for."""
    dataset = program.dataset("train")
    name = f"{program.name}-batch-{batch_size}"
    return f"{name}-{dataset.name}" if dataset.stands_in_for else name


def captured_of(name: str, traced: Traced, types: Mapping[str, str]) -> Capture:
    """Traced steps as records."""
    runs = (trace.op_runs(timed.step, metadata.step_stats, types) for timed, metadata in traced)
    return Capture(name, tuple(timed for timed, _ in traced), tuple(chain.from_iterable(runs)))


def protos(folder: Path | None) -> set[Path]:
    """The HloProtos that XLA has dumped: what it compiled, as it runs."""
    return set(folder.glob("*.cpu_after_optimizations.hlo.pb")) if folder else set()


def modules_of(capture: Capture, paths: Iterable[Path]) -> dict[str, bytes]:
    """Of these HloProtos those of the clusters that ran in the capture, by module."""
    scopes = {run.name.partition("/")[0] for run in capture.runs}
    modules = {}
    for path in sorted(paths):
        module = path.name.partition("__XlaCompiledKernel")[0]  # module_0058.cluster_5
        cluster = module.partition(".")[2]
        if any(scope.startswith(f"{cluster}_") for scope in scopes):
            modules[module] = path.read_bytes()
    return modules
