"""Wires: what several tasks of a cluster did in a step, on one time axis.

Each task times its own ops by its own clock. The messages of the steps bound the offsets between
these clocks: a task starts after the step did and ends before it, and a tensor is received after
the op that made it has ended. If all clocks may be correct, no time is shifted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from tflab.analysis import op_runs
from tflab.records.graph import grouped, node_of
from tflab.records.placed import Transfer
from tflab.records.timed import Offset, OpRun, Received, StepTime
from tflab.units import short_task, task_of

CLIENT = "/job:client/replica:0/task:0"  # this process, whose clock is the reference
OP = "RecvTensor"  # the type of a run that is a tensor on the wire
ON_WIRE = "wire from "  # prefix of the device of such a run
US = 1000  # ns: the runtime times received tensors in microseconds

Ends = Mapping[tuple[int, str], int]  # (step, node) -> its end, by its own clock
# From one clock to another: the time of arrival less that of sending, each by the clock of its end
Message = tuple[str, str, int]


Arrival = tuple[Received, Transfer | None]  # a tensor, and its transfer if that is known


@dataclass(frozen=True)
class OneAxis:
    """All runs and tensors, by the clock of this process."""

    runs: list[OpRun]
    wires: list[OpRun]  # the tensors that were received, as runs
    offsets: tuple[Offset, ...]


def one_axis(
    runs: Sequence[OpRun],
    received: Iterable[Received],
    steps: Iterable[StepTime],
    transfers: Iterable[Transfer],
) -> OneAxis:
    """Return runs that the tasks timed by their own clocks, on one axis."""
    sent = {(one.edge, one.from_device, one.to_device): one for one in transfers}
    arrivals = [(one, sent.get((one.edge, one.from_device, one.to_device))) for one in received]
    clock_offsets = offsets(messages(runs, arrivals, steps), CLIENT)
    ahead = {offset.clock: offset.applied_ns for offset in clock_offsets}
    moved = [shifted(run, ahead.get(task_of(run.device), 0)) for run in runs]
    ended = ends(moved)
    wires = [run_on_wire(one, ahead, ended) for one in arrivals]
    return OneAxis(moved, wires, clock_offsets)


def ends(runs: Sequence[OpRun]) -> Ends:
    """Return the ends of nodes that ran once in a step, by (step, node): not those in loops."""
    often = Counter((run.step, run.name) for run in runs)
    return {
        (run.step, run.name): run.start_ns + run.duration_ns
        for run in runs
        if often[run.step, run.name] == 1
    }


def messages(
    runs: Sequence[OpRun], arrivals: Iterable[Arrival], steps: Iterable[StepTime]
) -> Iterator[Message]:
    """Yield all pairs of events on two clocks whose order is known."""
    in_step = op_runs.of(runs).by_step()
    for step in steps:
        of_task = grouped((task_of(run.device), run) for run in in_step.get(step.step, ()))
        for task, task_runs in of_task.items():
            last = max(run.start_ns + run.duration_ns for run in task_runs)
            yield CLIENT, task, min(run.start_ns for run in task_runs) - step.start_ns
            yield task, CLIENT, step.start_ns + step.wall_ns - last
    ended = ends(runs)
    for one in arrivals:
        made_ns, end = made_at(one, ended), one[0].start_ns + one[0].duration_ns
        if made_ns is not None:
            yield task_of(one[0].from_device), task_of(one[0].to_device), end + US - made_ns


def made_at(arrival: Arrival, ended: Ends) -> int | None:
    """Return when the op that made a tensor ended; ns. None if that is unknown."""
    received, transfer = arrival
    return ended.get((received.step, node_of(transfer.tensor))) if transfer else None


def shifted(run: OpRun, ahead_ns: int) -> OpRun:
    ahead_us = round(ahead_ns / US)
    records = tuple((us - ahead_us, size, allocator) for us, size, allocator in run.allocations)
    return run._replace(start_ns=run.start_ns - ahead_ns, allocations=records)


def run_on_wire(arrival: Arrival, ahead: Mapping[str, int], ended: Ends) -> OpRun:
    """Return a received tensor as a run by the clock of this process, named after its `_Recv`. Its
    recorded start may be by the sender's clock. If the two clocks certainly differ, the end of the
    op that made the tensor is taken instead; the run may then include waiting."""
    received, transfer = arrival
    sender, receiver = task_of(received.from_device), task_of(received.to_device)
    shift = ahead.get(receiver, 0)
    start = received.start_ns - shift
    end = start + received.duration_ns
    made_ns = made_at(arrival, ended)
    if made_ns is not None and shift != ahead.get(sender, 0):
        start = made_ns
    start = min(start, end)
    return OpRun(
        step=received.step,
        name=transfer.recv if transfer else received.edge,
        op=OP,
        device=f"{ON_WIRE}{short_task(sender)} to {short_task(receiver)}",
        start_ns=start,
        duration_ns=end - start,
    )


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
    """Return the offset of every other clock in the messages, sorted by name. If no message arrives
    before it was sent, all clocks may be correct, and none is corrected. Otherwise all are, because
    only together do the offsets satisfy every message. The uncertainty is infinite for a clock with
    messages in one direction only, and for all if no offsets satisfy all messages."""
    direct: Bounds = {}
    for start, end, took in messages:
        if start != end:
            direct[start, end] = min(direct.get((start, end), inf), took)
    clocks = sorted({clock for pair in direct for clock in pair} | {reference})
    # Shortest paths between all clocks (Floyd and Warshall)
    tight = {(a, b): direct.get((a, b), inf) for a, b in product(clocks, clocks)}
    tight |= {(clock, clock): 0 for clock in clocks}
    for between, a, b in product(clocks, clocks, clocks):
        tight[a, b] = min(tight[a, b], tight[a, between] + tight[between, b])
    consistent = all(tight[clock, clock] >= 0 for clock in clocks)
    wrong = any(bound < 0 for bound in direct.values())
    made = []
    for clock in clocks:
        ahead, behind = tight[reference, clock], tight[clock, reference]
        if clock != reference and (inf in (ahead, behind) or not consistent):
            made.append(Offset(clock, 0, inf, 0))
        elif clock != reference:
            middle = (ahead - behind) / 2
            made.append(Offset(clock, middle, (ahead + behind) / 2, round(middle) if wrong else 0))
    return tuple(made)
