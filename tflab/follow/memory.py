"""Memory in a node's history: where its outputs were, and which tensors used that memory before
and after."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tflab.records.buffers import Buffer
from tflab.records.node_history import NodeHistory
from tflab.units import plural, size, time

MOST = 4  # buffers of a node in a loop or with many outputs
MOST_NODES = 12  # that overwrote a buffer

Sentence = tuple[str, tuple[str, ...], str]  # text, tensors or nodes, and text after them


def sentences(history: NodeHistory) -> Iterator[Sentence]:
    for buffer in history.buffers[:MOST]:
        yield from of_buffer(buffer, history.carrier or history.name)
    if len(history.buffers) > MOST:
        yield f"and {plural(len(history.buffers) - MOST, 'buffer')} more", (), ""


def of_buffer(buffer: Buffer, node: str) -> Iterator[Sentence]:
    """The sentences about a buffer that contained an output of the node."""
    place = f"{size(buffer.bytes)} at {buffer.address:#x}"
    if buffer.node == node:
        yield f"its output {buffer.tensor} was in {place}, {lived(buffer)}", (), ""
    elif node in buffer.overwriters:
        yield f"worked in place: its output was in {place}, requested by ", (buffer.tensor,), ""
    else:
        yield f"passed its input on: {place}, requested by ", (buffer.tensor,), ""
    if buffer.before:
        yield "that memory was used before by ", buffer.before, ""
    # other runs in a loop
    others = (name for name in buffer.overwriters if name != node)
    if some := tuple(islice(others, MOST_NODES)):
        more = len(buffer.overwriters) - (node in buffer.overwriters) - len(some)
        yield "worked in place in that memory: ", some, f" and {more:,} more" if more else ""
    if buffer.last_reader:
        kept = buffer.backward_ns is not None
        behind = ": it stayed alive for the backward pass" if kept else ""
        yield "the last reader of that memory was ", (buffer.last_reader,), behind
    if buffer.after:
        yield "then it was reused by ", buffer.after, ""


def lived(buffer: Buffer) -> str:
    """`from 138 us to 2.02 ms of the step`; which of several releases belongs to it may be
    inferred."""
    start = time(buffer.from_ns)
    if buffer.until_ns is None:
        return f"from {start} to the end of the step"
    inferred = " (inferred)" if buffer.freed_by == "order" else ""
    return f"from {start} to {time(buffer.until_ns)}{inferred} of the step"
