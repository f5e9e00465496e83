"""The rows of one batch size: what its ops took, and what they did in that time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tflab.analysis import batch_fit
from tflab.analysis.roofline import bandwidth
from tflab.records import Comparison, Peaks, Row
from tflab.records.blocks import Column, Table, shortened
from tflab.units import ROUNDS_UP, percent, size, three_digits, time
from tflab.views.words import of_roof

NAMES = {"op": "type that ran", "node": "node", "layer": "layer", "line": "line"}


def costs(found: Comparison, batch: int, top: int) -> Table:
    """The time that the rows took."""
    order = "in the order of execution" if found.by == "layer" else "the dearest first"
    return shortened(
        f"Batch {batch}: the time it took, {order}",
        (
            key(found),
            Column("calls", lambda row: f"{row.calls:,}", right=True),
            Column("total", lambda row: time(row.total_ns), right=True),
            Column("self", lambda row: time(row.self_ns), right=True),
            *each(found.by),
            Column("share", lambda row: percent(row.share), right=True),
            Column("cumulative", lambda row: percent(row.cumulative_share), right=True),
        ),
        found.tables.get(batch, ()),
        top,
    )


def each(by: str) -> Iterator[Column]:
    """How its calls are distributed; of a row with ops of many kinds, what a step spends in it."""
    if batch_fit.unit(by) == "step":
        yield Column("a step", lambda row: time(row.step_ns), right=True)
        yield Column("± deviation", lambda row: known(row.step_std_ns, time), right=True)
    else:
        yield Column("mean", lambda row: time(row.mean_ns), right=True)
        yield Column("median", lambda row: time(row.median_ns), right=True)
        yield Column("p95", lambda row: time(row.p95_ns), right=True)


def work(found: Comparison, batch: int, top: int) -> Table:
    """What the same rows did in that time."""
    return shortened(
        f"Batch {batch}: the work it did in a step, in the same order",
        (
            key(found),
            Column("asked for", lambda row: size(row.requested_bytes), right=True),
            Column("peak", lambda row: known(row.peak_bytes, size), right=True),
            Column("FLOPs", lambda row: known(row.flops, amount), right=True),
            Column("GFLOP/s", lambda row: known(row.gflops, three_digits), right=True),
            Column("FLOP/byte", lambda row: known(row.intensity, three_digits), right=True),
            Column("of roof", lambda row: of_roof(row.roof_share), right=True),
            Column("fused from", parts, elastic=True, least=15),
        ),
        found.tables.get(batch, ()),
        top,
    )


def key(found: Comparison) -> Column:
    return Column(NAMES[found.by], lambda row: row.key, elastic=True, least=18, name=True)


def known(value: float | None, say: Callable[[float], str]) -> str:
    return "" if value is None else say(value)


def parts(row: Row) -> str:
    """The last parts of the names: the whole ones do not fit, and begin like the row's."""
    return ", ".join(dict.fromkeys(part.rpartition("/")[2] for part in row.fused_from))


def amount(flops: float) -> str:
    """`624 k`, `15.3 M`, `1.02 G`: FLOPs with three digits."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if flops >= factor * ROUNDS_UP:
            return f"{three_digits(flops / factor)} {unit}"
    return f"{flops:.0f}"


def from_caches(peaks: Peaks) -> str:
    """The most that a cache delivers, where that was measured."""
    if not peaks.levels:
        return ""
    smallest = peaks.levels[0].working_set_bytes
    return (
        f" and up to {bandwidth(peaks, smallest):,.0f} GB/s from caches, where a call's inputs and "
        "outputs fit into them"
    )


def legend(found: Comparison) -> str:
    """What the columns of the work are, where their names are too short for it."""
    text = (
        "Asked for: bytes that the ops of a row asked their allocators for; peak: the most of "
        "them alive at once. FLOPs are those of the framework's registry"
    )
    if found.uncovered:
        text += (
            f", which has none for {', '.join(found.uncovered)}: they have none here either, and "
            "are not counted as 0"
        )
    for fault in sorted(set(found.corrected.values())):
        types = ", ".join(op for op in found.corrected if found.corrected[op] == fault)
        text += f". Those of {types} are by tflab's own formula: {fault}"
    if found.peaks:
        text += (
            ". The roof is what this machine could do at that many FLOPs a byte: at most "
            f"{found.peaks.gflops:,.0f} GFLOP/s, with {found.peaks.gigabytes_per_s:,.1f} GB/s "
            f"from memory{from_caches(found.peaks)}, as a short benchmark found"
        )
    if any((row.roof_share or 0) > 1 for table in found.tables.values() for row in table):
        text += (
            ". Above: above the roof measured here, which is what NumPy reached in a single process"
        )
    return f"{text}."
