"""Sweep: the same work at several batch sizes, traced and untraced in turn, folded as it comes.

The rows of the data are cut into rounds. In each round every batch size does the same rows twice,
untraced and traced, so that whatever the machine does meanwhile it does to all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets, progress, session, trace
from tflab.records import OpRun, Options, Program
from tflab.tally import Tally

ROUNDS = 5
KEPT = 3  # traced steps of each batch size whose op runs are kept one by one

Values = Sequence[np.ndarray]


@dataclass
class Measured:
    """What was measured at one batch size, as far as it came."""

    batch_size: int
    rows: int = 0  # of data that the traced steps worked on
    untraced_ns: list[int] = field(default_factory=list)
    traced_ns: list[int] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    runs: list[OpRun] = field(default_factory=list)  # of the KEPT steps


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
) -> Sweep:
    """Measure a step on the first `rows` rows of the data at each batch size.

    `types` are those of the nodes that run, from the placement.

    Every row is worked on once; the last batch is smaller where it does not come out even.
    Ctrl-C ends it and keeps what there is, and so does a step that fails.
    """
    columns = list(session.feed_columns(program, split).values())
    with session.fresh(program.graph, session.config_of(options)) as live:
        traced = step.callable(live, trace_level=session.FULL_TRACE)
        session.begin(live, session.start_of(program))
        untraced = step.callable(live)
        sweep = Sweep({size: Measured(size) for size in batch_sizes})
        for size in batch_sizes:
            for values in islice(batches(columns, 0, rows, size), options.warmup):
                untraced(*values)
                traced(*values, run_metadata=tf1.RunMetadata())
        try:
            for start, stop, measured in schedule(sweep, rows):
                spend(measured, untraced, batches(columns, start, stop, measured.batch_size))
                fold(measured, traced, batches(columns, start, stop, measured.batch_size), types)
        except KeyboardInterrupt:
            if not any(batch.traced_ns for batch in sweep.batches.values()):
                raise  # there is nothing to keep yet
            sweep.interrupted = True
        except tf.errors.OpError as error:
            if not any(batch.traced_ns for batch in sweep.batches.values()):
                raise
            sweep.failure = str(session.refused(error))
    return sweep


def batches(columns: Sequence[datasets.Column], start: int, stop: int, size: int) -> Iterator[Values]:
    """Views of consecutive rows; the last may be shorter."""
    for row in range(start, stop, size):
        yield [column[row : min(row + size, stop)] for column in columns]


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


def spend(measured: Measured, untraced: Callable, work: Iterator[Values]) -> None:
    """Untraced steps, one after another: only their times are kept."""
    for values in work:
        start = time.perf_counter_ns()
        untraced(*values)
        measured.untraced_ns.append(time.perf_counter_ns() - start)


def fold(
    measured: Measured, traced: Callable, work: Iterator[Values], types: Mapping[str, str]
) -> None:
    """Traced steps, each folded into the tally when it is over."""
    for values in work:
        metadata = tf1.RunMetadata()
        epoch_ns, start = time.time_ns(), time.perf_counter_ns()
        traced(*values, run_metadata=metadata)
        spent_ns = time.perf_counter_ns() - start
        measured.tally.add(*trace.durations(metadata.step_stats, epoch_ns))
        if len(measured.traced_ns) < KEPT:
            measured.runs += trace.op_runs(len(measured.traced_ns), metadata.step_stats, types)
        measured.traced_ns.append(spent_ns)
        measured.rows += len(values[0]) if values else measured.batch_size
