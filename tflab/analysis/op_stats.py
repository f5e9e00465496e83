"""Op statistics: the number, sum and quantiles of the runs of each node.

These are exact, from runs that were kept; for long measurements there is the `accumulator`. All
quantiles are nearest-rank: the q-quantile of n runs is the run of rank ceil(q * n), the shortest
that at least a share q of all runs does not exceed (definition 1 of Hyndman and Fan, "Sample
quantiles in statistical packages", 1996). So the p95 of fewer than 20 runs is the longest run.
Deviations are those of the runs themselves (divided by n, not by n - 1), 0 for a single one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, sqrt

import numpy as np

from tflab.analysis.columns import Kind, sums
from tflab.analysis.stored import in_steps
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun

COUNTED = 2**20  # runs whose durations are kept before they are counted


def fold(runs: Iterable[OpRun]) -> tuple[NodeStats, ...]:
    """One NodeStats for each node and type, in the order of the runs.

    A recorded trace may have a node with several types: the op that launched a kernel, and the
    kernel.
    """
    in_step = in_steps(runs)
    first_kinds: dict[tuple[str, str], int] = {}  # name and type -> the first kind that has them
    durations = Durations()
    sums_of: dict[str, np.ndarray] = {}  # by kind
    kinds: Sequence[Kind] = ()
    for step_runs in in_step.values():
        kinds = step_runs.kinds
        for kind in step_runs.kinds_in_order():
            first_kinds.setdefault(kinds[kind][:2], kind)
        if not step_runs:
            continue
        durations.add(step_runs.kind, step_runs.duration_ns)
        since = step_runs.start_ns - step_runs.start_ns.min()
        for name, values in (("start", since), ("requested", step_runs.requested_bytes)):
            added = sums(step_runs.kind, values, len(kinds))
            sums_of[name] = sums_of[name] + added if name in sums_of else added
    groups: dict[tuple[str, str], list[int]] = {named: [] for named in first_kinds}
    for kind, (name, op, _) in enumerate(kinds):
        groups.get((name, op), []).append(kind)
    spread = durations.of_kinds()
    return tuple(
        folded(
            kinds[first_kinds[named]],
            [spread[kind] for kind in own_kinds if kind in spread],
            int(sums_of["start"][own_kinds].sum()),
            int(sums_of["requested"][own_kinds].sum()),
        )
        for named, own_kinds in groups.items()
    )


Counts = tuple[np.ndarray, np.ndarray, np.ndarray]  # kinds, durations, and how many runs had them


class Durations:
    """How many runs of each kind took each time. In a long trace these are far fewer than runs."""

    def __init__(self) -> None:
        self._new: list[tuple[np.ndarray, np.ndarray]] = []  # kinds and durations, not yet counted
        self._waiting = 0  # runs in them
        self._counts: list[Counts] = []  # one, if any were counted

    def add(self, kinds: np.ndarray, durations: np.ndarray) -> None:
        self._new.append((kinds.copy(), durations.copy()))
        self._waiting += len(kinds)
        if self._waiting > max([COUNTED, *(len(counted) for counted, *_ in self._counts)]):
            self._count()

    def _count(self) -> None:
        self._counts.append(counted(*map(np.concatenate, zip(*self._new, strict=True))))
        if len(self._counts) > 1:
            self._counts = [added(self._counts)]
        self._new, self._waiting = [], 0

    def of_kinds(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Of each kind that has runs, the durations in ascending order, and their counts."""
        if self._new:
            self._count()
        if not self._counts:
            return {}
        ((kinds, durations, counts),) = self._counts
        numbers, begin = np.unique(kinds, return_index=True)
        ends = [*begin[1:].tolist(), len(kinds)]
        return {
            number: (durations[start:end], counts[start:end])
            for number, start, end in zip(numbers.tolist(), begin.tolist(), ends, strict=True)
        }


def counted(kinds: np.ndarray, durations: np.ndarray) -> Counts:
    """Each kind and duration once, sorted, and how many runs have them."""
    length = int(durations.max(initial=0)) + 1
    if (int(kinds.max(initial=0)) + 1) * length < 2**63:  # one number for both is sorted faster
        keys, counts = np.unique(kinds * np.int64(length) + durations, return_counts=True)
        return *np.divmod(keys, length), counts
    return added([(kinds, durations, np.ones(len(kinds), np.int64))])


def added(parts: Sequence[Counts]) -> Counts:
    """The counts of all parts, sorted."""
    kinds, durations, counts = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((durations, kinds))
    kinds, durations, counts = kinds[order], durations[order], counts[order]
    other = (np.diff(kinds) != 0) | (np.diff(durations) != 0)
    first: np.ndarray = np.append(0, np.flatnonzero(other) + 1)
    return kinds[first], durations[first], np.add.reduceat(counts, first)


def folded(
    kind: Kind, parts: Sequence[tuple[np.ndarray, np.ndarray]], starts: int, requested: int
) -> NodeStats:
    """The statistics of the runs of one node as one type, from their durations with counts, on one
    device or several, and the sums of other columns."""
    durations, counts = map(np.concatenate, zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.argsort(durations, kind="stable")
        durations, counts = durations[order], counts[order]
    until = np.cumsum(counts)
    calls, total = int(until[-1]), int(durations @ counts)
    squares = float((durations - total / calls) ** 2 @ counts)
    return NodeStats(
        name=kind[0],
        op=kind[1],
        device=kind[2],
        calls=calls,
        total_ns=total,
        mean_ns=total / calls,
        median_ns=int(durations[until.searchsorted(rank(0.5, calls))]),
        p95_ns=int(durations[until.searchsorted(rank(0.95, calls))]),
        start_ns=starts / calls,
        requested_bytes=round(requested / calls),
        std_ns=sqrt(squares / calls),
    )


def rank(q: float, runs: int) -> int:
    """The rank of the q-quantile, from 1, among this many runs sorted by duration."""
    # Exact decimal fractions: in floats, 0.1 * 30 is a little more than 3.
    return ceil(Fraction(str(q)) * runs)
