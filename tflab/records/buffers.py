"""Buffers: where the tensors of one step lived, and who had the same memory before and after."""

from __future__ import annotations

from dataclasses import dataclass, field

from tflab.records.graph import node_of


@dataclass(frozen=True, slots=True)
class Output:
    """An output of an op run, and the memory that the runtime says it lies in."""

    slot: int
    bytes: int  # of the tensor
    address: int  # where its memory begins; 0 where the runtime does not say, as of what is fed
    allocated_bytes: int  # 0 of memory that no op asked for: of variables and constants
    allocation: int  # which of the allocations of the op that asked for it, from 1
    allocator: str


FORWARD, BACKWARD = "forward", "backward"  # phases


@dataclass(frozen=True)
class Use:
    """A node that gave out the memory of an input as its own output."""

    node: str
    ns: int  # its start, since the step's
    phase: str  # forward or backward: gradients and updates


@dataclass(frozen=True)
class Buffer:
    """Memory that an op asked for to put an output in, until that memory was released."""

    tensor: str  # the output that it was asked for
    op: str  # the type that ran
    phase: str  # forward or backward, of the op
    device: str
    allocator: str
    address: int
    bytes: int
    from_ns: int  # since the step's start, as are all of these times
    until_ns: int | None  # None: not released before the trace ended, as of what is fetched
    # How the end is known: "record" of the allocator; "order" of several records of one op that
    # have the same size, inferred from their last readers; or "kept"
    freed_by: str
    in_place: tuple[Use, ...]  # written over, as far as their types say
    passed_on: tuple[Use, ...]  # unchanged, by their types
    readers: tuple[str, ...]  # nodes, in the order of their starts
    last_reader: str | None  # the one that ended last
    backward_ns: int | None  # from when only the backward pass needed it; None where it did not
    before: tuple[str, ...]  # tensors that had some of its addresses last
    after: tuple[str, ...]  # tensors that got some of its addresses next

    @property
    def node(self) -> str:
        """Who asked for it, and wrote it first."""
        return node_of(self.tensor)


@dataclass(frozen=True)
class Amount:
    count: int
    bytes: int


@dataclass(frozen=True)
class AtPeak:
    """What was alive when most was, by the allocators' records and by the buffers."""

    ns: int  # since the step's start
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

    made - passed_on - in_place = what the tensors of the buffers take; with the allocators'
    rounding that is requested, and requested - reused = distinct.
    """

    step: int
    wall_ns: int
    buffers: tuple[Buffer, ...]  # in the order in which they were asked for
    made: Amount  # tensors that ops produced during the step
    passed_on: Amount  # of them in the memory of an input, unchanged
    in_place: Amount  # of them in the memory of an input, written over
    requested: Amount = field(metadata={"json": "asked_for"})  # buffers
    reused: Amount  # of them with addresses that an earlier buffer of the step had
    distinct: Amount  # buffers at new addresses, and the bytes of all addresses
    working: Amount  # memory that ops asked for and released while they ran: without an address
    other: Amount  # asked for and held longer, and no output's: without an address
    for_backward: Amount  # buffers of forward ops whose last reader is a node of the backward pass
    at_peak: AtPeak
    unexpected: tuple[str, ...]  # buffers that were released before or after their last reader ran
