"""Sweep: the same work at several batch sizes; results are aggregated immediately, so memory
does not grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import add

from tflab import datasets
from tflab.analysis.accumulator import Accumulator
from tflab.records.measured import Turns
from tflab.records.options import Options, Program
from tflab.records.timed import OpRun, StepTime
from tflab.runtime import measure, session, trace

WAITING_BYTES = 2**18  # of traces that are aggregated together
KEPT = 3  # traced steps of each batch size, with whole batches, whose op runs are kept


@dataclass
class MeasuredBatch:
    """The measurements at one batch size, complete or not."""

    batch_size: int
    planned_rows: int  # rows of data to process
    batched: int | None = None  # which of the fed values has a row for each row of the batch
    rounds: Sequence[range] = ()  # the step numbers of each round, in which all sizes take turns
    untraced_ns: list[int] = field(default_factory=list)
    rows: int = 0  # rows of data that the traced steps processed
    traced_ns: list[int] = field(default_factory=list)
    ops_span_ns: list[int] = field(default_factory=list)  # from the first op to the end of the last
    accumulator: Accumulator = field(default_factory=Accumulator)  # of all traced steps
    kept: list[StepTime] = field(default_factory=list)
    runs: list[OpRun] = field(default_factory=list)  # of the kept steps
    # Traces that are not aggregated yet, and the starts of their steps
    waiting: deque[tuple[session.Unparsed, int]] = field(default_factory=deque)
    waiting_bytes: int = 0

    def fold(
        self,
        turn: measure.Turn,
        step: StepTime,
        recorded: measure.Recorded,
        types: Mapping[str, str],
    ) -> None:
        """Take a step in: a traced one completely, of an untraced one its time."""
        if recorded is None:
            self.untraced_ns.append(step.wall_ns)
            return
        rows = self.batch_size if self.batched is None else len(turn.values[self.batched])
        self.waiting.append((recorded, step.start_ns))
        self.waiting_bytes += len(recorded.serialized)
        if len(self.kept) < KEPT and rows == self.batch_size:
            self.runs += trace.op_runs(step.step, recorded.parsed().step_stats, types)
            self.kept.append(step)
        self.traced_ns.append(step.wall_ns)
        self.rows += rows
        if self.waiting_bytes >= WAITING_BYTES:
            self.settle()

    def settle(self) -> None:
        """Aggregate the waiting traces. One at a time, between two steps, would take twice as
        long: after a step the processor's caches contain nothing of this code."""
        self.waiting_bytes = 0
        while self.waiting:
            recorded, start_ns = self.waiting.popleft()
            columns = trace.columns(recorded.serialized, start_ns)
            if columns is None:
                columns = trace.durations(recorded.parsed().step_stats, start_ns)
            self.accumulator.add(*columns)
            self.ops_span_ns.append(span_of(*columns))

    def untraced_rounds(self) -> Turns:
        """The untraced times of each round, as far as measured."""
        return in_rounds(self.untraced_ns, map(len, self.rounds))


def in_rounds(times: Sequence[int], lengths: Iterable[int]) -> Turns:
    """The times of each round, as far as measured."""
    rest = iter(times)
    return tuple(taken for length in lengths if (taken := tuple(islice(rest, length))))


def span_of(names: Sequence[str], starts: Sequence[int], durations: Sequence[int]) -> int:
    """The time from the start of a step's first op to the end of its last; 0 without ops."""
    if trace.EXECUTOR in names:
        nodes = list(map(trace.EXECUTOR.__ne__, names))
        starts, durations = list(compress(starts, nodes)), list(compress(durations, nodes))
    if not starts:
        return 0
    return max(map(add, starts, durations)) - min(starts)


@dataclass(frozen=True)
class Sweep:
    batches: Mapping[int, MeasuredBatch]  # by batch size, if a step was traced
    ending: measure.Outcome


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

    `types` are those of the nodes that run, from the placement. Ctrl-C or a step that fails ends it
    and keeps the measurements so far.
    """
    columns = list(session.feed_columns(program, split).values())
    cut = (place for place, column in enumerate(columns) if not isinstance(column, datasets.Whole))
    batched = next(cut, None)
    batches = {
        size: MeasuredBatch(size, rows, batched, measure.steps_of_rounds(rows, batch_sizes, size))
        for size in batch_sizes
    }

    def observe(turn: measure.Turn, timed: StepTime, recorded: measure.Recorded) -> None:
        batches[turn.batch_size].fold(turn, timed, recorded, types)

    plan = measure.sweep(columns, rows, batch_sizes, options.warmup, trace_every)
    ending = measure.run([measure.job_of(program, step, options)], plan, observe)
    for batch in batches.values():
        batch.settle()
    done = {size: batch for size, batch in batches.items() if batch.traced_ns}
    ending.check(kept=bool(done))
    return Sweep(done, ending)


def affordable(
    seconds: float,
    program: Program,
    step: session.Step,
    batch_sizes: Sequence[int],
    rows: int,
    options: Options,
    split: str,
) -> int:
    """As many of the rows as take about this many seconds, at all batch sizes together."""
    columns = list(session.feed_columns(program, split).values())
    fastest: dict[tuple[int, bool], int] = {}

    def observe(turn: measure.Turn, timed: StepTime, _: measure.Recorded) -> None:
        kind = turn.batch_size, turn.traced
        fastest[kind] = min(timed.wall_ns, fastest.get(kind, timed.wall_ns))

    plan = measure.trial(columns, batch_sizes)
    measure.run([measure.job_of(program, step, options)], plan, observe).check(kept=False)
    return rows_within(seconds, fastest, rows)


def rows_within(seconds: float, step_ns: Mapping[tuple[int, bool], int], rows: int) -> int:
    """Whole batches of the largest size, at least one, and no more than there are; `step_ns` has
    the time of an untraced and a traced step by batch size."""
    largest = max(size for size, _ in step_ns)
    row_ns = sum(ns / size for (size, _), ns in step_ns.items())
    whole_batches = int(seconds * 1e9 / row_ns) // largest * largest
    return min(rows, max(largest, whole_batches))
