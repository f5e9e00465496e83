"""Measure: one engine for every measured step. What is measured takes turns.

A turn is one step: under which setup, on which values, traced or not. Turns that are to be compared
stand in one round, so that whatever the machine does meanwhile it does to all of them. A plan says
which turns come in which order, and an observer is handed each turn with its time and its trace.
Nothing is added up in here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice
from math import ceil
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.cli import progress
from tflab.errors import RefusedError
from tflab.records import OpRun, Options, Program, Start, StepTime
from tflab.runtime import child, session, trace

WARMUP_STEPS = 3  # a new batch size means new shapes: kernels choose their algorithms again
ROUNDS = 5  # of a sweep: each batch size meets the machine as often

Values = Sequence[np.ndarray]


@dataclass(frozen=True)
class Turn:
    """One step that is run."""

    values: Values  # that are fed
    batch_size: int
    number: int = 0  # of the step, among those of its kind
    traced: bool = False
    setup: int = 0  # which of the setups it runs under
    warmup: bool = False  # not handed to the observer


@dataclass(frozen=True)
class Plan:
    """Which turns are taken, in rounds of those that belong together."""

    label: str  # of the progress bar
    rounds: Iterable[Iterable[Turn]]  # may be made as they come
    count: int  # of rounds
    traced: bool = True  # whether any turn is


@dataclass(frozen=True)
class Job:
    """The step that is measured, in a graph whose variables begin as the start says."""

    graph: tf.Graph
    start: Start
    step: session.Step


@dataclass(frozen=True)
class Ending:
    """How a measurement ended: by itself, by Ctrl-C, or by a step that failed."""

    interrupted: bool = False
    failure: RefusedError | None = None

    def check(self, kept: bool) -> None:
        """Pass on what ended it where nothing was kept."""
        if self.interrupted and not kept:
            raise KeyboardInterrupt
        if self.failure and not kept:
            raise self.failure


Observer = Callable[[Turn, StepTime, Any], None]  # the last is RunMetadata, or None where untraced


@dataclass(frozen=True)
class Runner:
    """A session that is ready to run the step."""

    untraced: Callable[..., Any]
    traced: Callable[..., Any] | None

    def take(self, turn: Turn) -> tuple[StepTime, Any]:
        if turn.traced:
            assert self.traced is not None
            return session.timed_step(self.traced, turn.values, turn.number)
        epoch, start = time.time_ns(), time.perf_counter_ns()
        self.untraced(*turn.values)
        return StepTime(turn.number, epoch, time.perf_counter_ns() - start), None


def job_of(program: Program, step: session.Step) -> Job:
    return Job(program.graph, session.start_of(program), step)


def run(job: Job, setups: Sequence[Options], plan: Plan, observe: Observer) -> Ending:
    """Take the turns of a plan, each under its setup, and hand every one to `observe`.

    Ctrl-C and a step that fails end it; what was observed until then is whole.
    """
    with ExitStack() as stack:
        runners = [stack.enter_context(ready(job, setup, plan.traced)) for setup in setups]
        try:
            for turns in progress.track(plan.label, plan.rounds, plan.count):
                for turn in turns:
                    timed, metadata = runners[turn.setup].take(turn)
                    if not turn.warmup:
                        observe(turn, timed, metadata)
        except KeyboardInterrupt:
            return Ending(interrupted=True)
        except tf.errors.OpError as error:
            return Ending(failure=session.refused(error))
    return Ending()


@contextmanager
def ready(job: Job, setup: Options, traced: bool = True) -> Iterator[Runner]:
    """A session with the compiled step. The traced one is built first of all, as in the step that
    placement reads: the runtime numbers the nodes that it makes."""
    with session.fresh(job.graph, session.config_of(setup)) as live:
        tracing = (
            job.step.callable(
                live, trace_level=session.FULL_TRACE, output_partition_graphs=setup.xla
            )
            if traced
            else None
        )
        session.begin(live, job.start)
        yield Runner(job.step.callable(live), tracing)


# Plans


def pairs(batches: Iterator[Values], size: int, warmup: int, steps: int) -> Plan:
    """Untraced and traced steps in turn, both on the same values."""

    def rounds() -> Iterator[Sequence[Turn]]:
        for number, values in enumerate(islice(batches, warmup + steps), -warmup):
            turn = Turn(values, size, number, warmup=number < 0)
            yield turn, replace(turn, traced=True)

    return Plan("steps", rounds(), warmup + steps)


def rotation(batches: Iterator[Values], size: int, setups: int, rounds: int) -> Plan:
    """Untraced steps under several setups; the order is turned around every round."""

    def turns() -> Iterator[list[Turn]]:
        for number, values in enumerate(islice(batches, WARMUP_STEPS + rounds), -WARMUP_STEPS):
            order = range(setups) if number % 2 else reversed(range(setups))
            yield [Turn(values, size, number, setup=at, warmup=number < 0) for at in order]

    return Plan("rounds", turns(), WARMUP_STEPS + rounds, traced=False)


def sweep(
    columns: Sequence[datasets.Column],
    rows: int,
    batch_sizes: Sequence[int],
    warmup: int,
    trace_every: int = 1,
) -> Plan:
    """The same rows of data at several batch sizes, each once untraced and once more traced.

    The rows are cut into rounds, in which every batch size does the same ones. Where one step in
    `trace_every` is traced, those are spread evenly, the first of all among them, and the others
    of that pass are warm-ups. The last batch is smaller where it does not come out even.
    """
    largest = max(batch_sizes)
    a_round = max(1, ceil(rows / ROUNDS / largest)) * largest
    starts = range(0, rows, a_round)

    def whole(row: int, size: int) -> int:
        return min(ceil(row / size) * size, rows)

    def turns(start: int, size: int) -> Iterator[Turn]:
        begin, end = whole(start, size), whole(start + a_round, size)
        for values in datasets.slices(columns, begin, end, size):
            yield Turn(values, size)
        for number, values in enumerate(datasets.slices(columns, begin, end, size), begin // size):
            traced = number % trace_every == 0
            yield Turn(values, size, number // trace_every, traced, warmup=not traced)

    def rounds() -> Iterator[Iterable[Turn]]:
        for size in batch_sizes:
            yield warmups(columns, rows, size, warmup)
        for start in starts:
            for size in batch_sizes:
                yield turns(start, size)

    return Plan("measuring", rounds(), len(batch_sizes) * (1 + len(starts)))


def warmups(columns: Sequence[datasets.Column], rows: int, size: int, count: int) -> Iterator[Turn]:
    """So many steps of every shape that will come: a new shape makes kernels choose anew."""
    whole = rows // size * size
    for start, stop in ((0, whole), (whole, rows)):
        for values in islice(cycle(datasets.slices(columns, start, stop, size)), count):
            yield Turn(values, size, warmup=True)
            yield Turn(values, size, traced=True, warmup=True)


def untraced(
    columns: Sequence[datasets.Column], batch_sizes: Sequence[int], warmup: int, steps: int
) -> Plan:
    """So many untraced steps of each batch size, one size after the other."""

    def turns(size: int) -> Iterator[Turn]:
        whole = len(columns[0]) // size * size if columns else steps * size
        for values in islice(datasets.slices(columns, 0, whole, size), warmup):
            yield Turn(values, size, warmup=True)
        for number, values in enumerate(islice(datasets.slices(columns, 0, whole, size), steps)):
            yield Turn(values, size, number)

    return Plan("steps", map(turns, batch_sizes), len(batch_sizes), traced=False)


# Measurements that several commands need


def in_rotation(
    program: Program, step: session.Step, setups: Sequence[Options], rounds: int
) -> list[list[int]]:
    """The times of untraced steps under several setups, in ns. Ctrl-C keeps the whole rounds."""
    times: list[list[int]] = [[] for _ in setups]

    def observe(turn: Turn, timed: StepTime, _: Any) -> None:
        times[turn.setup].append(timed.wall_ns)

    size = setups[0].batch_size
    plan = rotation(session.feed_batches(program, size), size, len(setups), rounds)
    ending = run(job_of(program, step), setups, plan, observe)
    if ending.failure:
        raise ending.failure
    whole = min(map(len, times))
    return [column[:whole] for column in times]


def untraced_elsewhere(
    program: Program,
    step: session.Step,
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    steps: int,
    options: Options,
    environment: Mapping[str, str],
) -> dict[int, list[int]]:
    """Times of untraced steps by batch size, in ns, in a process that has run nothing before."""
    return child.call(
        "tflab.runtime.measure:untraced_here",
        *(serialize(program), session.start_of(program), step, columns),
        *(tuple(batch_sizes), steps, options),
        environment=environment,
    )


def untraced_here(
    graph_def: bytes,
    start: Start,
    step: session.Step,
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    steps: int,
    options: Options,
) -> dict[int, list[int]]:
    times: dict[int, list[int]] = {size: [] for size in batch_sizes}

    def observe(turn: Turn, timed: StepTime, _: Any) -> None:
        times[turn.batch_size].append(timed.wall_ns)

    plan = untraced(columns, batch_sizes, options.warmup + 1, steps)
    ending = run(Job(import_graph(graph_def), start, step), [options], plan, observe)
    ending.check(kept=False)
    return times


def cold_elsewhere(
    program: Program, step: session.Step, batch_size: int, split: str, options: Options
) -> tuple[int, list[OpRun]]:
    """The very first step of a process of its own: its wall time in ns, and its op runs.

    In this process everything has run before. It has the options of the warm steps: otherwise
    other ops would run, and not be comparable.
    """
    values = next(session.feed_batches(program, batch_size, split))
    return child.call(
        "tflab.runtime.measure:cold_here",
        *(serialize(program), session.start_of(program), step, values, batch_size, options),
    )


def cold_here(
    graph_def: bytes,
    start: Start,
    step: session.Step,
    values: Values,
    batch_size: int,
    options: Options,
) -> tuple[int, list[OpRun]]:
    observed: list[tuple[StepTime, Any]] = []
    plan = Plan("steps", [[Turn(values, batch_size, traced=True)]], 1)
    ending = run(
        Job(import_graph(graph_def), start, step),
        [options],
        plan,
        lambda turn, timed, metadata: observed.append((timed, metadata)),
    )
    ending.check(kept=False)
    timed, metadata = observed[0]
    return timed.wall_ns, list(trace.op_runs(0, metadata.step_stats, {}))


def serialize(program: Program) -> bytes:
    """The graph for another process."""
    return program.graph.as_graph_def().SerializeToString()


def import_graph(graph_def: bytes) -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
    return graph
