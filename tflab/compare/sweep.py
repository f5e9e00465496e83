"""Sweep: the same work at several batch sizes, and the tables of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice
from operator import add
from statistics import median
from typing import Any

from tflab.analysis import memory, op_table, row_labels, slow_steps, wires
from tflab.analysis.op_table import Accumulator
from tflab.analysis.slow_steps import Evidence, Work
from tflab.records.measured import Compared, OpStats, StepTimes
from tflab.records.options import Options, Program
from tflab.records.stages import Execution, Placement
from tflab.records.timed import OpRun, Received, StepTime
from tflab.runtime import costs, measure, nodes, session, trace

WAITING_BYTES = 2**18  # of traces that are aggregated together
KEPT = 3  # traced steps of each batch size, with whole batches, whose op runs are kept


@dataclass
class MeasuredBatch:
    """The measurements at one batch size, complete or not."""

    batch_size: int
    planned_rows: int  # rows of data to process
    rounds: Sequence[range] = ()  # the step numbers of each round, in which all sizes take turns
    untraced_ns: list[int] = field(default_factory=list)
    rows: int = 0  # rows of data that the traced steps processed
    traced_ns: list[int] = field(default_factory=list)
    ops_span_ns: list[int] = field(default_factory=list)  # from the first op to the end of the last
    accumulator: Accumulator = field(default_factory=Accumulator)  # of all traced steps
    kept: list[StepTime] = field(default_factory=list)
    runs: list[OpRun] = field(default_factory=list)  # of the kept steps
    received: list[Received] = field(default_factory=list)  # over the wire, in the kept steps
    graphs: Sequence[Any] = ()  # that ran in the kept steps
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
        """Add a step: a traced one completely, an untraced one by its time."""
        if recorded is None:
            self.untraced_ns.append(step.wall_ns)
            return
        rows = min(self.batch_size, self.planned_rows - turn.number * self.batch_size)
        self.waiting.append((recorded, step.start_ns))
        self.waiting_bytes += len(recorded.serialized)
        if len(self.kept) < KEPT and rows == self.batch_size:
            metadata = recorded.parsed()
            self.runs += trace.op_runs(step.step, metadata.step_stats, types)
            self.received += trace.received(step.step, metadata.step_stats)
            self.graphs = metadata.partition_graphs
            self.kept.append(step)
        self.traced_ns.append(step.wall_ns)
        self.rows += rows
        if self.waiting_bytes >= WAITING_BYTES:
            self.settle()

    def settle(self) -> None:
        """Aggregate the waiting traces. One after each step would take twice as long: the
        processor's caches then contain nothing of this code."""
        self.waiting_bytes = 0
        while self.waiting:
            recorded, start_ns = self.waiting.popleft()
            columns = trace.op_times(recorded.serialized, start_ns, recorded.parsed)
            self.accumulator.add(*columns)
            self.ops_span_ns.append(span_of(*columns))

    def align(self) -> None:
        """Move the kept runs, which each task timed by its own clock, to one time axis."""
        sent = tuple(nodes.transfers(self.graphs, {}))
        self.runs = wires.one_axis(self.runs, self.received, self.kept, sent).runs

    def untraced_rounds(self) -> tuple[tuple[int, ...], ...]:
        """Return the untraced times of each round, as far as measured."""
        rest = iter(self.untraced_ns)
        lengths = map(len, self.rounds)
        return tuple(taken for length in lengths if (taken := tuple(islice(rest, length))))


def span_of(names: Sequence[str], starts: Sequence[int], durations: Sequence[int]) -> int:
    """Return the ns from the start of a step's first op to the end of its last; 0 without ops."""
    if trace.EXECUTOR in names:
        nodes = list(map(trace.EXECUTOR.__ne__, names))
        starts, durations = list(compress(starts, nodes)), list(compress(durations, nodes))
    if not starts:
        return 0
    return max(map(add, starts, durations)) - min(starts)


def run(
    program: Program,
    step: session.Step,
    batch_sizes: Sequence[int],
    rows: int,
    options: Options,
    split: str,
    types: Mapping[str, str],
) -> tuple[dict[int, MeasuredBatch], measure.Outcome]:
    """Measure a step on the first `rows` rows of the data at each batch size. Return each batch
    size of which a step was traced, and how the sweep ended. `types` has the op of each node."""
    columns = list(session.feed_columns(program, split).values())
    batches = {
        size: MeasuredBatch(size, rows, measure.steps_of_rounds(rows, batch_sizes, size))
        for size in batch_sizes
    }

    def observe(turn: measure.Turn, timed: StepTime, recorded: measure.Recorded) -> None:
        batches[turn.batch_size].fold(turn, timed, recorded, types)

    plan = measure.sweep(columns, rows, batch_sizes, options.warmup)
    ending = measure.run(measure.job_of(program, step, options), plan, observe)
    for batch in batches.values():
        batch.settle()
        if options.cluster:
            batch.align()
    done = {size: batch for size, batch in batches.items() if batch.traced_ns}
    ending.check(kept=bool(done))
    return done, ending


# The results as rows, for each batch size and side by side


def table(
    batch: MeasuredBatch, placed: Placement, by: str, last: Placement | None = None
) -> tuple[OpStats, ...]:
    """Return the rows of one batch size, with the FLOPs of their ops, as far as known. `last` is
    the placement of the smaller batch at the end of the data, if there is one."""
    accumulator = batch.accumulator
    types = {node.name: node.op for node in placed.nodes}
    devices = {node.name: node.device for node in placed.nodes}
    requested = {node.name: node.requested_bytes for node in op_table.fold(batch.runs)}
    stats = accumulator.stats(types, devices, requested)
    nodes = (*placed.user_nodes, *placed.nodes)
    graph = row_labels.Graph(
        ledger=placed.ledger,
        sources={node.name: node.line for node in nodes},
        phases={node.name: node.phase for node in nodes},
        layers=placed.program.layers,
    )
    rows = op_table.rows(stats, by, accumulator.steps, batch.rows, graph)
    rows = op_table.with_flops(rows, mean_flops(batch, placed, last))
    return op_table.with_shares(rows)


def of_walk(ran: Execution, placed: Placement) -> tuple[OpStats, ...]:
    """Return the rows of a walk's own steps by node, with their FLOPs where these are known."""
    runs = [run for run in ran.runs if run.name != trace.EXECUTOR]
    graph = row_labels.Graph(placed.ledger)
    images = ran.steps * ran.batch_size
    rows = op_table.rows(op_table.fold(runs), "node", ran.steps, images, graph)
    rows = op_table.with_flops(rows, costs.flops_of_nodes(placed))
    return op_table.with_shares(rows)


def mean_flops(
    batch: MeasuredBatch, placed: Placement, last: Placement | None
) -> dict[str, float | None]:
    """Return the mean FLOPs of a call of each node: the last batch may be smaller."""
    full_batch = costs.flops_of_nodes(placed)
    shorter = full_batch
    if last and batch.rows % batch.batch_size:
        shorter = costs.flops_of_nodes(last)

    def mean(usual: float | None, once: float | None) -> float | None:
        if usual is None or once is None:
            return None
        return usual + (once - usual) / batch.accumulator.steps

    return {name: mean(flops, shorter.get(name, flops)) for name, flops in full_batch.items()}


def times(batch: MeasuredBatch, rows: Sequence[OpStats]) -> StepTimes:
    def rows_before(step: int) -> int:
        return min(step * batch.batch_size, batch.planned_rows)

    worked_on = rows_before(len(batch.untraced_ns))
    rates = (
        1e9 * (rows_before(steps.stop) - rows_before(steps.start)) / sum(times)
        for times, steps in zip(batch.untraced_rounds(), batch.rounds, strict=False)
        if len(times) == len(steps)  # the round is complete
    )
    return StepTimes(
        steps=len(batch.traced_ns),
        images=batch.rows,
        untraced_ns=measure.spread(batch.untraced_ns),
        traced_ns=measure.spread(batch.traced_ns),
        mean_images_per_second=1e9 * worked_on / sum(batch.untraced_ns),
        ops_ns=sum(row.total_ns for row in rows) / batch.accumulator.steps,
        untraced_steps=len(batch.untraced_ns),
        peak_bytes=memory.peak_bytes(batch.runs),
        round_rates=tuple(rates),
    )


def side_by_side(tables: Mapping[int, tuple[OpStats, ...]]) -> tuple[Compared, ...]:
    """Return one row for each key, in the order of the largest batch, then of the others."""
    by_key: dict[str, dict[int, OpStats]] = {}
    for size in sorted(tables, reverse=True):
        for row in tables[size]:
            by_key.setdefault(row.key, {})[size] = row
    return tuple(
        Compared(key, of_largest.ops, of_largest.fused_from, dict(reversed(cells.items())))
        for key, cells in by_key.items()
        for of_largest in [next(iter(cells.values()))]
    )


# The evidence for a diagnosis


def evidence(batch: MeasuredBatch, placed: Placement, rows: Sequence[OpStats]) -> Evidence:
    """Return what the rules of slow steps need; `rows` are the step's nodes at one batch size."""
    sources = {node.name: node.line for node in (*placed.user_nodes, *placed.nodes)}
    lines = row_labels.line_labels(sources)
    return Evidence(
        batch_size=batch.batch_size,
        steps=batch.accumulator.steps,
        step_ns=median(batch.untraced_ns),
        quick_ns=measure.spread(batch.untraced_ns).p10,
        ops_span_ns=median(batch.ops_span_ns),
        traced_outside_ns=median(
            wall - span for wall, span in zip(batch.traced_ns, batch.ops_span_ns, strict=False)
        ),
        fed_bytes=costs.fed_bytes(placed.nodes),
        copied_bytes=0,  # its feeds are not looked at
        tables=slow_steps.whole_tables_of(placed.nodes, lines),
        nodes=tuple(
            Work(
                name=row.key,
                op=row.op,
                line=lines.get(row.key, ""),
                calls=row.calls / batch.accumulator.steps,
                call_ns=row.median_ns,
                moves=all(map(costs.moves_data, row.ops)),
                hands_on=set(row.ops) <= costs.HAND_ON,
            )
            for row in rows
        ),
    )
