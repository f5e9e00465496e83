"""Records of a step that ran on several tasks: clocks, tensors on the wire, time by task."""

from __future__ import annotations

from dataclasses import dataclass, field

from tflab.records.timed import OpRun


@dataclass(frozen=True, slots=True)
class Received:
    """A tensor that was sent over the wire, as the receiving task recorded it."""

    step: int
    edge: str  # `edge_26_flatten/Reshape`, common to the sending and the receiving node
    from_device: str
    to_device: str
    bytes: int
    bits_per_s: float  # as the runtime recorded it
    start_ns: int  # by the sender's or the receiver's clock, whichever is later
    duration_ns: int  # the end is by the receiver's clock


@dataclass(frozen=True)
class Offset:
    """How far the clock of a task is ahead of the reference; negative if it is behind."""

    clock: str
    ahead_ns: float
    uncertainty_ns: float  # the true offset lies within this on either side
    applied_ns: int = 0  # subtracted from the times of the task
    consistent: bool = True  # False: no constant offset explains all messages


@dataclass(frozen=True)
class WireTensor:
    """A tensor that is sent from one task to another in every step, over all traced steps."""

    tensor: str
    from_task: str
    to_task: str
    calls: int
    bytes: int  # of one call, mean
    median_ns: float
    bits_per_s: float  # of the call of median length, as the runtime recorded it; 0 without bytes


@dataclass(frozen=True)
class TaskTime:
    """A task's part of the wall time of all traced steps; the first three add up to it."""

    task: str
    computing_ns: int  # at least one of its ops running
    waiting_ns: int  # none of its ops running, and a tensor on its way to it
    neither_ns: int
    overlapped_ns: int  # of the computing time: with a tensor on its way to it
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True)
class Network:
    """The additional results of an execution on several tasks."""

    tasks: tuple[TaskTime, ...]
    tensors: tuple[WireTensor, ...]  # the slowest first
    wires: tuple[OpRun, ...] = field(repr=False)  # tensors on the wire, as op runs
    offsets: tuple[Offset, ...]
    unrecorded: int  # receives that the runtime omitted from its traces, which happens
    left_out: tuple[str, ...]  # sentences: what is not available over several tasks
