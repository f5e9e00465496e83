"""Batch tables: the results of a sweep as rows, for each batch size and side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tflab.analysis import batch_fit, memory, op_stats, op_table, step_times
from tflab.compare import sweep
from tflab.records.measured import Compared, Costs, OpStats, Peaks, StepTimes
from tflab.records.stages import Execution, Placement
from tflab.runtime import costs, machine, trace

Tables = dict[int, tuple[OpStats, ...]]  # by batch size


def under_a_roof(tabulate: Callable[[Peaks], Tables]) -> tuple[Tables, Peaks]:
    """Tables by batch size, and the peaks of the machine that they are compared with.

    If a row is above its roof, the roof is measured once more: it may have been too low.
    """
    peaks = machine.peaks()
    tables = tabulate(peaks)
    if any((row.roof_share or 0) > 1 for table in tables.values() for row in table):
        peaks = machine.measure_again(peaks)
        tables = tabulate(peaks)
    return tables, peaks


def table(
    batch: sweep.MeasuredBatch,
    placed: Placement,
    by: str,
    peaks: Peaks,
    last: Placement | None = None,
) -> tuple[OpStats, ...]:
    """The rows of one batch size, with the costs of their ops, as far as known.

    `last` is the placement of the smaller batch at the end of the data, if there is one.
    """
    devices = {node.name: node.device for node in placed.nodes}
    types = {node.name: node.op for node in placed.nodes}
    nodes = (*placed.user_nodes, *placed.nodes)
    requested = {node.name: node.requested_bytes for node in op_stats.fold(batch.runs)}
    return op_table.table(
        batch.accumulator.stats(types, devices, requested),
        by,
        batch.accumulator.steps,
        batch.rows,
        costs=mean_costs(batch, placed, last),
        ledger=placed.ledger,
        sources={node.name: node.source for node in nodes},
        phases={node.name: node.phase for node in nodes},
        layers=placed.program.layers,
        peaks=peaks,
        quantile=batch.accumulator.quantile,
        step_std_ns=batch.accumulator.step_std_ns,
        step_median_ns=batch.accumulator.step_median_ns,
        peak_bytes=partial(memory.peaks, batch.runs),
    )


def of_walk(ran: Execution, placed: Placement, peaks: Peaks) -> tuple[OpStats, ...]:
    """The rows of a walk's own steps by node, with their costs, as far as known."""
    runs = [run for run in ran.runs if run.name != trace.EXECUTOR]
    return op_table.table(
        op_stats.fold(runs),
        "node",
        ran.steps,
        ran.steps * ran.batch_size,
        costs=costs_of(placed).values(),
        ledger=placed.ledger,
        peaks=peaks,
        peak_bytes=partial(memory.peaks, runs),
    )


def mean_costs(
    batch: sweep.MeasuredBatch, placed: Placement, last: Placement | None
) -> Iterator[Costs]:
    """The work of a call of each node, as the mean over the steps: the last batch may be
    smaller."""
    full_batch = costs_of(placed)
    shorter = costs_of(last) if last and batch.rows % batch.batch_size else full_batch

    def mean(usual: float | None, once: float | None) -> float | None:
        if usual is None or once is None:
            return None
        return usual + (once - usual) / batch.accumulator.steps

    def size(usual: int | None, once: int | None) -> int | None:
        between = mean(usual, once)
        return None if between is None else round(between)

    for name, cost in full_batch.items():
        once = shorter.get(name, cost)
        yield replace(cost, flops=mean(cost.flops, once.flops), bytes=size(cost.bytes, once.bytes))


def costs_of(placed: Placement) -> dict[str, Costs]:
    return {cost.name: cost for cost in costs.costs(placed)}


def times(batch: sweep.MeasuredBatch, rows: Sequence[OpStats]) -> StepTimes:
    memory_use = memory.memory(batch.runs, batch.kept)
    worked_on = min(len(batch.untraced_ns) * batch.batch_size, batch.planned_rows)
    return StepTimes(
        steps=len(batch.traced_ns),
        images=batch.rows,
        untraced_ns=step_times.spread(batch.untraced_ns),
        traced_ns=step_times.spread(batch.traced_ns),
        mean_images_per_second=1e9 * worked_on / sum(batch.untraced_ns),
        ops_ns=sum(row.self_ns for row in rows) / batch.accumulator.steps,
        untraced_steps=len(batch.untraced_ns),
        peak_bytes=memory_use.peak_bytes,
        curve=memory_use.curve,
        round_rates=tuple(round_rates(batch)),
    )


def round_rates(batch: sweep.MeasuredBatch) -> Iterator[float]:
    """The images per second of each complete round."""
    for times, steps in zip(batch.untraced_rounds(), batch.rounds, strict=False):
        if len(times) == len(steps):
            end = min(steps.stop * batch.batch_size, batch.planned_rows)
            yield 1e9 * (end - steps.start * batch.batch_size) / sum(times)


def side_by_side(tables: Tables, steps: Mapping[int, StepTimes], by: str) -> tuple[Compared, ...]:
    """One row for each key, in the order of the largest batch, then of the others."""
    by_key: dict[str, dict[int, OpStats]] = {}
    for size in sorted(tables, reverse=True):
        for row in tables[size]:
            by_key.setdefault(row.key, {})[size] = row
    compared = []
    for key, by_size in by_key.items():
        cells = {size: by_size[size] for size in sorted(by_size)}
        of_largest = next(iter(by_size.values()))
        fit = batch_fit.fit(cells, steps, by)
        compared.append(Compared(key, of_largest.ops, of_largest.fused_from, cells, fit))
    return tuple(compared)
