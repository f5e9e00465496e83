"""View of the buffers of a step: what sharing memory saved, the largest buffers, and whether it
adds up."""

from __future__ import annotations

from collections.abc import Iterable

from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.buffers import Amount, Buffer, Buffers
from tflab.units import plural, size, time
from tflab.views import numbered

TOP = 10
NAMED = 3  # tensors that are named of those released at another time


def blocks(buffers: Buffers | None) -> Iterable[Block]:
    if buffers is None:
        return
    yield sharing(buffers)
    largest = sorted(buffers.buffers, key=lambda item: (-item.bytes, item.from_ns))
    yield shortened("The largest buffers by address", columns(), largest, TOP)
    yield kept_for_backward(buffers)
    yield " ".join((peak(buffers), *releases(buffers)))


def sharing(buffers: Buffers) -> Table:
    """From the tensors to the addresses that they occupy."""
    return Table(
        "Memory of the tensors in the median step",
        (
            Column("tensors and buffers", lambda row: row[0]),
            Column("count", lambda row: f"{row[1]:,}", right=True),
            Column("bytes", lambda row: size(row[2]), right=True),
        ),
        tuple(amounts(buffers)),
    )


def amounts(buffers: Buffers) -> Iterable[tuple[str, int, int]]:
    """A row for each amount; saved memory has a minus."""

    def row(words: str, amount: Amount, sign: int = 1) -> tuple[str, int, int]:
        return words, amount.count, sign * amount.bytes

    yield row("tensors that ops produced during the step", buffers.made)
    yield row("  saved: output is the input's memory, unchanged", buffers.passed_on, -1)
    yield row("  saved: written over an input (in place)", buffers.in_place, -1)
    rounding = rounded_up(buffers)
    if rounding:
        yield "  rounded up by allocators", buffers.requested.count, rounding
    yield row("requested, in buffers", buffers.requested)
    yield row("  saved: memory of an earlier buffer, reused", buffers.reused, -1)
    yield row("distinct buffers", buffers.distinct)
    yield row("also: temporary memory of running ops (no addresses)", buffers.working)
    if buffers.other.count:
        yield row("also: memory kept longer, in no output (no addresses)", buffers.other)


def rounded_up(buffers: Buffers) -> int:
    shared = buffers.passed_on.bytes + buffers.in_place.bytes
    return buffers.requested.bytes - (buffers.made.bytes - shared)


def columns() -> tuple[Column, ...]:
    return (
        Column("address", lambda item: f"{item.address:#x}"),
        Column("bytes", lambda item: size(item.bytes), right=True),
        Column("written by", lambda item: item.tensor, elastic=True, name=True),
        Column("alive", alive, right=True),
        Column("backward", for_backward, right=True, spare=1),
        Column("in place", in_place, elastic=True, name=True, spare=2),
        Column("reused by", lambda item: first(item.after), elastic=True, name=True, spare=3),
    )


def alive(item: Buffer) -> str:
    if item.until_ns is None:
        return "to the end"
    return f"{time(item.until_ns - item.from_ns)}{'' if item.freed_by == 'record' else ' inferred'}"


def for_backward(item: Buffer) -> str:
    """How long only the backward pass needed it."""
    if item.backward_ns is None or item.until_ns is None:
        return ""
    return time(max(0, item.until_ns - item.backward_ns))


def in_place(item: Buffer) -> str:
    return first(tuple(use.node for use in item.in_place))


def first(names: tuple[str, ...]) -> str:
    """`conv1/Relu +2`"""
    return f"{names[0]} +{len(names) - 1:,}" if len(names) > 1 else "".join(names)


def kept_for_backward(buffers: Buffers) -> str:
    kept, every = buffers.for_backward, buffers.requested
    if not kept.count:
        return "No buffer of a forward op was last read by a node of the backward pass."
    verb = "was" if kept.count == 1 else "were"
    return (
        f"{kept.count:,} of {plural(every.count, 'buffer')}, {size(kept.bytes)} of "
        f"{size(every.bytes)}, {verb} written by forward ops and last read by gradients or "
        f"updates, so that memory stayed allocated for the backward pass. The readers are "
        f"inferred from the graph that ran."
    )


def peak(buffers: Buffers) -> str:
    """Whether buffers add up to the allocators' records, and what is missing."""
    at = buffers.at_peak
    parts = [f"{size(at.buffer_bytes)} in these buffers"]
    if at.working_bytes:
        parts.append(f"{size(at.working_bytes)} of working memory")
    if at.other_bytes:
        parts.append(f"{size(at.other_bytes)} in no output")
    gap = at.unexplained_bytes
    remainder = (
        f"{gap:+,} B are not explained by any allocation in the trace"
        if gap
        else "nothing is missing"
    )
    return (
        f"Check: memory peaked after {time(at.ns)} at {size(at.recorded_bytes)} according to the "
        f"allocators' records: {', '.join(parts)}; {remainder}."
    )


def releases(buffers: Buffers) -> Iterable[str]:
    """Whether buffers were released when the graph implies, and for which this is unknown."""
    freed = [item for item in buffers.buffers if item.until_ns is not None]
    every = plural(len(freed), "release")
    if buffers.held_by_receiver:
        yield (
            f"Of {every}, {len(buffers.held_by_receiver):,} came after the last reader ended, for "
            f"tensors sent to another device: {names(buffers.held_by_receiver)}. The runtime "
            "holds a sent tensor until the thread that received it is done with it."
        )
    if buffers.unexpected:
        yield (
            f"Of {every}, {len(buffers.unexpected):,} did not come while the last reader ran: "
            f"{names(buffers.unexpected)}. The trace does not say what kept them."
        )
    if not buffers.held_by_receiver and not buffers.unexpected:
        yield f"Each of {every} came while the last reader of its buffer ran."
    ordered = sum(item.freed_by == "order" for item in freed)
    if ordered:
        yield (
            f"{plural(ordered, 'buffer')} had the same size and came from the same op as another; "
            f"which release belongs to which is inferred from their last readers."
        )


def names(tensors: Iterable[str]) -> str:
    return numbered.listed(tuple(dict.fromkeys(tensors)), NAMED)  # in a loop one has many buffers
