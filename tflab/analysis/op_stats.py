"""Op statistics: the number, sum, extremes and quantiles of the runs of each node.

These are exact, from runs that were kept; for long measurements there is the `accumulator`. All
quantiles are nearest-rank: the q-quantile of n runs is the run of rank ceil(q * n), the shortest
that at least a share q of all runs does not exceed (definition 1 of Hyndman and Fan, "Sample
quantiles in statistical packages", 1996). So the p95 of fewer than 20 runs is the longest run.
Deviations are those of the runs themselves (divided by n, not by n - 1), 0 for a single one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from tflab.analysis.columns import Kind, OpRuns, columns, sums
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun


def fold(runs: Iterable[OpRun]) -> tuple[NodeStats, ...]:
    """One NodeStats for each node and type, in the order of the runs.

    A recorded trace may have a node with several types: the op that launched a kernel, and the
    kernel.
    """
    runs = columns(runs)
    first_kinds: dict[tuple[str, str], int] = {}  # name and type -> the first kind that has them
    group_of_kind: np.ndarray = np.zeros(len(runs.kinds), np.int64)
    for kind in runs.kinds_in_order():
        first_kinds.setdefault(runs.kinds[kind][:2], kind)
    numbers = {named: number for number, named in enumerate(first_kinds)}
    for kind, (name, op, _) in enumerate(runs.kinds):
        group_of_kind[kind] = numbers.get((name, op), 0)
    groups = group_of_kind[runs.kind]
    count = len(first_kinds)
    calls = np.bincount(groups, minlength=count)
    since = runs.start_ns - step_starts(runs)
    totals, starts, requested = (
        sums(groups, values, count) for values in (runs.duration_ns, since, runs.requested_bytes)
    )
    apart = runs.duration_ns - (totals / np.maximum(calls, 1))[groups]
    squares = np.bincount(groups, apart**2, count)
    durations = runs.duration_ns[np.lexsort((runs.duration_ns, groups))]
    ends = np.cumsum(calls)
    return tuple(
        folded(
            runs.kinds[kind],
            durations[ends[number] - calls[number] : ends[number]],
            int(totals[number]),
            int(starts[number]),
            int(requested[number]),
            float(squares[number]),
        )
        for number, kind in enumerate(first_kinds.values())
    )


def step_starts(runs: OpRuns) -> np.ndarray:
    """For each run, the start of the first run of its step; ns."""
    _, steps = np.unique(runs.step, return_inverse=True)
    first = np.full(steps.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, steps, runs.start_ns)
    return first[steps]


def folded(
    kind: Kind, durations: np.ndarray, total: int, starts: int, requested: int, squares: float
) -> NodeStats:
    """The statistics of the runs of one node as one type, from their sorted durations, the sums of
    other columns, and the squares of the durations around their mean."""
    calls = len(durations)
    return NodeStats(
        name=kind[0],
        op=kind[1],
        device=kind[2],
        calls=calls,
        total_ns=total,
        min_ns=int(durations[0]),
        max_ns=int(durations[-1]),
        mean_ns=total / calls,
        median_ns=int(durations[rank(0.5, calls) - 1]),
        p95_ns=int(durations[rank(0.95, calls) - 1]),
        start_ns=starts / calls,
        requested_bytes=round(requested / calls),
        std_ns=sqrt(squares / calls),
    )


def rank(q: float, runs: int) -> int:
    """The rank of the q-quantile, from 1, among so many runs sorted by duration."""
    # Exact decimal fractions: in floats, 0.1 * 30 is a little more than 3.
    return ceil(Fraction(str(q)) * runs)
