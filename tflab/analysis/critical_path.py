"""Paths: which chain of ops held a step up, and what it would gain. No TensorFlow in here.

The critical path method (Kelley and Walker, "Critical-path planning and scheduling", 1959): a pass
forward finds when each op can end at the earliest, a pass backward when it must end at the latest;
what lies between is its slack. All of it asks what the dependencies allow. Processors are taken to
be endless and starting an op to be free, so a step takes longer than its longest chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from statistics import median

from tflab.analysis.timeline import by_step, covered, union
from tflab.records import CriticalPath, Node, OpRun, Transfer, node_of
from tflab.records.timed import Saving

LARGEST = 10  # ops of which it is told what half the time would save

Parents = Mapping[str, Sequence[str]]  # node -> the nodes that it waits for
Times = Mapping[str, float]  # node -> nanoseconds


def critical_path(
    nodes: Sequence[Node], runs: Iterable[OpRun], transfers: Iterable[Transfer] = ()
) -> CriticalPath:
    """The chain of dependent nodes that takes longest, each node at its median time per step; ns.

    The possible parallelism is the work of all ops over the length of that chain: the speed-up
    that endless processors could bring at most (work over span, Blumofe and Leiserson 1999). A
    node without a measured run (`_Send`, `_Recv`) counts as 0. What a node does in a loop is added
    up, as if its iterations came one after another along one chain: there the path, and with it
    slack and savings, are an estimate.
    """
    runs = list(runs)
    cost = median_per_step(runs)
    parents = in_order(dependencies(nodes, transfers))
    if not parents:
        return CriticalPath((), 0, 0)
    ends = earliest_ends(parents, cost)
    length = max(ends.values())
    work = sum(cost.get(name, 0) for name in parents)
    return CriticalPath(
        nodes=longest_chain(parents, ends),
        ns=length,
        parallelism=work / length if length else 0,
        achieved_parallelism=achieved_parallelism(runs),
        slack=tuple((name, end - ends[name]) for name, end in latest_ends(parents, cost, length)),
        savings=savings(parents, cost, length, {run.name: run.op for run in runs}),
    )


def median_per_step(runs: Iterable[OpRun]) -> dict[str, float]:
    """Each node's median over the steps; what a node does in a loop is added up within a step.

    In nanoseconds, whole or halves, so that sums of them are exact.
    """
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


def in_order(parents: Parents) -> dict[str, list[str]]:
    """The same nodes, parents before children, in time linear in the edges.

    A search in depth, with a stack of its own: a chain may be longer than Python's. An edge that
    closes a cycle is left out; TensorFlow makes none but those of `NextIteration`, though the
    graph may be a stranger's.
    """
    ordered: dict[str, list[str]] = {}
    for root in parents:
        stack: dict[str, Iterator[str]] = {}  # node -> its parents not yet looked at
        if root not in ordered:
            stack[root] = iter(parents[root])
        while stack:
            name, rest = next(reversed(stack.items()))
            parent = next((one for one in rest if one not in ordered and one not in stack), None)
            if parent is not None:
                stack[parent] = iter(parents[parent])
                continue
            stack.popitem()
            ordered[name] = [one for one in parents[name] if one in ordered]
    return ordered


def earliest_ends(parents: Parents, cost: Times) -> dict[str, float]:
    """The pass forward: when each node can end, in ns from the start; in the order of `parents`."""
    ends: dict[str, float] = {}
    for name, before in parents.items():
        ends[name] = cost.get(name, 0) + max(map(ends.__getitem__, before), default=0)
    return ends


def latest_ends(parents: Parents, cost: Times, length: float) -> Iterable[tuple[str, float]]:
    """The pass backward: when each node must have ended if the whole is to take `length` ns."""
    ends = dict.fromkeys(parents, length)
    for name in reversed(list(parents)):
        start = ends[name] - cost.get(name, 0)
        for parent in parents[name]:
            ends[parent] = min(ends[parent], start)
    return ends.items()


def longest_chain(parents: Parents, ends: Times) -> tuple[str, ...]:
    """From the node that ends last back to where its waiting began; of equals, the first."""
    step: str | None = max(ends, key=ends.__getitem__)
    chain: list[str] = []
    while step is not None:
        chain.append(step)
        step = max(parents[step], key=ends.__getitem__, default=None)
    return tuple(reversed(chain))


def savings(
    parents: Parents, cost: Times, length: float, types: Mapping[str, str]
) -> tuple[Saving, ...]:
    """How much shorter than `length` the longest chain gets when a large op takes half its time.

    The chain is sought anew for each: where another one takes over, less is saved than half of
    the op's time, and nothing where the op has slack of its own. In ns a step.
    """
    largest = nlargest(LARGEST, (name for name in parents if name in cost), key=cost.__getitem__)
    return tuple(
        Saving(
            name=name,
            op=types[name],
            ns_per_step=length
            - max(earliest_ends(parents, {**cost, name: cost[name] / 2}).values()),
            self_ns=cost[name],
        )
        for name in largest
    )


def achieved_parallelism(runs: Iterable[OpRun]) -> float:
    """Work of all runs over the time in which at least one was running; 0 without any.

    It is the mean number of ops at once while any ran, over all steps. Gaps do not count.
    """
    work = busy = 0
    for group in by_step(runs).values():
        spans = [(run.start_ns, run.start_ns + run.duration_ns) for run in group]
        work += covered(spans)
        busy += covered(union(spans))
    return work / busy if busy else 0
