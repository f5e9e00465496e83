"""Buffers: where the tensors of one step were in memory, and which tensors used that memory
before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from tflab.records.graph import node_of


@dataclass(frozen=True, slots=True)
class Output:
    """An output of an op run, and the memory in which the runtime says it is."""

    slot: int
    bytes: int  # of the tensor
    address: int  # start of its memory; 0 if the runtime does not say, as for feeds
    allocated_bytes: int  # 0 for memory that no op requested: of variables and constants
    allocation: int  # index, from 1, among the allocations of the op that requested it
    allocator: str


FORWARD, BACKWARD = "forward", "backward"  # phases


@dataclass(frozen=True)
class Use:
    """A node that returned the memory of an input as its own output."""

    node: str
    ns: int  # its start, since the start of the step
    phase: str  # forward, or backward (gradients and updates)


@dataclass(frozen=True)
class Buffer:
    """Memory that an op requested for an output, until that memory was released."""

    tensor: str  # the output that it was requested for
    op: str  # the type that ran
    phase: str  # phase of the op: forward or backward
    device: str
    allocator: str
    address: int
    bytes: int
    from_ns: int  # since the start of the step, like all of these times
    until_ns: int | None  # None: not released before the trace ended, as for fetches
    # How the end is known: "record" of the allocator; "order" of several records of one op with
    # equal sizes, inferred from their last readers; or "kept"
    freed_by: str
    in_place: tuple[Use, ...]  # overwrote it, by their types
    passed_on: tuple[Use, ...]  # passed it on unchanged, by their types
    readers: tuple[str, ...]  # nodes, in the order of their starts
    last_reader: str | None  # the reader that ended last
    backward_ns: int | None  # when only the backward pass began to need it; None if it never did
    before: tuple[str, ...]  # tensors that last had some of its addresses
    after: tuple[str, ...]  # tensors that next got some of its addresses

    @property
    def node(self) -> str:
        """The node that requested it and wrote it first."""
        return node_of(self.tensor)

    @cached_property
    def overwriters(self) -> dict[str, None]:
        """The nodes that overwrote it, each once, in the order of their first runs."""
        return dict.fromkeys(use.node for use in self.in_place)


@dataclass(frozen=True)
class Amount:
    count: int
    bytes: int


@dataclass(frozen=True)
class AtPeak:
    """What was alive at the peak, by the allocators' records and by the buffers."""

    ns: int  # since the start of the step
    recorded_bytes: int  # by the allocators' records alone, as in `memory`
    buffer_bytes: int
    working_bytes: int
    other_bytes: int

    @property
    def unexplained_bytes(self) -> int:
        return self.recorded_bytes - self.buffer_bytes - self.working_bytes - self.other_bytes


@dataclass(frozen=True)
class Buffers:
    """The memory of one step by address: all buffers, and what sharing them saved.

    made - passed_on - in_place = the bytes of the tensors in the buffers; with the allocators'
    rounding that is `requested`, and requested - reused = distinct.
    """

    step: int
    wall_ns: int
    buffers: tuple[Buffer, ...]  # in the order in which they were requested
    made: Amount  # tensors that ops produced during the step
    passed_on: Amount  # of these, in the memory of an input, unchanged
    in_place: Amount  # of these, in the memory of an input, overwritten
    requested: Amount = field(metadata={"json": "asked_for"})  # buffers
    reused: Amount  # of these, at addresses of an earlier buffer of the step
    distinct: Amount  # buffers at new addresses, and the bytes of all addresses
    working: Amount  # memory that ops requested and released while they ran, without an address
    other: Amount  # memory that was held longer but contains no output, without an address
    for_backward: Amount  # buffers of forward ops whose last reader is a node of the backward pass
    at_peak: AtPeak
    # Tensors sent to another device, released after their last reader: the receiver held them
    held_by_receiver: tuple[str, ...]
    unexpected: tuple[str, ...]  # other buffers that were not released while their last reader ran
