"""Timeline: the owner of each nanosecond of a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tflab.analysis import op_runs
from tflab.records.timed import OpRun, Owner, StepTime

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
