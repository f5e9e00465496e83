"""Timeline: the owner of each nanosecond of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np

from tflab.records import OpRun, Owner, StepTime

BEFORE = "before the first op (session, feeds)"
BUSY = "at least one op running"
WIRE = "no op running, a tensor on its way between tasks (network)"
GAPS = "no op running between ops (scheduling, waiting)"
# The runtime records the end of neither; reading the trace comes later and is part of no step.
AFTER = "after the last op (fetches and collecting the trace, as one)"

START, DURATION = attrgetter("start_ns"), attrgetter("duration_ns")  # of a run; faster than lambdas

Span = tuple[int, int]  # start and end in nanoseconds; the end is exclusive


def time_ledger(
    runs: Iterable[OpRun], steps: Sequence[StepTime], wires: Sequence[OpRun] = ()
) -> tuple[Owner, ...]:
    """Every nanosecond of the steps' wall time, attributed to exactly one owner.

    `wires` are tensors on their way between the tasks of a cluster; if there are any, the network
    is an owner. The sum is exactly the wall time of the steps. Op runs have wall-clock times; a run
    that exceeds its step, because the clock was set, is cut off at the edge of the step.
    """
    in_step, on_wire = by_step(runs), by_step(wires)
    network = (WIRE,) if wires else ()
    totals = dict.fromkeys((BEFORE, BUSY, *network, GAPS, AFTER), 0)
    for step in steps:
        ops = busy_spans(in_step.get(step.step, ()), step)
        spans = union([*ops, *busy_spans(on_wire.get(step.step, ()), step)])
        if not spans:
            totals[BEFORE] += step.wall_ns
            continue
        first, last = spans[0][0], spans[-1][1]
        busy, moving = covered(ops), covered(spans)
        totals[BEFORE] += first - step.start_ns
        totals[BUSY] += busy
        if wires:
            totals[WIRE] += moving - busy
        totals[GAPS] += last - first - moving
        totals[AFTER] += step.start_ns + step.wall_ns - last
    return tuple(Owner(owner, ns) for owner, ns in totals.items())


def by_step(runs: Iterable[OpRun]) -> dict[int, list[OpRun]]:
    """The runs of each step, in the order in which they are given."""
    in_step: dict[int, list[OpRun]] = {}
    for run in runs:
        in_step.setdefault(run.step, []).append(run)
    return in_step


def times(runs: Sequence[OpRun]) -> tuple[np.ndarray, np.ndarray]:
    """The start and the duration of each run; ns."""
    return column(map(START, runs)), column(map(DURATION, runs))


def column(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, np.int64)


def busy_spans(runs: Iterable[OpRun], step: StepTime) -> list[Span]:
    """The times within a step in which at least one op ran: disjoint and sorted."""
    return union(within(run, step) for run in runs)


def within(run: OpRun, step: StepTime) -> Span:
    """A run's start and end on the wall clock, cut off at the edges of its step; ns."""
    low, high = step.start_ns, step.start_ns + step.wall_ns
    return (
        min(max(run.start_ns, low), high),
        min(max(run.start_ns + run.duration_ns, low), high),
    )


def union(spans: Iterable[Span]) -> list[Span]:
    """The union of spans: disjoint spans that do not touch, sorted."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def covered(spans: Iterable[Span]) -> int:
    """The sum of the lengths of the spans in ns; overlaps count several times."""
    return sum(end - start for start, end in spans)
