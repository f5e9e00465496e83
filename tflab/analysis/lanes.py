"""Lanes: rows of op runs that do not overlap, and curves of ops at once and of their bytes.

On a CPU the runtime does not say which thread ran an op (every `thread_id` is 0). Only the overlaps
of runs are known; lanes are the rows that a picture of them needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.memory import US
from tflab.analysis.op_runs import OpRuns
from tflab.analysis.timeline import Span
from tflab.records.timed import OpRun, StepTime


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


# Levels: how many ops ran at a time, and how many bytes they held


Level = tuple[np.ndarray, np.ndarray]  # times in ns, and the value from each of them on


def ops_at_once(runs: Sequence[OpRun]) -> Level:
    """Return the number of these runs at each time; a run of 0 ns does not count."""
    table = op_runs.of(runs)
    since = table.start_ns.min() if len(table) else 0
    # Twice the time, and one more for a start: sorting whole numbers is faster than ordering pairs,
    # and a stable sort is the fastest of what is almost in order.
    twice: np.ndarray = 2 * (table.start_ns - since)
    edges = np.sort(np.concatenate([twice + 1, twice + 2 * table.duration_ns]), kind="stable")
    return changes_only((edges >> 1) + since, np.cumsum(2 * (edges & 1) - 1))


def bytes_alive(runs: Iterable[OpRun], steps: Iterable[StepTime]) -> dict[str, Level]:
    """Return the bytes that ops hold, by allocator. Bytes that are still held at the end of a step
    are subtracted there: fetched values are released later, and the trace does not say when."""
    ends = {step.step: step.start_ns + step.wall_ns for step in steps}
    parts_of_allocator: dict[str, list[Level]] = {}  # times and changes
    for step, step_runs in op_runs.of(runs).by_step().items():
        events = step_runs.allocations
        for number in np.unique(events.allocator).tolist():
            own = events.allocator == number
            moments: np.ndarray = US * events.us[own]
            changes = events.bytes[own]
            last = max(ends.get(step, 0), moments.max())
            parts_of_allocator.setdefault(events.allocators[number], []).append(
                (np.append(moments, last), np.append(changes, -changes.sum()))
            )
    return {
        allocator: cumulated(*map(np.concatenate, zip(*parts, strict=True)))
        for allocator, parts in parts_of_allocator.items()
    }


def cumulated(moments: np.ndarray, changes: np.ndarray) -> Level:
    """Return the running sum of the changes, at each time at which it changes."""
    order = np.argsort(moments, kind="stable")
    return changes_only(moments[order], np.cumsum(changes[order]))


def changes_only(moments: np.ndarray, values: np.ndarray) -> Level:
    """Of values in order of time, the last of each time, if it is not the one before it."""
    last: np.ndarray = np.append(moments[1:] != moments[:-1], True)[: len(moments)]
    moments, values = moments[last], values[last]
    differs: np.ndarray = np.append(True, values[1:] != values[:-1])[: len(values)]
    return moments[differs], values[differs]
