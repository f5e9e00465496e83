"""View of the network: the additional results of an execution on several tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from tflab.records.blocks import Block, Column, Fact, Table, numbers, table
from tflab.records.cluster import Network, Offset, TaskTime, WireTensor
from tflab.records.stages import Execution
from tflab.units import percent, plural, short_task, size, time

TOP = 12


def facts(stage: Execution) -> Iterator[Fact]:
    """Yield the transfers that the runtime did not record."""
    if stage.network and stage.network.unrecorded > 0:
        missing = plural(stage.network.unrecorded, "transfer")
        yield Fact("not recorded", missing, "their time is in another part, and on no path")


def tables(stage: Execution) -> Iterator[Block]:
    """Yield the tasks, the tensors and the clocks; nothing for a graph that ran in one process."""
    if stage.network is None:
        return
    yield tasks(stage, stage.network)
    if stage.network.tensors:
        yield tensors(stage, stage.network)
    yield clocks(stage.network)
    yield from stage.network.left_out


def tasks(stage: Execution, network: Network) -> Table:
    """Return computation and communication, one row per task."""

    def share(header: str, of: Callable[[TaskTime], int]) -> Column:
        return numbers(header, lambda row: percent(of(row) / (stage.wall_ns or 1)))

    def amount(header: str, of: Callable[[TaskTime], int]) -> Column:
        return numbers(header, lambda row: size(of(row) / stage.steps))

    return table(
        "Computation and communication: each task's wall time per step",
        network.tasks,
        Column("task", lambda row: row.task),
        share("computing", lambda row: row.computing_ns),
        share("of it receiving", lambda row: row.overlapped_ns),
        share("only receiving", lambda row: row.waiting_ns),
        share("neither", lambda row: row.neither_ns),
        amount("received a step", lambda row: row.received_bytes),
        amount("sent a step", lambda row: row.sent_bytes),
    )


def tensors(stage: Execution, network: Network) -> Table:
    return table(
        f"Tensors sent between tasks, recorded by the receiving task "
        f"({plural(stage.steps, 'step')})",
        network.tensors,
        Column("tensor", lambda row: row.tensor, elastic=True),
        Column("from", lambda row: row.from_task),
        Column("to", lambda row: row.to_task),
        numbers("bytes", lambda row: f"{row.bytes:,}"),
        numbers("median", lambda row: time(row.median_ns)),
        numbers("Mbit/s", rate),
        most=TOP,
    )


def rate(row: WireTensor) -> str:
    """Return the rate in Mbit/s; a tensor without bytes has none."""
    return f"{row.bits_per_s / 1e6:,.3g}" if row.bytes else ""


def clocks(network: Network) -> Table:
    """Return how far the tasks' clocks are from this process's, and by how much times were shifted.
    If a clock was set or drifted during the measurement, its uncertainty is unknown."""

    def ahead(offset: Offset) -> str:
        return "unknown" if offset.uncertainty_ns == inf else time(offset.ahead_ns)

    def uncertainty(offset: Offset) -> str:
        known = offset.consistent and offset.uncertainty_ns != inf
        return time(offset.uncertainty_ns) if known else "unknown"

    return table(
        "The tasks' clocks, compared with the client's through the messages of the steps",
        network.offsets,
        Column("clock", lambda offset: short_task(offset.clock)),
        numbers("ahead by", ahead),
        numbers("+/-", uncertainty),
        numbers("times shifted by", lambda offset: time(offset.applied_ns)),
    )
