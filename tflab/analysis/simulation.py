"""Simulation: what a step would take if its graph were another. No TensorFlow in here.

The executor is played through with measured ops and their dependencies, as Daydream does for GPUs
(Zhu, Phanishayee and Pekhimenko, USENIX ATC 2020): an op that is ready waits for one of the threads
that start ops, and those in flight share the processors. How long an op takes by itself is measured
where ops run one by one, each with all the processors. A short one has no use for a second
processor: Eigen gives it to none below about 210,000 cycles of work (`numThreads` in
TensorCostModel.h), some 50 us for two of them.

It is a model: the copy of an op finds its inputs in the cache, and ops in flight disturb one
another in more ways than by sharing. So its error is told beside what it says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from tflab.analysis.critical_path import Parents, median_per_step
from tflab.analysis.timeline import by_step, covered, union
from tflab.records import OpRun

SPREADS_NS = 50_000  # an op of less than that works on one processor
COPY = "\0copy"  # no node has such a name


@dataclass(frozen=True)
class Profile:
    """Ops as they are where none runs beside them."""

    cost: Mapping[str, float]  # node -> ns in a step; nodes that were not seen to run take no time
    runs: Mapping[str, float]  # node -> runs in a step
    gap_ns: float  # between two of them

    @property
    def total_ns(self) -> float:
        """The step, one op after the other."""
        return sum(ns + self.gap_ns * self.runs[name] for name, ns in self.cost.items())

    def scaled(self, factor: float) -> Profile:
        cost = {name: factor * ns for name, ns in self.cost.items()}
        return Profile(cost, self.runs, factor * self.gap_ns)


def profile(runs: Iterable[OpRun]) -> Profile:
    """What steps say in which ops ran one by one: medians over the steps."""
    runs = list(runs)
    steps = by_step(runs)
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.name] = counts.get(run.name, 0) + 1
    return Profile(
        cost=median_per_step(runs),
        runs={name: count / len(steps) for name, count in counts.items()},
        gap_ns=median(map(mean_gap, steps.values())) if steps else 0,
    )


def mean_gap(runs: list[OpRun]) -> float:
    """The time with no op running between the first and the last, for each of them."""
    spans = union((run.start_ns, run.start_ns + run.duration_ns) for run in runs)
    return (spans[-1][1] - spans[0][0] - covered(spans)) / len(runs)


def step_ns(parents: Parents, ops: Profile, processors: int) -> float:
    """From the start of the first op to the end of the last, on so many processors.

    `parents` has what each node waits for, without circles. As many threads as processors start
    ops, in the order in which they became ready.
    """
    waiting = {name: len(before) for name, before in parents.items()}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, before in parents.items():
        for parent in before:
            children[parent].append(name)
    ready = deque(name for name in parents if not waiting[name])
    left: dict[str, float] = {}  # op in flight -> ns that it would still take by itself
    now = 0.0

    def end(name: str) -> None:
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)

    while ready or left:
        while ready and len(left) < processors:
            name = ready.popleft()
            if name in ops.cost:
                left[name] = ops.cost[name] + ops.gap_ns * ops.runs[name]
            else:
                end(name)
        if not left:
            break
        demand = sum(processors if ops.cost[name] >= SPREADS_NS else 1 for name in left)
        speed = min(1.0, processors / demand)
        first = min(left.values())
        now += first / speed
        done = [name for name, rest in left.items() if rest == first]
        left = {name: rest - first for name, rest in left.items() if rest > first}
        for name in done:
            end(name)
    return now


def once_more_ns(
    parents: Parents, ops: Profile, processors: int, names: Iterable[str]
) -> dict[str, float]:
    """Node -> how much longer the step takes if it runs once more before all that wait for it."""
    unchanged_ns = step_ns(parents, ops, processors)
    return {
        name: step_ns(*with_copy(parents, ops, name), processors) - unchanged_ns for name in names
    }


def with_copy(parents: Parents, ops: Profile, name: str) -> tuple[Parents, Profile]:
    """The step in which a node runs once more before all that wait for it."""
    changed = {
        node: [COPY if parent == name else parent for parent in before]
        for node, before in parents.items()
    }
    changed[COPY] = [name]
    more = Profile(
        {**ops.cost, COPY: ops.cost[name]}, {**ops.runs, COPY: ops.runs[name]}, ops.gap_ns
    )
    return changed, more
