"""Measure: the only engine that measures steps. Everything that is compared takes turns.

Turns that are compared are in one round, so that the machine disturbs all of them alike. A plan
says which turns come in which order, and an observer receives each turn with its time and trace.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle, islice, pairwise
from math import ceil, inf
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.cli import interrupts, terminal
from tflab.errors import RefusedError
from tflab.records.options import Options, Program, Start
from tflab.records.timed import Spread, StepTime
from tflab.runtime import processes, session
from tflab.runtime.private import sessions

# A long trace makes the next step slower, by 6 ns for each byte: the C library tidies up memory.
# Two steps later that is hardly noticed.
TIDYING_NS = 6
NOTICED = 0.05  # of the traced step's time
SETTLING = 2  # steps that are not counted

LARGE = 2_000  # nodes of a graph that a session builds only once, for traced and untraced steps
WARMUP_STEPS = 3  # a new batch size means new shapes: kernels choose their algorithms again
ROUNDS = 5  # of a sweep: each batch size has a turn in each

Values = Sequence[np.ndarray]


@dataclass(frozen=True)
class Turn:
    """One step that is run."""

    values: Values  # that are fed
    batch_size: int
    number: int = 0  # of the step, among those of its kind
    traced: bool = False
    warmup: bool = False  # not passed to the observer


@dataclass(frozen=True)
class Plan:
    """The turns, in rounds of those that belong together."""

    label: str  # of the progress bar
    rounds: Iterable[Iterable[Turn]]  # may be generated
    count: int  # of rounds
    untraced: bool = True  # whether any turn is


@dataclass(frozen=True)
class Job:
    """A step to measure: its graph, the initial values of its variables, and the options of its
    session. Another process gets the graph as a GraphDef."""

    graph: tf.Graph
    start: Start
    step: session.Step
    options: Options

    def __reduce__(self) -> tuple[object, ...]:
        graph_def = self.graph.as_graph_def().SerializeToString()
        return unpickled, (graph_def, self.start, self.step, self.options)


def unpickled(graph_def: bytes, start: Start, step: session.Step, options: Options) -> Job:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
    return Job(graph, start, step, options)


@dataclass(frozen=True)
class Outcome:
    """How a measurement ended: by itself, by Ctrl-C, or by a step that failed."""

    interrupted: bool = False
    failure: RefusedError | None = None

    def check(self, kept: bool) -> None:
        """Raise the error that ended the measurement if nothing was kept."""
        if self.interrupted and not kept:
            interrupts.take()
            raise KeyboardInterrupt
        if self.failure and not kept:
            raise self.failure


Recorded = session.Unparsed | None  # the trace of a step; None if untraced
Observer = Callable[[Turn, StepTime, Any], None]  # the last argument is Recorded


@dataclass
class Runner:
    """A session that is ready to run the step. With XLA, an extra step after the first traced one
    returns the graphs that ran: to request them with every step would cost as much as its ops."""

    untraced: session.Run | None
    traced: session.Run | None
    with_graphs: session.Run | None = None
    graphs: tuple[tf1.GraphDef, ...] = ()
    unsettled: bool = False  # whether the trace of the last step makes the next one slower

    def take(self, turn: Turn) -> tuple[StepTime, Recorded]:
        if turn.traced:
            assert self.traced is not None
            timed, recorded = session.timed_step(self.traced, turn.values, turn.number)
            if self.with_graphs and not self.graphs:  # afterwards: a cold step comes first of all
                _, extra = session.timed_step(self.with_graphs, turn.values, turn.number)
                self.graphs = tuple(extra.parsed().partition_graphs)
            recorded.graphs = self.graphs
            self.unsettled = len(recorded.serialized) * TIDYING_NS > NOTICED * timed.wall_ns
            return timed, recorded
        assert self.untraced is not None
        for _ in range(SETTLING if self.unsettled and turn.values else 0):
            self.untraced(*turn.values)  # a step without feeds may read data of its own
        self.unsettled = False
        epoch, start = time.time_ns(), time.perf_counter_ns()
        self.untraced(*turn.values)
        return StepTime(turn.number, epoch, time.perf_counter_ns() - start), None


def job_of(program: Program, step: session.Step, options: Options) -> Job:
    return Job(program.graph, session.start_of(program), step, options)


def run(job: Job, plan: Plan, observe: Observer) -> Outcome:
    """Run the turns of a plan in a session of the job, and pass every one to `observe`. Ctrl-C or a
    step that fails ends it; what was observed until then is complete."""
    with ready(job, untraced=plan.untraced) as runner:
        try:
            with sessions.ctrl_c_kept():
                for turns in terminal.track(plan.label, plan.rounds, plan.count):
                    for turn in turns:
                        if interrupts.current.waiting:
                            return Outcome(interrupted=True)
                        timed, recorded = runner.take(turn)
                        if not turn.warmup:
                            observe(turn, timed, recorded)
        except KeyboardInterrupt:
            return Outcome(interrupted=True)
        except tf.errors.OpError as error:
            if interrupts.current.waiting:  # while the step waited for what failed
                return Outcome(interrupted=True)
            return Outcome(failure=session.refused(error, job.options))
    return Outcome()


@contextmanager
def ready(job: Job, traced: bool = True, untraced: bool = True) -> Iterator[Runner]:
    """Open a session with the compiled step. The traced step is built first, as it was for
    placement, because the runtime numbers the nodes that it makes."""
    with session.fresh(job.graph, job.options) as live:
        # A compiled step returns no trace from a master that is reached over the network.
        over_network, xla = bool(job.options.cluster), job.options.xla
        level = session.FULL_TRACE if over_network else session.trace_level()
        # Each compiled step has a graph of its own: all passes and an executor, a millisecond for
        # each node. A shared step takes some microseconds longer, which does not matter in a large
        # graph. On several devices the runtime would number its nodes differently.
        one_device = job.options.devices == 1 and level != session.FULL_TRACE
        is_large = len(job.graph.get_operations()) > LARGE
        if over_network or (traced and untraced and is_large and one_device and not xla):
            session.begin(live, job.start)
            plain, traced_step, extra = session.shared_steps(live, job.step, level)
            yield Runner(plain, traced_step, extra if over_network else None)
            return
        tracing: session.Run | None = None
        with_graphs: session.Run | None = None
        if traced and xla:
            _, tracing, with_graphs = session.shared_steps(live, job.step, level)
        elif traced:
            tracing = job.step.callable(live, trace_level=level)
        session.begin(live, job.start)
        yield Runner(job.step.callable(live) if untraced else None, tracing, with_graphs)


# Plans


def observations(least: int, budget_s: float, most: float = inf) -> Iterator[int]:
    """Yield numbers of observations until the time is over: at least `least`, at most `most`."""
    start = time.monotonic()
    for number in count():
        if number >= most or (number >= least and time.monotonic() - start > budget_s):
            return
        yield number


def pairs(batches: Iterator[Values], size: int, warmup: int, steps: int) -> Plan:
    """Return untraced and traced steps in turn, both on the same values."""

    def rounds() -> Iterator[Sequence[Turn]]:
        for number, values in enumerate(islice(batches, warmup + steps), -warmup):
            turn = Turn(values, size, number, warmup=number < 0)
            yield turn, replace(turn, traced=True)

    return Plan("steps", rounds(), warmup + steps)


def sweep(
    columns: Sequence[datasets.Column], rows: int, batch_sizes: Sequence[int], warmup: int
) -> Plan:
    """Return a plan that runs the same rows at several batch sizes, untraced and then traced. In a
    round, all batch sizes process the same rows. The last batch may be smaller."""
    rounds_of = {size: steps_of_rounds(rows, batch_sizes, size) for size in batch_sizes}
    in_all = len(rounds_of[batch_sizes[0]])

    def turns(steps: range, size: int) -> Iterator[Turn]:
        begin, end = steps.start * size, min(steps.stop * size, rows)
        for values in datasets.slices(columns, begin, end, size):
            yield Turn(values, size)
        for number, values in enumerate(datasets.slices(columns, begin, end, size), steps.start):
            yield Turn(values, size, number, traced=True)

    def rounds() -> Iterator[Iterable[Turn]]:
        for size in batch_sizes:
            yield warmups(columns, rows, size, warmup)
        for number in range(in_all):
            for size in batch_sizes:
                yield turns(rounds_of[size][number], size)

    return Plan("measuring", rounds(), len(batch_sizes) * (1 + in_all))


def steps_of_rounds(rows: int, batch_sizes: Sequence[int], size: int) -> list[range]:
    """Return the step numbers of a batch size, a range for each round of a sweep."""
    largest = max(batch_sizes)
    a_round = max(1, ceil(rows / ROUNDS / largest)) * largest
    bounds = [ceil(min(row, rows) / size) for row in range(0, rows + a_round, a_round)]
    return [range(*steps) for steps in pairwise(bounds)]


def trial(columns: Sequence[datasets.Column], batch_sizes: Sequence[int]) -> Plan:
    """Return a few steps of each batch size, untraced and traced, to see how long they take."""
    rounds = (
        [replace(turn, warmup=False) for turn in warmups(columns, size, size, WARMUP_STEPS)]
        for size in batch_sizes
    )
    return Plan("trying", rounds, len(batch_sizes))


def warmups(columns: Sequence[datasets.Column], rows: int, size: int, count: int) -> Iterator[Turn]:
    """Yield `count` untraced and traced steps of each shape that will occur, of whole batches and
    of a smaller last one: kernels choose anew for a new shape."""
    whole_batches = rows // size * size
    for start, stop in ((0, whole_batches), (whole_batches, rows)):
        for values in islice(cycle(datasets.slices(columns, start, stop, size)), count):
            yield Turn(values, size, warmup=True)
            yield Turn(values, size, traced=True, warmup=True)


# Untraced steps of several jobs in turn, also in a process of their own

Times = list[dict[int, list[int]]]  # of every job: batch size -> ns of its untraced steps


def untraced(
    environment: Mapping[str, str], *args: object
) -> AbstractContextManager[Iterator[Times]]:
    """Open a process that runs `untraced_here(*args)` whenever its turn is requested."""
    return processes.stream("tflab.runtime.measure:untraced_here", *args, environment=environment)


def untraced_here(
    jobs: Sequence[Job],
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    rounds: int,
    turns: int,
) -> Iterator[Times]:
    """Yield the times of one turn after the other, until Ctrl-C. The first item has no times: it
    says that everything is ready. Raise RefusedError for a step that fails.

    A turn has this many rounds of all jobs at every batch size, after some that warm up; the order
    is reversed every round. After `turns` turns the sessions are created anew, in another order:
    the first session has an advantage or a disadvantage, which must not always affect one job.
    """
    yield [{size: [] for size in batch_sizes} for _ in jobs]
    for seed in count():
        places = random.Random(seed).sample(range(len(jobs)), len(jobs))
        with ExitStack() as stack:
            runners = {at: stack.enter_context(ready(jobs[at], traced=False)) for at in places}
            for _ in range(turns):
                times: Times = [{size: [] for size in batch_sizes} for _ in jobs]
                for size in batch_sizes:
                    whole = len(columns[0]) // size * size if columns else size
                    batches = cycle(datasets.slices(columns, 0, whole, size))
                    warm_and_counted = islice(batches, WARMUP_STEPS + rounds)
                    for number, values in enumerate(warm_and_counted, -WARMUP_STEPS):
                        if interrupts.current.waiting:
                            return
                        for at in places if number % 2 else reversed(places):
                            try:
                                timed, _ = runners[at].take(Turn(values, size, number))
                            except tf.errors.OpError as error:
                                raise session.refused(error, jobs[at].options) from error
                            if number >= 0:
                                times[at][size].append(timed.wall_ns)
                yield times


def spread(times: Sequence[int]) -> Spread:
    """Return median, 10th and 90th percentile, with linear interpolation."""
    return Spread(*np.percentile(times, (50, 10, 90)).tolist())
