"""Schedule: who owned the time of a step, and which chain of ops held it up. No TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from statistics import median

from tflab.records import CriticalPath, Node, OpRun, Owner, StepTime, Transfer, node_of

BEFORE = "before the first op (session, feeds)"
BUSY = "at least one op running"
GAPS = "no op running between ops (scheduling, waiting)"
AFTER = "after the last op (fetches, collecting the trace)"


def time_ledger(runs: Iterable[OpRun], steps: Sequence[StepTime]) -> tuple[Owner, ...]:
    """Every nanosecond of the steps' wall time, given to exactly one owner.

    The sum is the steps' wall time, exactly. Op runs carry wall-clock times; what reaches out of
    its step (a clock that was set while it ran) is cut off at the step's edge.
    """
    by_step: dict[int, list[OpRun]] = {}
    for run in runs:
        by_step.setdefault(run.step, []).append(run)
    totals = dict.fromkeys((BEFORE, BUSY, GAPS, AFTER), 0)
    for step in steps:
        spans = busy_spans(by_step.get(step.step, ()), step)
        if not spans:
            totals[BEFORE] += step.wall_ns
            continue
        first, last = spans[0][0], spans[-1][1]
        busy = sum(end - start for start, end in spans)
        totals[BEFORE] += first - step.start_ns
        totals[BUSY] += busy
        totals[GAPS] += last - first - busy
        totals[AFTER] += step.start_ns + step.wall_ns - last
    return tuple(Owner(owner, ns) for owner, ns in totals.items())


def busy_spans(runs: Iterable[OpRun], step: StepTime) -> list[tuple[int, int]]:
    """The union of the op runs' times within a step: disjoint, in order of time."""
    low, high = step.start_ns, step.start_ns + step.wall_ns
    spans: list[tuple[int, int]] = []
    for run in sorted(runs, key=lambda run: run.start_ns):
        start = min(max(run.start_ns, low), high)
        end = min(max(run.start_ns + run.duration_ns, low), high)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans


def critical_path(
    nodes: Sequence[Node], runs: Iterable[OpRun], transfers: Iterable[Transfer] = ()
) -> CriticalPath:
    """The chain of dependent nodes that takes longest, each node at its median time per step.

    Parallelism is the work of all ops over the length of that chain: the speed-up that endless
    processors could bring at most (work over span, Blumofe and Leiserson 1999). A node without a
    measured run (`_Send`, `_Recv`) counts as 0.
    """
    cost = median_per_step(runs)
    parents = dependencies(nodes, transfers)
    finish: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for name in TopologicalSorter(parents).static_order():
        last = max(parents[name], key=finish.__getitem__, default=None)
        finish[name] = cost.get(name, 0) + (finish[last] if last is not None else 0)
        before[name] = last
    if not finish:
        return CriticalPath((), 0, 0)
    step: str | None = max(finish, key=finish.__getitem__)
    path: list[str] = []
    while step is not None:
        path.append(step)
        step = before[step]
    length = finish[path[0]]
    work = sum(cost.get(node, 0) for node in finish)
    return CriticalPath(tuple(reversed(path)), length, work / length if length else 0)


def median_per_step(runs: Iterable[OpRun]) -> dict[str, float]:
    """Each node's median over the steps; what a node does in a loop is added up within a step."""
    per_step: dict[str, dict[int, int]] = {}
    for run in runs:
        steps = per_step.setdefault(run.name, {})
        steps[run.step] = steps.get(run.step, 0) + run.duration_ns
    return {name: median(steps.values()) for name, steps in per_step.items()}


def dependencies(nodes: Sequence[Node], transfers: Iterable[Transfer]) -> dict[str, list[str]]:
    """The nodes that each node waits for; a `_Recv` waits for the `_Send` of its tensor.

    A `NextIteration` feeds the next round of its loop, so within one round nobody waits for it.
    """
    ops = {node.name: node.op for node in nodes}
    parents = {
        node.name: [
            parent
            for parent in (*map(node_of, node.inputs), *node.control_inputs)
            if ops.get(parent, "NextIteration") not in ("NextIteration", "RefNextIteration")
        ]
        for node in nodes
    }
    for transfer in transfers:
        if transfer.recv in parents and transfer.send in parents:
            parents[transfer.recv].append(transfer.send)
    return parents
