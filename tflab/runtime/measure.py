"""Sweep: the same work at several batch sizes, traced and untraced in turn, folded as it comes.

The rows of the data are cut into rounds. In each round every batch size does the same rows twice,
untraced and traced, so that whatever the machine does meanwhile it does to all of them. Where only
some steps are to be traced, they are spread evenly over the whole data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from math import ceil

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.analysis.op_stats import Tally
from tflab.cli import progress
from tflab.records import OpRun, Options, Program, StepTime
from tflab.runtime import session, trace

ROUNDS = 5
KEPT = 3  # traced steps of each batch size, all of whole batches, whose op runs are kept

Values = Sequence[np.ndarray]


@dataclass
class Measured:
    """What was measured at one batch size, as far as it came."""

    batch_size: int
    wanted: int = 0  # rows of data to work on
    untraced_ns: list[int] = field(default_factory=list)
    passed: int = 0  # steps of the traced pass, with those that were not traced
    rows: int = 0  # of data that the traced steps worked on
    traced_ns: list[int] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    kept: list[StepTime] = field(default_factory=list)
    runs: list[OpRun] = field(default_factory=list)  # of the kept steps

    def rows_of(self, step: int) -> int:
        """Rows of data that a step of the pass works on: the last batch may be a smaller one."""
        return min(self.batch_size, self.wanted - step * self.batch_size)


@dataclass
class Sweep:
    batches: dict[int, Measured]
    interrupted: bool = False
    failure: str | None = None  # of a step: what was measured until then is kept


def run(
    program: Program,
    step: session.Step,
    batch_sizes: Sequence[int],
    rows: int,
    options: Options,
    split: str,
    types: Mapping[str, str],
    trace_every: int = 1,
) -> Sweep:
    """Measure a step on the first `rows` rows of the data at each batch size.

    `types` are those of the nodes that run, from the placement. One step in `trace_every` is
    traced, the first of all among them.

    Every row is worked on once untraced, and once more with tracing; the last batch is smaller
    where it does not come out even. Ctrl-C ends it and keeps what there is, and so does a step
    that fails.
    """
    columns = list(session.feed_columns(program, split).values())
    with session.fresh(program.graph, session.config_of(options)) as live:
        traced = step.callable(live, trace_level=session.FULL_TRACE)
        session.begin(live, session.start_of(program))
        untraced = step.callable(live)
        sweep = Sweep({size: Measured(size, rows) for size in batch_sizes})
        for size in batch_sizes:
            for values in warmups(columns, rows, size, options.warmup):
                untraced(*values)
                traced(*values, run_metadata=tf1.RunMetadata())
        try:
            for start, stop, measured in schedule(sweep, rows):
                work = partial(batches, columns, start, stop, measured.batch_size)
                spend(measured, untraced, work())
                fold(measured, traced, untraced, work(), types, trace_every)
        except KeyboardInterrupt:
            if not any(batch.traced_ns for batch in sweep.batches.values()):
                raise  # there is nothing to keep yet
            sweep.interrupted = True
        except tf.errors.OpError as error:
            if not any(batch.traced_ns for batch in sweep.batches.values()):
                raise
            sweep.failure = str(session.refused(error))
    return sweep


def batches(
    columns: Sequence[datasets.Column], start: int, stop: int, size: int
) -> Iterator[Values]:
    """Views of consecutive rows; the last may be shorter."""
    for row in range(start, stop, size):
        yield [column[row : min(row + size, stop)] for column in columns]


def warmups(
    columns: Sequence[datasets.Column], rows: int, size: int, count: int
) -> Iterator[Values]:
    """So many batches of every shape that will come: a new shape makes kernels choose anew."""
    whole = rows // size * size
    yield from islice(cycle(batches(columns, 0, whole, size)), count)
    yield from islice(cycle(batches(columns, whole, rows, size)), count)


def schedule(sweep: Sweep, rows: int) -> Iterator[tuple[int, int, Measured]]:
    """Which rows at which batch size, round after round. At every size a round is whole batches."""

    def whole(row: int, size: int) -> int:
        return min(ceil(row / size) * size, rows)

    largest = max(sweep.batches)
    a_round = max(1, ceil(rows / ROUNDS / largest)) * largest
    plan = [
        (whole(start, size), whole(start + a_round, size), measured)
        for start in range(0, rows, a_round)
        for size, measured in sweep.batches.items()
    ]
    return progress.track("measuring", plan, len(plan))


def spend(measured: Measured, untraced: Callable, work: Iterable[Values]) -> None:
    """Untraced steps, one after another: only their times are kept."""
    for values in work:
        start = time.perf_counter_ns()
        untraced(*values)
        measured.untraced_ns.append(time.perf_counter_ns() - start)


def fold(
    measured: Measured,
    traced: Callable,
    untraced: Callable,
    work: Iterable[Values],
    types: Mapping[str, str],
    every: int = 1,
) -> None:
    """Steps of which one in `every` is traced, and folded into the tally when it is over."""
    for values in work:
        if measured.passed % every:
            untraced(*values)
        else:
            step, metadata = session.timed_step(traced, values, len(measured.traced_ns))
            rows = measured.rows_of(measured.passed)
            measured.tally.add(*trace.durations(metadata.step_stats, step.start_ns))
            if len(measured.kept) < KEPT and rows == measured.batch_size:
                measured.runs += trace.op_runs(step.step, metadata.step_stats, types)
                measured.kept.append(step)
            measured.traced_ns.append(step.wall_ns)
            measured.rows += rows
        measured.passed += 1
