"""Lanes: how many ops ran at once, and which device stood idle. No TensorFlow in here.

On a CPU the runtime does not tell which thread ran an op (every `thread_id` is 0). What is known is
which runs overlap, and lanes are the rows that a picture of them needs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from tflab.analysis.timeline import Span, busy_spans, by_step, covered, times, within
from tflab.records import OpRun, StepTime
from tflab.records.timed import Occupancy, StepShape


def shaped(runs: Iterable[OpRun], steps: Iterable[StepTime]) -> tuple[StepTime, ...]:
    """The steps, each with its shape. A device that worked in any step stands in all of them."""
    in_step = by_step(runs)
    devices = sorted({run.device for group in in_step.values() for run in group})
    return tuple(
        replace(step, shape=shape(in_step.get(step.step, ()), step, devices)) for step in steps
    )


def shape(runs: Sequence[OpRun], step: StepTime, devices: Iterable[str]) -> StepShape:
    """How many of a step's runs there were at once, and how long each device had one.

    The mean is over the wall time of the step: the work of all runs over it. A device is busy
    during the union of its runs, so what overlaps counts once; what reaches out of the step is
    cut off at its edge, as in the time ledger.
    """
    work = covered(within(run, step) for run in runs)
    of_device: dict[str, list[OpRun]] = {device: [] for device in devices}
    for run in runs:
        of_device.setdefault(run.device, []).append(run)
    busy = {name: covered(busy_spans(own, step)) for name, own in of_device.items()}
    return StepShape(
        most_at_once=len(pack(runs, nest=False)),
        mean_at_once=work / step.wall_ns if step.wall_ns else 0,
        lanes=len(pack(runs)),
        devices=tuple(
            Occupancy(name, ns, (step.wall_ns - ns) / step.wall_ns if step.wall_ns else 0)
            for name, ns in busy.items()
        ),
    )


def pack(runs: Iterable[OpRun], nest: bool = True) -> tuple[tuple[OpRun, ...], ...]:
    """Runs in lanes, in order of their start. Within a lane none partly overlaps another.

    Greedy interval partitioning: by start, each run goes into a lane where it fits, and a new
    one is opened only where none is left. Without nesting that takes exactly as many lanes as
    there are runs at once, which no packing can undercut (Kleinberg and Tardos, Algorithm Design,
    2006, section 4.1). A run may `nest` within one that ends no earlier; of several, the one that
    ends first takes it. Then there are never more lanes than runs at once and often fewer, but
    not always the fewest: finding those is the colouring of circle graphs, which is NP-hard
    (Garey, Johnson, Miller and Papadimitriou 1980).

    Ops of a dataflow executor do not call one another: a nested run was another thread's. Where
    nesting reads as calling (self times), ask for `nest=False`. A run of no duration is over when
    the next one starts.
    """
    runs = list(runs)
    starts, lasted = times(runs)
    order = np.lexsort((-lasted, starts))
    spans = zip(*(each[order].tolist() for each in (starts, starts + lasted)), strict=True)
    lanes: list[list[OpRun]] = []
    for place, lane in zip(order.tolist(), nested(spans) if nest else apart(spans), strict=True):
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(runs[place])
    return tuple(map(tuple, lanes))


def apart(spans: Iterable[Span]) -> Iterator[int]:
    """A lane for each span, in which nothing else runs then. They come in order of their start."""
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


def nested(spans: Iterable[Span]) -> Iterator[int]:
    """A lane for each span, where it may lie within another one that ends no earlier."""
    ends: list[list[int]] = []  # for each lane: when its running spans end, the outermost first
    inner: list[tuple[int, int]] = []  # (end of a lane's innermost running span, lane), sorted
    free: list[int] = []  # lanes in which nothing runs
    for start, end in spans:
        while inner and inner[0][0] <= start:
            lane = inner.pop(0)[1]
            ends[lane].pop()
            if ends[lane]:
                insort(inner, (ends[lane][-1], lane))
            else:
                heappush(free, lane)
        around = bisect_left(inner, (end, 0))
        if around < len(inner):
            lane = inner.pop(around)[1]
        elif free:
            lane = heappop(free)
        else:
            lane = len(ends)
            ends.append([])
        ends[lane].append(end)
        insort(inner, (end, lane))
        yield lane
