"""View of the network: the additional results of an execution on several tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from tflab.records.blocks import Block, Column, Fact, numbers, table
from tflab.records.cluster import Offset, TaskTime
from tflab.records.stages import Execution
from tflab.units import percent, plural, short_task, size, time

TOP = 12


def facts(stage: Execution) -> Iterator[Fact]:
    """Yield the transfers that the runtime did not record."""
    if stage.network and stage.network.unrecorded > 0:
        missing = plural(stage.network.unrecorded, "transfer")
        yield Fact("not recorded", missing, "in another part of the step, and on no path")


def tables(stage: Execution) -> Iterator[Block]:
    """Yield the tasks, the tensors and the clocks; nothing for a graph that ran in one process."""
    network = stage.network
    if network is None:
        return

    def share(header: str, of: Callable[[TaskTime], int]) -> Column:
        return numbers(header, lambda row: percent(of(row) / (stage.wall_ns or 1)))

    yield table(
        "Computation and communication: each task's wall time per step",
        network.tasks,
        Column("task", lambda row: row.task),
        share("computing", lambda row: row.computing_ns),
        share("of it receiving", lambda row: row.overlapped_ns),
        share("only receiving", lambda row: row.waiting_ns),
        share("neither", lambda row: row.neither_ns),
        numbers("received a step", lambda row: size(row.received_bytes / stage.steps)),
        numbers("sent a step", lambda row: size(row.sent_bytes / stage.steps)),
    )
    if network.tensors:
        recorded = f"recorded by the receiving task ({plural(stage.steps, 'step')})"
        yield table(
            f"Tensors sent between tasks, {recorded}",
            network.tensors,
            Column("tensor", lambda row: row.tensor, elastic=True),
            Column("from", lambda row: row.from_task),
            Column("to", lambda row: row.to_task),
            numbers("bytes", lambda row: f"{row.bytes:,}"),
            numbers("median", lambda row: time(row.median_ns)),
            # A tensor without bytes has no rate
            numbers("Mbit/s", lambda row: f"{row.bits_per_s / 1e6:,.3g}" if row.bytes else ""),
            most=TOP,
        )
    yield table(
        "The tasks' clocks, compared with the client's through the messages of the steps",
        network.offsets,
        Column("clock", lambda offset: short_task(offset.clock)),
        numbers("ahead by", lambda offset: time_or_unknown(offset.ahead_ns, offset)),
        numbers("+/-", uncertainty),
        numbers("times shifted by", lambda offset: time(offset.applied_ns)),
    )
    yield from network.left_out


def time_or_unknown(ns: float, offset: Offset) -> str:
    return "unknown" if offset.uncertainty_ns == inf else time(ns)


def uncertainty(offset: Offset) -> str:
    """Return how exactly the offset of a clock is known. If the clock was set or drifted during the
    measurement, that is unknown."""
    ns = offset.uncertainty_ns
    return time_or_unknown(ns, offset) if offset.consistent else "unknown"
