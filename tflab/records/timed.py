"""Timed: op runs, steps, and their totals, also of several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

# (time in us, bytes (negative if released), allocator)
Allocation = tuple[int, int, str]


class OpRun(NamedTuple):  # a row of `analysis.op_runs`
    """One execution of one node. Times are on the clock of `time.time_ns()`."""

    step: int
    name: str
    op: str  # the type that ran, which fusion and oneDNN may have changed
    device: str
    start_ns: int
    duration_ns: int
    requested_bytes: int = 0  # all that the op requested from its allocators
    allocations: tuple[Allocation, ...] = ()


@dataclass(frozen=True)
class StepTime:
    """One traced step, as seen from the caller."""

    step: int
    start_ns: int
    wall_ns: int


@dataclass(frozen=True)
class Capture:
    """Traced steps that belong together: of one batch size, or from another program."""

    name: str  # of the profile made from it: `lenet-batch-64`
    steps: tuple[StepTime, ...]
    runs: Sequence[OpRun]


@dataclass(frozen=True)
class Spread:
    """A measured time: median and the 10th to 90th percentile."""

    median: float
    p10: float
    p90: float


@dataclass(frozen=True)
class Owner:
    """A part of the wall time, and the owner that it is attributed to."""

    owner: str
    ns: int


@dataclass(frozen=True)
class CriticalPath:
    # a node in a loop occurs once for each iteration; empty if the check failed
    nodes: tuple[str, ...]
    ns: float
    parallelism: float  # possible parallelism: total work divided by the length of the path
    durations_ns: tuple[int, ...]  # of `nodes`


@dataclass(frozen=True)
class Holder:
    """An op, and the bytes that it allocated and that were alive, whoever used them by then."""

    name: str
    op: str  # the type that ran
    bytes: int
    running: bool  # still running: some of it may be working memory, not an output


@dataclass(frozen=True)
class LiveBytes:
    """One step's memory as a curve."""

    step: int
    points: Sequence[tuple[int, int]]  # (ns since the start of the step, bytes alive from then on)
    peak_bytes: int
    peak_ns: int  # since the start of the step
    holders: tuple[Holder, ...]  # at the peak, the largest first; their bytes add up to it


@dataclass(frozen=True)
class Memory:
    # the most alive at once in any step, of the memory that the step itself requested
    peak_bytes: int
    curve: LiveBytes  # of the first step with this peak


# Tasks of a cluster


@dataclass(frozen=True, slots=True)
class Received:
    """A tensor that was sent over the wire, as the receiving task recorded it."""

    step: int
    edge: str  # `edge_26_flatten/Reshape`, common to the sending and the receiving node
    from_device: str
    to_device: str
    start_ns: int  # by the sender's or the receiver's clock, whichever is later
    duration_ns: int  # the end is by the receiver's clock


@dataclass(frozen=True)
class Offset:
    """How far the clock of a task is ahead of the reference; negative if it is behind."""

    clock: str
    ahead_ns: float
    uncertainty_ns: float  # the true offset lies within this on either side
    applied_ns: int  # subtracted from the times of the task


@dataclass(frozen=True)
class Network:
    """The additional results of an execution on several tasks."""

    wires: tuple[OpRun, ...] = field(repr=False)  # tensors on the wire, as op runs
    offsets: tuple[Offset, ...]
    unrecorded: int  # receives that the runtime omitted from its traces, which happens
    left_out: tuple[str, ...]  # sentences: what is not available over several tasks
