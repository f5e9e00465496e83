"""Critical path: the chain of dependent ops that takes longest.

The critical path method (Kelley and Walker, "Critical-path planning and scheduling", 1959): a pass
forward finds when each op can end at the earliest, a pass backward when it must end at the latest;
the time between the two is the op's slack. Only dependencies count. The number of processors is
taken to be unlimited and starting an op to be free, so a step takes longer than its longest chain.
No TensorFlow in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from tflab.analysis.timeline import by_step, covered, union
from tflab.records import CriticalPath, Node, OpRun, Transfer, node_of

Parents = Mapping[str, Sequence[str]]  # node -> the nodes that it waits for
Times = Mapping[str, float]  # node -> nanoseconds


def critical_path(
    nodes: Sequence[Node], runs: Iterable[OpRun], transfers: Iterable[Transfer] = ()
) -> CriticalPath:
    """The chain of dependent nodes that takes longest, each node at its median time per step; ns.

    The possible parallelism is the work of all ops over the length of that chain: the largest
    speed-up that any number of processors could bring (work over span, Blumofe and Leiserson
    1999). A node without a measured run (`_Send`, `_Recv`) counts as 0. The runs of a node in a
    loop are added up, as if its iterations came one after another along one chain: there the path,
    and slack are an estimate.
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
    )


def median_per_step(runs: Iterable[OpRun]) -> dict[str, float]:
    """Each node's median time per step in ns; its runs within a step (in a loop) are added up.

    Medians are whole or half nanoseconds, so that sums of them are exact.
    """
    per_step: dict[str, dict[int, int]] = {}
    for run in runs:
        steps = per_step.setdefault(run.name, {})
        steps[run.step] = steps.get(run.step, 0) + run.duration_ns
    return {name: median(steps.values()) for name, steps in per_step.items()}


def dependencies(nodes: Sequence[Node], transfers: Iterable[Transfer]) -> dict[str, list[str]]:
    """The nodes that each node waits for; a `_Recv` waits for the `_Send` of its tensor.

    A `NextIteration` feeds the next iteration of its loop, so within one iteration no node waits
    for it.
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
    """The same nodes in topological order, parents before children, in time linear in the edges.

    A depth-first search with an explicit stack, because a chain may be longer than Python's stack.
    An edge that closes a cycle is left out: TensorFlow makes none but those of `NextIteration`, but
    a graph from a file may have others.
    """
    ordered: dict[str, list[str]] = {}
    for root in parents:
        stack: dict[str, Iterator[str]] = {}  # node -> its parents not yet looked at
        if root not in ordered:
            stack[root] = iter(parents[root])
        while stack:
            name, rest = next(reversed(stack.items()))
            unvisited = (parent for parent in rest if parent not in ordered and parent not in stack)
            parent = next(unvisited, None)
            if parent is not None:
                stack[parent] = iter(parents[parent])
                continue
            stack.popitem()
            ordered[name] = [parent for parent in parents[name] if parent in ordered]
    return ordered


def earliest_ends(parents: Parents, cost: Times) -> dict[str, float]:
    """The pass forward: when each node can end, in ns from the start; in the order of `parents`."""
    ends: dict[str, float] = {}
    for name, before in parents.items():
        ends[name] = cost.get(name, 0) + max(map(ends.__getitem__, before), default=0)
    return ends


def latest_ends(parents: Parents, cost: Times, length: float) -> Iterable[tuple[str, float]]:
    """The pass backward: when each node must have ended so that the step takes `length` ns."""
    ends = dict.fromkeys(parents, length)
    for name in reversed(list(parents)):
        start = ends[name] - cost.get(name, 0)
        for parent in parents[name]:
            ends[parent] = min(ends[parent], start)
    return ends.items()


def longest_chain(parents: Parents, ends: Times) -> tuple[str, ...]:
    """From the first node to the one that ends last; of parents that end together, the first."""
    node: str | None = max(ends, key=ends.__getitem__)
    chain: list[str] = []
    while node is not None:
        chain.append(node)
        node = max(parents[node], key=ends.__getitem__, default=None)
    return tuple(reversed(chain))


def achieved_parallelism(runs: Iterable[OpRun]) -> float:
    """Work of all runs over the time in which at least one was running; 0 without any run.

    This is the mean number of ops at once while any ran, over all steps. Gaps do not count.
    """
    work = busy = 0
    for group in by_step(runs).values():
        spans = [(run.start_ns, run.start_ns + run.duration_ns) for run in group]
        work += covered(spans)
        busy += covered(union(spans))
    return work / busy if busy else 0
