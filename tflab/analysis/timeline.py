"""Timeline: the owner of each nanosecond of a step, lanes of op runs, and the times of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import OpRuns
from tflab.records.timed import OpRun, Owner, Spread, StepTime

BEFORE = "before the first op (session, feeds)"
BUSY = "at least one op running"
WIRE = "no op running, a tensor on its way between tasks (network)"
GAPS = "no op running between ops (scheduling, waiting)"
# The runtime records the end of neither; reading the trace comes later and is part of no step.
AFTER = "after the last op (fetching, and collecting the trace)"

Span = tuple[int, int]  # start and end in nanoseconds; the end is exclusive
Spans = tuple[np.ndarray, np.ndarray]  # the same of many


def time_ledger(
    runs: Iterable[OpRun], steps: Sequence[StepTime], wires: Sequence[OpRun] = ()
) -> tuple[Owner, ...]:
    """Return every nanosecond of the steps' wall time, attributed to exactly one owner.

    `wires` are tensors on their way between the tasks of a cluster; if there are any, the network
    is an owner. The sum is exactly the wall time of the steps. Op runs have wall-clock times; a run
    that exceeds its step, because the clock was set, is cut off at the edge of the step.
    """
    in_step, on_wire = op_runs.of(runs).by_step(), op_runs.of(wires).by_step()
    network = (WIRE,) if wires else ()
    totals = dict.fromkeys((BEFORE, BUSY, *network, GAPS, AFTER), 0)
    for step in steps:
        ops = clipped(in_step.get(step.step, ()), step)
        moving = clipped(on_wire.get(step.step, ()), step)
        starts, ends = merged(*map(np.concatenate, zip(ops, moving, strict=True)))
        if not len(starts):
            totals[BEFORE] += step.wall_ns
            continue
        first, last = int(starts[0]), int(ends[-1])
        busy, any_ns = total_ns(*merged(*ops)), total_ns(starts, ends)
        totals[BEFORE] += first - step.start_ns
        totals[BUSY] += busy
        if wires:
            totals[WIRE] += any_ns - busy
        totals[GAPS] += last - first - any_ns
        totals[AFTER] += step.start_ns + step.wall_ns - last
    return tuple(Owner(owner, ns) for owner, ns in totals.items())


def clipped(runs: Iterable[OpRun], step: StepTime) -> Spans:
    """Return the starts and the ends of runs on the wall clock, cut off at the edges of their
    step."""
    table = op_runs.of(runs)
    low, high = step.start_ns, step.start_ns + step.wall_ns
    ends = table.start_ns + table.duration_ns
    return np.clip(table.start_ns, low, high), np.clip(ends, low, high)


def busy_spans(runs: Iterable[OpRun], step: StepTime) -> list[Span]:
    """Return the times within a step in which at least one op ran: disjoint and sorted."""
    starts, ends = merged(*clipped(runs, step))
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def busy_ns(runs: Iterable[OpRun], step: StepTime) -> int:
    """Return how long at least one op ran in a step."""
    return total_ns(*merged(*clipped(runs, step)))


def merged(starts: np.ndarray, ends: np.ndarray) -> Spans:
    """Return the union of spans: disjoint spans that do not touch, sorted."""
    if not len(starts):
        return starts, ends
    # Spans are apart where as many have ended as have begun before the next one begins, so it does
    # not matter which end belongs to which start.
    starts, ends = np.sort(starts, kind="stable"), np.sort(ends, kind="stable")
    apart = np.flatnonzero(starts[1:] > ends[:-1])
    return starts[np.append(0, apart + 1)], ends[np.append(apart, len(ends) - 1)]


def total_ns(starts: np.ndarray, ends: np.ndarray) -> int:
    """Return the sum of the lengths of spans; overlaps count several times."""
    return int((ends - starts).sum())


# Lanes: rows of op runs that do not overlap. On a CPU the runtime does not say which thread ran an
# op (every `thread_id` is 0); lanes are the rows that a picture of the overlaps needs.


def pack(runs: Iterable[OpRun]) -> tuple[OpRuns, ...]:
    """Return runs in lanes, in the order of their starts. Within a lane no run overlaps another.

    Greedy interval partitioning: in the order of starts, each run goes into the first lane that is
    free. This takes exactly as many lanes as there are runs at once, and no packing takes fewer
    (Kleinberg and Tardos, Algorithm Design, 2006, section 4.1). Ops of a data-flow executor do not
    call one another, so no run lies inside another, which would be read as a call. A run of 0 ns is
    over when another one starts at the same time, so the shortest of equal starts comes first.
    """
    table = op_runs.of(runs)
    ends = table.start_ns + table.duration_ns
    order = np.lexsort((table.duration_ns, table.start_ns))
    spans = zip(table.start_ns[order].tolist(), ends[order].tolist(), strict=True)
    places: dict[int, list[int]] = {}  # of the runs of each lane
    for place, lane in zip(order.tolist(), lanes_of(spans), strict=True):
        places.setdefault(lane, []).append(place)
    return tuple(table.take(np.array(own)) for own in places.values())


def lanes_of(spans: Iterable[Span]) -> Iterator[int]:
    """Yield, for each span in the order of starts, the number of the first lane that is free."""
    busy: list[tuple[int, int]] = []  # (end, lane)
    free: list[int] = []
    count = 0
    for start, end in spans:
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if free:
            lane = heappop(free)
        else:
            lane, count = count, count + 1
        heappush(busy, (end, lane))
        yield lane


# The times of steps


def spread(times: Sequence[int]) -> Spread:
    """Return median, 10th and 90th percentile, with linear interpolation."""
    return Spread(*np.percentile(times, (50, 10, 90)).tolist())


def median_step(steps: Sequence[StepTime]) -> StepTime:
    """Return the step that represents all: the one with the median wall time.

    For an even number of steps it is the lower median. Raises IndexError if there are no steps.
    """
    return sorted(steps, key=lambda step: step.wall_ns)[(len(steps) - 1) // 2]
