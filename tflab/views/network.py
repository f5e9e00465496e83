"""View of the network: the additional results of an execution on several tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from tflab.records.blocks import Block, Column, Fact, Table, shortened
from tflab.records.cluster import Network, Offset, TaskTime, WireTensor
from tflab.records.stages import Execution
from tflab.units import percent, plural, short_task, size, time

TOP = 12
# times as long as for any other task; at half of all time or more, the steps waited for it
CLEARLY = 2


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
    yield from slow(stage, stage.network)
    if stage.network.tensors:
        yield tensors(stage, stage.network)
    yield clocks(stage.network)
    yield from stage.network.left_out


def tasks(stage: Execution, network: Network) -> Table:
    """Computation and communication, one row per task."""

    def share(ns: int) -> str:
        return percent(ns / stage.wall_ns) if stage.wall_ns else "0 %"

    def column(header: str, ns: str) -> Column:
        return Column(header, lambda row: share(getattr(row, ns)), right=True)

    def bytes_of(row: TaskTime, direction: str) -> str:
        return size(getattr(row, direction) / stage.steps)

    return Table(
        "Computation and communication: each task's wall time per step",
        (
            Column("task", lambda row: row.task),
            column("computing", "computing_ns"),
            column("of it receiving", "overlapped_ns"),
            column("only receiving", "waiting_ns"),
            column("neither", "neither_ns"),
            Column("received a step", lambda row: bytes_of(row, "received_bytes"), right=True),
            Column("sent a step", lambda row: bytes_of(row, "sent_bytes"), right=True),
        ),
        network.tasks,
    )


def slow(stage: Execution, network: Network) -> Iterable[str]:
    """The task that the others waited for, if there clearly is one."""

    def waited(row: TaskTime) -> int:
        return row.alone_ns + row.awaited_ns

    most, *others = sorted(network.tasks, key=waited, reverse=True)
    rest = max(map(waited, others), default=0)
    if most.task == "client" or waited(most) < max(CLEARLY * rest, stage.wall_ns / 2):
        return
    lengths = sorted(step.wall_ns for step in stage.step_times)
    yield (
        f"The steps waited for {most.task} most: only its ops ran for "
        f"{percent(most.alone_ns / stage.wall_ns)} of their time, and for "
        f"{percent(most.awaited_ns / stage.wall_ns)} no op ran until its next one began. The "
        f"longest step took {time(lengths[-1])}, the median one {time(lengths[len(lengths) // 2])}."
    )


def tensors(stage: Execution, network: Network) -> Table:
    return shortened(
        f"Tensors sent between tasks, recorded by the receiving task "
        f"({plural(stage.steps, 'step')})",
        (
            Column("tensor", lambda row: row.tensor, elastic=True),
            Column("from", lambda row: row.from_task),
            Column("to", lambda row: row.to_task),
            Column("bytes", lambda row: f"{row.bytes:,}", right=True),
            Column("median", lambda row: time(row.median_ns), right=True),
            Column("rate", rate, right=True),
        ),
        network.tensors,
        TOP,
    )


def rate(row: WireTensor) -> str:
    """In bits per second; a tensor without bytes has no rate."""
    if not row.bytes:
        return ""
    unit, factor = ("Gbit/s", 1e9) if row.bits_per_s >= 1e9 else ("Mbit/s", 1e6)
    return f"{row.bits_per_s / factor:.3g} {unit}"


def clocks(network: Network) -> Table:
    """How far the tasks' clocks are from this process's, and by how much times were shifted."""
    return Table(
        "The tasks' clocks, compared with the client's through the messages of the steps",
        (
            Column("clock", lambda offset: short_task(offset.clock)),
            Column("ahead by", lambda offset: ahead(offset), right=True),
            Column("+/-", lambda offset: uncertainty(offset), right=True),
            Column("times shifted by", lambda offset: shift(offset), right=True),
        ),
        network.offsets,
    )


def ahead(offset: Offset) -> str:
    return "unknown" if offset.uncertainty_ns == inf else time(offset.ahead_ns)


def uncertainty(offset: Offset) -> str:
    """The uncertainty; unknown if the clock was set or drifted during the measurement."""
    known = offset.consistent and offset.uncertainty_ns != inf
    return time(offset.uncertainty_ns) if known else "unknown"


def shift(offset: Offset) -> str:
    return time(offset.applied_ns) if offset.applied_ns else "not shifted"
