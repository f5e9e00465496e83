"""Lanes: rows of op runs that do not overlap.

On a CPU the runtime does not say which thread ran an op (every `thread_id` is 0). Only the overlaps
of runs are known; lanes are the rows that a picture of them needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import OpRuns
from tflab.analysis.timeline import Span
from tflab.records.timed import OpRun


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
