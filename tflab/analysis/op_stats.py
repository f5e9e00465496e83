"""Op statistics: the number, sum, extremes and quantiles of the runs of each node.

These are exact, from runs that were kept; for long measurements there is the `accumulator`. All
quantiles are nearest-rank: the q-quantile of n runs is the run of rank ceil(q * n), the shortest
that at least a share q of all runs does not exceed (definition 1 of Hyndman and Fan, "Sample
quantiles in statistical packages", 1996). So the p95 of fewer than 20 runs is the longest run.
Deviations are those of the runs themselves (divided by n, not by n - 1), 0 for a single one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, sqrt

from tflab.records import NodeStats, OpRun


def fold(runs: Iterable[OpRun]) -> tuple[NodeStats, ...]:
    """One NodeStats for each node and type, in the order of the runs.

    A recorded trace may have a node with several types: the op that launched a kernel, and the
    kernel.
    """
    step_starts: dict[int, int] = {}
    groups: dict[tuple[str, str], list[OpRun]] = {}
    for run in runs:
        first = step_starts.get(run.step, run.start_ns)
        step_starts[run.step] = min(first, run.start_ns)
        groups.setdefault((run.name, run.op), []).append(run)
    return tuple(folded(group, step_starts) for group in groups.values())


def folded(runs: Sequence[OpRun], step_starts: Mapping[int, int]) -> NodeStats:
    """The statistics of the runs of one node as one type."""
    calls, first = len(runs), runs[0]
    durations = sorted(run.duration_ns for run in runs)
    total = sum(durations)
    squares = sum(duration**2 for duration in durations)
    return NodeStats(
        name=first.name,
        op=first.op,
        device=first.device,
        calls=calls,
        total_ns=total,
        min_ns=durations[0],
        max_ns=durations[-1],
        mean_ns=total / calls,
        median_ns=durations[rank(0.5, calls) - 1],
        p95_ns=durations[rank(0.95, calls) - 1],
        start_ns=sum(run.start_ns - step_starts[run.step] for run in runs) / calls,
        requested_bytes=round(sum(run.requested_bytes for run in runs) / calls),
        std_ns=sqrt(calls * squares - total**2) / calls,  # integers until the root
    )


def rank(q: float, runs: int) -> int:
    """The rank of the q-quantile, from 1, among so many runs sorted by duration."""
    # Exact decimal fractions: in floats, 0.1 * 30 is a little more than 3.
    return ceil(Fraction(str(q)) * runs)
