"""Wires: what several tasks of a cluster did in a step, on one time axis.

Each task times its own ops by its own clock. The messages of the steps bound the offsets between
these clocks (`clocks`): a task starts after the step did and ends before it, and a tensor is
received after the op that made it has ended. If all clocks may be correct, no time is shifted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from tflab.analysis import clocks, op_runs
from tflab.analysis.timeline import busy_spans, covered, union
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
    """Runs that the tasks timed by their own clocks, on one axis."""
    sent = edges(transfers)
    arrived = with_exact_bytes(received, sent)
    clock_offsets = clocks.offsets(messages(runs, arrived, steps, sent), CLIENT)
    ahead = {offset.clock: offset.applied_ns for offset in clock_offsets}
    moved_runs = aligned(runs, ahead)
    return OneAxis(
        moved_runs, runs_on_wire(arrived, ahead, sent, ends(moved_runs)), arrived, clock_offsets
    )


def edges(transfers: Iterable[Transfer]) -> dict[Edge, Transfer]:
    return {(one.edge, one.from_device, one.to_device): one for one in transfers}


def edge_of(received: Received) -> Edge:
    return received.edge, received.from_device, received.to_device


def ends(runs: Iterable[OpRun]) -> Ends:
    """The ends of nodes that ran once in a step; in a loop the sending iteration is unknown."""
    runs = list(runs)
    often = Counter((run.step, run.name) for run in runs)
    return {
        (run.step, run.name): run.start_ns + run.duration_ns
        for run in runs
        if often[run.step, run.name] == 1
    }


def with_exact_bytes(arrived: Iterable[Received], sent: Mapping[Edge, Transfer]) -> list[Received]:
    """The received tensors, with exact bytes if the shape is known, because the runtime rounds
    them."""
    exact_bytes = {
        edge: transfer.bytes for edge, transfer in sent.items() if transfer.bytes is not None
    }
    return [replace(one, bytes=exact_bytes.get(edge_of(one), one.bytes)) for one in arrived]


def messages(
    runs: Sequence[OpRun],
    arrived: Iterable[Received],
    steps: Iterable[StepTime],
    sent: Mapping[Edge, Transfer],
) -> Iterator[Message]:
    """All pairs of events on two clocks whose order is known."""
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


def aligned(runs: Iterable[OpRun], ahead: Mapping[str, int]) -> list[OpRun]:
    """The runs, by the clock of this process."""
    return [shifted(run, ahead.get(task_of(run.device), 0)) for run in runs]


def shifted(run: OpRun, ahead_ns: int) -> OpRun:
    if not ahead_ns:
        return run
    records = tuple(
        (us - round(ahead_ns / US), size, allocator) for us, size, allocator in run.allocations
    )
    return run._replace(start_ns=run.start_ns - ahead_ns, allocations=records)


def runs_on_wire(
    arrived: Iterable[Received],
    ahead: Mapping[str, int],
    sent: Mapping[Edge, Transfer],
    ended: Ends,
) -> list[OpRun]:
    """A run for each received tensor by the clock of this process, named after its `_Recv`.

    The runtime's own start is the later of two times, and one of them is the sender's. If the two
    clocks certainly differ, it is replaced by the end of the op that made the tensor, which is on
    the common axis (like `ended`) and may include waiting.
    """
    return [
        run_on_wire(received, ahead, sent.get(edge_of(received)), ended) for received in arrived
    ]


def run_on_wire(
    received: Received, ahead: Mapping[str, int], transfer: Transfer | None, ended: Ends
) -> OpRun:
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


def ends_of(wire: OpRun) -> tuple[str, str]:
    """The sending and the receiving task of a run on the wire, as they are displayed."""
    sender, _, receiver = wire.device.removeprefix(ON_WIRE).partition(" to ")
    return sender, receiver


def order(task: str) -> tuple[bool, int, str]:
    """Sorting key of a task: the client comes first, then task 0, 1, ... 10."""
    return task not in (CLIENT, short_task(CLIENT)), len(task), task


def tensors(
    arrived: Sequence[Received], wires: Sequence[OpRun], sent: Mapping[Edge, Transfer]
) -> tuple[WireTensor, ...]:
    """The tensors sent between tasks, over all steps, the slowest first."""
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
    """Computation and communication: the wall time of all steps, for each task; the client, this
    process, comes first."""
    names = {task_of(run.device) for run in runs}
    names |= {task_of(device) for one in arrived for device in (one.from_device, one.to_device)}
    ops, moving = op_runs.of(runs).by_step(), op_runs.of(wires).by_step()
    alone, awaited = waits(runs, wires, steps)
    return tuple(
        task_time(task, ops, moving, arrived, steps, alone[task], awaited[task])
        for task in sorted(names, key=order)
    )


def task_time(
    task: str,
    ops: Mapping[int, Sequence[OpRun]],
    moving: Mapping[int, Sequence[OpRun]],
    arrived: Iterable[Received],
    steps: Iterable[StepTime],
    alone_ns: int,
    awaited_ns: int,
) -> TaskTime:
    computing = waiting = overlapped = wall = 0
    to_it = f" to {short_task(task)}"
    for step in steps:
        busy = busy_spans((r for r in ops.get(step.step, ()) if task_of(r.device) == task), step)
        incoming = (run for run in moving.get(step.step, ()) if run.device.endswith(to_it))
        coming = busy_spans(incoming, step)
        either = covered(union([*busy, *coming]))
        wall += step.wall_ns
        computing += covered(busy)
        waiting += either - covered(busy)
        overlapped += covered(busy) + covered(coming) - either
    arrived = list(arrived)
    return TaskTime(
        task=short_task(task),
        computing_ns=computing,
        waiting_ns=waiting,
        neither_ns=wall - computing - waiting,
        overlapped_ns=overlapped,
        received_bytes=sum(one.bytes for one in arrived if task_of(one.to_device) == task),
        sent_bytes=sum(one.bytes for one in arrived if task_of(one.from_device) == task),
        alone_ns=alone_ns,
        awaited_ns=awaited_ns,
    )


# Waits: which task of a cluster the others waited for
#
# A step is slow where nothing else runs: a task that computes for long computes alone at the end,
# and one that stalls ends a pause in which no op ran anywhere.


WIRE = ""  # in place of a task: a tensor on its way


def waits(
    runs: Iterable[OpRun], wires: Iterable[OpRun], steps: Iterable[StepTime]
) -> tuple[Counter[str], Counter[str]]:
    """For each task the time in which only its ops ran, and the time in which nothing ran until its
    next op began; ns, over all steps."""
    alone: Counter[str] = Counter()
    awaited: Counter[str] = Counter()
    ops, moving = op_runs.of(runs).by_step(), op_runs.of(wires).by_step()
    for step in steps:
        rows: dict[str, list[OpRun]] = defaultdict(list)
        rows[WIRE] += moving.get(step.step, ())
        for run in ops.get(step.step, ()):
            rows[task_of(run.device)].append(run)
        running: set[str] = set()
        last = step.start_ns
        for at, _, task in sorted(busy_changes(rows, step)):
            computing = running - {WIRE}
            if len(computing) == 1:
                alone[next(iter(computing))] += at - last
            elif not running:
                awaited[task] += at - last
            running ^= {task}
            last = at
    del awaited[WIRE]
    return alone, awaited


def busy_changes(rows: dict[str, list[OpRun]], step: StepTime) -> Iterable[tuple[int, bool, str]]:
    """When each task, or the wire, starts and stops being busy."""
    for task, task_runs in rows.items():
        for start, end in busy_spans(task_runs, step):
            yield start, True, task
            yield end, False, task
