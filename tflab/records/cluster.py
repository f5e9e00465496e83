"""What is known of a step that ran on several tasks: clocks, tensors on the wire, time by task."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A process that runs a part of the graph, as the user knows it."""

    name: str  # `task 0`
    address: str  # host:port


@dataclass(frozen=True, slots=True)
class Received:
    """A tensor that came over the wire, as the runtime recorded it at the receiving task."""

    step: int
    edge: str  # `edge_26_flatten/Reshape`, which the sending and the receiving node share
    from_device: str
    to_device: str
    bytes: int
    bits_per_s: float  # the runtime's own figure
    start_ns: int  # of the sender's clock or the receiver's, whichever says more
    duration_ns: int  # it ended by the receiver's clock


@dataclass(frozen=True)
class Message:
    """Something that left one clock and reached another. It was not sent earlier than `sent_ns`
    and had arrived by `received_ns`, each by the clock of its end."""

    from_clock: str
    to_clock: str
    sent_ns: int
    received_ns: int


@dataclass(frozen=True)
class Offset:
    """How far the clock of a task is ahead of the reference; negative where it is behind."""

    clock: str
    ahead_ns: float
    uncertainty_ns: float  # the true offset lies within this on either side
    applied_ns: int = 0  # what was taken away from the times of the task
    consistent: bool = True  # False: no constant offset explains all messages


@dataclass(frozen=True)
class WireTensor:
    """A tensor that crosses from one task to another in every step, over all traced steps."""

    tensor: str
    from_task: str
    to_task: str
    calls: int
    bytes: int  # of one call, mean
    median_ns: float
    bits_per_s: float  # of the call of median length, by the runtime's own record; 0 without bytes


@dataclass(frozen=True)
class TaskTime:
    """A task's part of the wall time of all traced steps; the first three add up to it."""

    task: str
    computing_ns: int  # at least one of its ops running
    waiting_ns: int  # none running, and a tensor on its way to it
    neither_ns: int
    overlapped_ns: int  # of the computing: with a tensor on its way to it
    received_bytes: int
    sent_bytes: int
    alone_ns: int  # of the computing: no op of another task running
    awaited_ns: int  # nothing ran anywhere, nor was on its way, until its next op began


@dataclass(frozen=True)
class Network:
    """What several tasks add to the execution of a graph."""

    split: str  # layers or batch
    tasks: tuple[TaskTime, ...]
    tensors: tuple[WireTensor, ...]  # what takes longest first
    offsets: tuple[Offset, ...]
    unrecorded: int  # receives that the runtime left out of its traces, which happens
    left_out: tuple[str, ...] = ()  # sentences: what cannot be had over several tasks
