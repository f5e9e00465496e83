"""Wires: what several tasks of a cluster did in a step, on one time axis.

Each task times its own ops by its own clock. The messages of the steps bound the offsets between
these clocks: a task starts after the step did and ends before it, and a tensor is received after
the op that made it has ended. If all clocks may be correct, no time is shifted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from statistics import mean

from tflab.analysis import op_runs
from tflab.analysis.timeline import busy_ns
from tflab.records.cluster import Message, Offset, Received, TaskTime, WireTensor
from tflab.records.graph import node_of
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun, StepTime
from tflab.units import short_task, task_of

CLIENT = "/job:client/replica:0/task:0"  # this process, whose clock is the reference
OP = "RecvTensor"  # the type of a run that is a tensor on the wire
ON_WIRE = "wire from "  # prefix of the device of such a run
US = 1000  # ns: the runtime times received tensors in microseconds

Edge = tuple[str, str, str]  # its name, the sending device and the receiving one
Ends = Mapping[tuple[int, str], int]  # (step, node) -> its end, by its own clock


@dataclass(frozen=True)
class OneAxis:
    """All runs and tensors, by the clock of this process."""

    runs: list[OpRun]
    wires: list[OpRun]  # tensors on the wire, one for each received tensor
    received: list[Received]
    offsets: tuple[Offset, ...]


def one_axis(
    runs: Sequence[OpRun],
    received: Iterable[Received],
    steps: Iterable[StepTime],
    transfers: Iterable[Transfer],
) -> OneAxis:
    """Return runs that the tasks timed by their own clocks, on one axis."""
    sent = edges(transfers)
    arrived = [with_exact_bytes(one, sent.get(edge_of(one))) for one in received]
    clock_offsets = offsets(messages(runs, arrived, steps, sent), CLIENT)
    ahead = {offset.clock: offset.applied_ns for offset in clock_offsets}
    moved_runs = [shifted(run, ahead.get(task_of(run.device), 0)) for run in runs]
    ended = ends(moved_runs)
    wires = [run_on_wire(one, ahead, sent.get(edge_of(one)), ended) for one in arrived]
    return OneAxis(moved_runs, wires, arrived, clock_offsets)


def edges(transfers: Iterable[Transfer]) -> dict[Edge, Transfer]:
    return {(one.edge, one.from_device, one.to_device): one for one in transfers}


def edge_of(received: Received) -> Edge:
    return received.edge, received.from_device, received.to_device


def ends(runs: Iterable[OpRun]) -> Ends:
    """Return the ends of nodes that ran once in a step; in a loop the sending iteration is
    unknown."""
    runs = list(runs)
    often = Counter((run.step, run.name) for run in runs)
    return {
        (run.step, run.name): run.start_ns + run.duration_ns
        for run in runs
        if often[run.step, run.name] == 1
    }


def with_exact_bytes(received: Received, transfer: Transfer | None) -> Received:
    """Return a received tensor with exact bytes if the shape is known, because the runtime rounds
    them."""
    exact = transfer.bytes if transfer else None
    return received if exact is None else replace(received, bytes=exact)


def messages(
    runs: Sequence[OpRun],
    arrived: Iterable[Received],
    steps: Iterable[StepTime],
    sent: Mapping[Edge, Transfer],
) -> Iterator[Message]:
    """Yield all pairs of events on two clocks whose order is known."""
    in_step = op_runs.of(runs).by_step()
    for step in steps:
        of_task: dict[str, list[OpRun]] = defaultdict(list)
        for run in in_step.get(step.step, ()):
            of_task[task_of(run.device)].append(run)
        for task, task_runs in of_task.items():
            last = max(run.start_ns + run.duration_ns for run in task_runs)
            yield Message(CLIENT, task, step.start_ns, min(run.start_ns for run in task_runs))
            yield Message(task, CLIENT, last, step.start_ns + step.wall_ns)
    ended = ends(runs)
    for received in arrived:
        transfer = sent.get(edge_of(received))
        made_ns = ended.get((received.step, node_of(transfer.tensor))) if transfer else None
        if made_ns is not None:
            tasks = task_of(received.from_device), task_of(received.to_device)
            yield Message(*tasks, made_ns, received.start_ns + received.duration_ns + US)


def shifted(run: OpRun, ahead_ns: int) -> OpRun:
    if not ahead_ns:
        return run
    records = tuple(
        (us - round(ahead_ns / US), size, allocator) for us, size, allocator in run.allocations
    )
    return run._replace(start_ns=run.start_ns - ahead_ns, allocations=records)


def run_on_wire(
    received: Received, ahead: Mapping[str, int], transfer: Transfer | None, ended: Ends
) -> OpRun:
    """Return a received tensor as a run by the clock of this process, named after its `_Recv`.

    The runtime's own start is the later of two times, and one of them is the sender's. If the two
    clocks certainly differ, it is replaced by the end of the op that made the tensor, which is on
    the common axis (like `ended`) and may include waiting.
    """
    sender, receiver = task_of(received.from_device), task_of(received.to_device)
    shift = ahead.get(receiver, 0)
    start = received.start_ns - shift
    end = start + received.duration_ns
    if transfer and shift != ahead.get(sender, 0):
        start = ended.get((received.step, node_of(transfer.tensor)), start)
    start = min(start, end)
    return OpRun(
        step=received.step,
        name=transfer.recv if transfer else received.edge,
        op=OP,
        device=f"{ON_WIRE}{short_task(sender)} to {short_task(receiver)}",
        start_ns=start,
        duration_ns=end - start,
    )


def receiver(wire: OpRun) -> str:
    """Return the receiving task of a run on the wire, as it is displayed."""
    return wire.device.rpartition(" to ")[2]


def order(task: str) -> tuple[bool, int, str]:
    """Sorting key of a task: the client comes first, then task 0, 1, ... 10."""
    return task not in (CLIENT, short_task(CLIENT)), len(task), task


def tensors(
    arrived: Sequence[Received], wires: Sequence[OpRun], sent: Mapping[Edge, Transfer]
) -> tuple[WireTensor, ...]:
    """Return the tensors sent between tasks, over all steps, the slowest first."""
    calls: dict[Edge, list[tuple[Received, OpRun]]] = defaultdict(list)
    for received, wire in zip(arrived, wires, strict=True):
        calls[edge_of(received)].append((received, wire))
    rows = []
    for edge, pairs in calls.items():
        middle = sorted(pairs, key=lambda pair: pair[1].duration_ns)[len(pairs) // 2]
        rows.append(
            WireTensor(
                tensor=sent[edge].tensor if edge in sent else edge[0],
                from_task=short_task(task_of(edge[1])),
                to_task=short_task(task_of(edge[2])),
                calls=len(pairs),
                bytes=round(mean(received.bytes for received, _ in pairs)),
                median_ns=middle[1].duration_ns,
                bits_per_s=middle[0].bits_per_s,
            )
        )
    return tuple(sorted(rows, key=lambda row: (-row.median_ns, row.tensor)))


def task_times(
    runs: Sequence[OpRun],
    wires: Sequence[OpRun],
    arrived: Sequence[Received],
    steps: Sequence[StepTime],
) -> tuple[TaskTime, ...]:
    """Return computation and communication of each task: the wall time of all steps. The client,
    this process, comes first."""
    names = {task_of(run.device) for run in runs}
    names |= {task_of(device) for one in arrived for device in (one.from_device, one.to_device)}
    wall_ns = sum(step.wall_ns for step in steps)
    in_step, moving = op_runs.of(runs).by_step(), op_runs.of(wires).by_step()
    rows = []
    for task in sorted(names, key=order):
        computing = receiving = either = 0
        for step in steps:
            own = [run for run in in_step.get(step.step, ()) if task_of(run.device) == task]
            to = [run for run in moving.get(step.step, ()) if receiver(run) == short_task(task)]
            computing += busy_ns(own, step)
            receiving += busy_ns(to, step)
            either += busy_ns([*own, *to], step)
        rows.append(
            TaskTime(
                task=short_task(task),
                computing_ns=computing,
                waiting_ns=either - computing,
                neither_ns=wall_ns - either,
                overlapped_ns=computing + receiving - either,
                received_bytes=sum(one.bytes for one in arrived if task_of(one.to_device) == task),
                sent_bytes=sum(one.bytes for one in arrived if task_of(one.from_device) == task),
            )
        )
    return tuple(rows)


# Clocks
#
# A message cannot arrive before it was sent. So each message from a to b limits how far b's clock
# can be behind a's, and messages in both directions bound the offset from both sides, as in NTP
# (Mills 1991, "Internet time synchronization"); of many messages the fastest counts. Messages with
# a third task give further bounds: all bounds are difference constraints, and the tightest ones are
# shortest paths (Cormen et al., "Introduction to Algorithms", section 24.4). The middles of the
# tightest bounds satisfy all constraints at once.

Bounds = dict[tuple[str, str], float]  # (a, b) -> how far b's clock can be ahead of a's


def offsets(messages: Iterable[Message], reference: str) -> tuple[Offset, ...]:
    """Return the offset of every other clock in the messages, sorted by name.

    If no message arrives before it was sent, all clocks may be correct, and none is corrected.
    Otherwise all are, because only together do the offsets satisfy every message. If a clock was
    set or drifted during the measurement, no constant offset may satisfy them all: then the middle
    of the contradicting bounds is returned, marked as inconsistent. A clock with messages in one
    direction only has an infinite uncertainty.
    """
    direct = fastest(messages)
    clocks = sorted({clock for pair in direct for clock in pair} | {reference})
    tight = tightest(direct, clocks)
    consistent = all(tight[clock, clock] >= 0 for clock in clocks)
    bounds: Mapping[tuple[str, str], float] = tight if consistent else direct
    measured = (
        offset(clock, bounds.get((reference, clock), inf), bounds.get((clock, reference), inf))
        for clock in clocks
        if clock != reference
    )
    wrong = any(bound < 0 for bound in direct.values())
    return tuple(replace(one, applied_ns=round(one.ahead_ns) if wrong else 0) for one in measured)


def fastest(messages: Iterable[Message]) -> Bounds:
    """Return the bound that the fastest message of each direction sets."""
    bounds: Bounds = {}
    for message in messages:
        pair = message.from_clock, message.to_clock
        if pair[0] != pair[1]:
            took = message.received_ns - message.sent_ns  # includes the offset
            bounds[pair] = min(bounds.get(pair, inf), took)
    return bounds


def tightest(direct: Bounds, clocks: Iterable[str]) -> Bounds:
    """Return all bounds that follow from these: shortest paths between all clocks (Floyd and
    Warshall)."""
    clocks = list(clocks)
    bounds = {(a, b): direct.get((a, b), inf) for a, b in product(clocks, clocks)}
    for clock in clocks:
        bounds[clock, clock] = 0
    for between, a, b in product(clocks, clocks, clocks):
        through = bounds[a, between] + bounds[between, b]
        bounds[a, b] = min(bounds[a, b], through)
    return bounds


def offset(clock: str, most: float, most_behind: float) -> Offset:
    """Return the offset from its two bounds: how far the clock can be ahead, and how far it can be
    behind."""
    if inf in (most, most_behind):
        return Offset(clock, 0, inf)
    width = (most + most_behind) / 2
    return Offset(clock, (most - most_behind) / 2, abs(width), consistent=width >= 0)
