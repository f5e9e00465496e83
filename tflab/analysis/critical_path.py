"""Critical path: the chain of dependent op runs that takes longest.

The critical path method (Kelley and Walker, "Critical-path planning and scheduling", 1959): a
forward pass finds the earliest end of each run, a backward pass the latest; the difference is its
slack. Only dependencies count. The model has unlimited processors and starts ops at no cost, so the
traced step takes longer. An untraced step may be faster: a trace makes its ops longer.

A node in a loop has a run for each iteration, and each run is a link of its own. A trace does not
say which iteration a run belongs to. If two nodes ran equally often, the n-th run of one waits for
the n-th run of the other; otherwise a run waits for the last run that had ended when it began. A
path is returned only if each of its runs began after the previous one had ended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from statistics import median_low

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.op_runs import OpRuns
from tflab.analysis.timeline import merged, total_ns
from tflab.analysis.tracks import ON_GPU, track_kind, work_runs
from tflab.records.graph import Node, node_of, turned_around
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath, OpRun
from tflab.units import short_device

BACK = ("NextIteration", "RefNextIteration")  # leads to the next iteration of a loop
JOINS = ("Merge", "RefMerge", "Exit", "RefExit")  # runs once after one of several inputs
OVERLAP_NS = 1_000  # traces of old versions have whole microseconds
Parents = Mapping[str, Sequence[str]]  # node -> the nodes that it waits for


@dataclass(frozen=True)
class Links:
    """The runs of a step in the order of their starts; ns. `before` are the indices of the runs
    that each one waits for."""

    names: list[str]
    durations: list[int]
    before: list[list[int]]

    def earliest_ends(self) -> list[int]:
        """Return when each run could end at the earliest, since the start of the step."""
        ends: list[int] = []
        for duration, before in zip(self.durations, self.before, strict=True):
            ends.append(max((ends[place] for place in before), default=0) + duration)
        return ends


def critical_path(
    nodes: Sequence[Node], runs: Iterable[OpRun], transfers: Iterable[Transfer] = ()
) -> CriticalPath:
    """Return the chain of dependent op runs that takes longest in a step; with several steps, that
    of the step whose chain has the median length. A node in a loop occurs once for each iteration;
    ns.

    The possible parallelism is the total work divided by the length of the chain: the largest
    speed-up that any number of processors could bring (work over span, Blumofe and Leiserson 1999).
    The slack of a node is the least slack of its runs. Nodes without a run (`_Send`) are passed
    through. Steps in which the runtime recorded fewer receives than in others are ignored, because
    their chains lack the time on the wire. So are steps in which a run began before one that it
    waits for had ended; if these are half of the steps or more, there is no chain.
    """
    work, transfers = work_runs(runs), tuple(transfers)
    parents = waits(nodes, transfers)
    kinds = {node.name: node.op for node in nodes}
    rank = {name: place for place, name in enumerate(in_order(parents))}
    in_step = work.of_kinds(lambda kind: kind[0] in parents).by_step()
    receives = {transfer.recv for transfer in transfers}
    received = {
        step: len(group.of_kinds(lambda kind: kind[0] in receives))
        for step, group in in_step.items()
    }
    most = max(received.values(), default=0)
    lengths: list[tuple[float, int]] = []  # of the chains, with their steps
    count = 0
    for step, group in in_step.items():
        if received[step] < most:
            continue
        count += 1
        links = linked(parents, kinds, rank, group)
        if links:
            lengths.append((max(links.earliest_ends()), step))
    if 2 * len(lengths) <= count:
        return CriticalPath((), 0, 0)
    _, middle = sorted(lengths, key=itemgetter(0))[(len(lengths) - 1) // 2]
    links = linked(parents, kinds, rank, in_step[middle])
    assert links is not None
    return path_of_step(links, achieved_parallelism(work))


def path_of_step(links: Links, achieved_parallelism: float) -> CriticalPath:
    """Return the longest chain, and the slack of each node."""
    ends = links.earliest_ends()
    length = max(ends)
    latest = [length] * len(ends)
    for place in range(len(ends) - 1, -1, -1):
        start = latest[place] - links.durations[place]
        for earlier in links.before[place]:
            latest[earlier] = min(latest[earlier], start)
    longest = [ends.index(length)]
    while links.before[longest[-1]]:
        longest.append(max(links.before[longest[-1]], key=ends.__getitem__))
    longest.reverse()
    slack: dict[str, float] = {}
    for name, end, last in zip(links.names, ends, latest, strict=True):
        slack[name] = min(last - end, slack.get(name, length))
    return CriticalPath(
        nodes=tuple(links.names[place] for place in longest),
        ns=length,
        parallelism=sum(links.durations) / length if length else 0,
        achieved_parallelism=achieved_parallelism,
        slack=tuple(slack.items()),
        durations_ns=tuple(links.durations[place] for place in longest),
    )


def linked(
    parents: Parents, kinds: Mapping[str, str], rank: Mapping[str, int], runs: OpRuns
) -> Links | None:
    """Return the runs of a step, each with those that it waits for; None if one of them began
    before one that it waits for had ended. `rank` orders runs that begin at the same time."""
    # Some kinds have no run here, and no rank
    rank_of = np.array([rank.get(name, 0) for name, *_ in runs.kinds], np.int64)
    order = np.lexsort((rank_of[runs.kind], runs.start_ns))
    kind_of = runs.kind[order].tolist()
    names = [runs.kinds[kind][0] for kind in kind_of]
    starts = runs.start_ns[order].tolist()
    ends = (runs.start_ns + runs.duration_ns)[order].tolist()
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    ends_of = {name: [ends[place] for place in own] for name, own in places.items()}
    devices = {name: runs.kinds[kind_of[own[0]]][2] for name, own in places.items()}
    on_gpu = {name for name, device in devices.items() if track_kind(device) in ON_GPU}
    links = Links(names, runs.duration_ns[order].tolist(), [[] for _ in names])
    for name, own in places.items():
        around = ran_before(name, parents, places, kinds)
        for number, place in enumerate(own):
            until = starts[place] + OVERLAP_NS
            before = links.before[place]
            if number and name in on_gpu:  # the kernels of a node run one after the other
                before.append(own[number - 1])
            for parent, later in around:
                earlier = places[parent]
                # A Switch runs once more than the loop body behind it
                often = (len(own),) if parent in on_gpu else (len(own), len(own) + 1)
                if kinds[name] not in JOINS and not later and len(earlier) in often:
                    wanted = number
                else:
                    wanted = bisect_right(ends_of[parent], until) - 1
                if wanted >= 0:
                    before.append(earlier[wanted])
                elif not later and kinds[name] not in JOINS:
                    return None
            if not all(earlier < place and ends[earlier] <= until for earlier in before):
                return None
    return links


def ran_before(
    name: str, parents: Parents, places: Container[str], kinds: Mapping[str, str]
) -> list[tuple[str, bool]]:
    """Return the nodes that ran and that a node waits for, through nodes that did not run; with
    each, whether the path crosses the end of an iteration."""
    ancestors: dict[tuple[str, bool], None] = {}
    visited: set[str] = set()
    waiting = [(parent, kinds[parent] in BACK) for parent in parents[name]]
    while waiting:
        parent, later = waiting.pop()
        if parent in places:
            ancestors[parent, later] = None
        elif parent not in visited:
            visited.add(parent)
            waiting += [(one, later or kinds[one] in BACK) for one in parents[parent]]
    return list(ancestors)


def waits(nodes: Sequence[Node], transfers: Iterable[Transfer]) -> dict[str, list[str]]:
    """Return the nodes that each node waits for, in the same iteration or the previous one."""
    parents = in_order(dependencies(nodes, transfers))
    ends = {node.name for node in nodes if node.op in BACK}
    for node in nodes:
        parents[node.name] += [one for one in map(node_of, node.inputs) if one in ends]
    return parents


def median_per_step(runs: Iterable[OpRun]) -> dict[str, float]:
    """Return each node's median time per step in ns; its runs within a step (in a loop) are added
    up.

    For an even number of steps it is the lower median, as in the tables of ops: a node has the same
    median everywhere, and sums of medians are exact.
    """
    return {name: median_low(steps.values()) for name, steps in per_step(runs).items()}


def per_step(runs: Iterable[OpRun]) -> dict[str, dict[int, int]]:
    """Return each node's time in each step in ns."""
    spent: dict[str, dict[int, int]] = {}
    for run in runs:
        steps = spent.setdefault(run.name, {})
        steps[run.step] = steps.get(run.step, 0) + run.duration_ns
    return spent


def dependencies(nodes: Sequence[Node], transfers: Iterable[Transfer]) -> dict[str, list[str]]:
    """Return the nodes that each node waits for; a `_Recv` waits for the `_Send` of its tensor.

    A `NextIteration` feeds the next iteration of its loop, so within one iteration no node waits
    for it.
    """
    ops = {node.name: node.op for node in nodes}
    parents = {
        node.name: [
            parent
            for parent in (*map(node_of, node.inputs), *node.control_inputs)
            if ops.get(parent, BACK[0]) not in BACK
        ]
        for node in nodes
    }
    for transfer in transfers:
        if transfer.recv in parents and transfer.send in parents:
            parents[transfer.recv].append(transfer.send)
    return parents


def in_order(parents: Parents) -> dict[str, list[str]]:
    """Return the same nodes in topological order, in time linear in the edges.

    A depth-first search with an explicit stack, because a chain may be longer than Python's stack.
    Edges that close a cycle are omitted: TensorFlow makes only those of `NextIteration`, but a
    graph from a file may have others.
    """
    ordered: dict[str, list[str]] = {}
    for root in parents:
        stack: dict[str, Iterator[str]] = {}  # node -> its remaining parents
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


def achieved_parallelism(runs: Iterable[OpRun]) -> float:
    """Return the total time of all runs divided by the time in which at least one ran; 0 without
    runs.

    This is the mean number of ops that ran at once, gaps excluded, over all steps.
    """
    work = busy = 0
    for group in op_runs.of(runs).by_step().values():
        work += int(group.duration_ns.sum())
        busy += total_ns(*merged(group.start_ns, group.start_ns + group.duration_ns))
    return work / busy if busy else 0


# Flows: which run took data from which run. In a loop a node runs many times; then it is its last
# run that had ended.

INFERRED = "(inferred)"


def producers(
    nodes: Iterable[Node], transfers: Iterable[Transfer], ran: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return, for each node that ran, the nodes that ran and whose data it takes.

    Data that pass through nodes without a run (fused, folded, `_Send` and `_Recv`) come from the
    last nodes before them that ran.
    """
    data = [replace(node, control_inputs=()) for node in nodes]
    sources: dict[str, tuple[str, ...]] = {}
    for name, parents in in_order(dependencies(data, transfers)).items():
        of_parents = ((parent,) if parent in ran else sources[parent] for parent in parents)
        sources[name] = tuple(dict.fromkeys(chain.from_iterable(of_parents)))
    return {name: names for name, names in sources.items() if names and name in ran}


def flows(
    runs: Sequence[OpRun], before: Mapping[str, Sequence[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each arrow, two indices into `runs`: the run that made the data, and the run of
    the same step that took them. `before` names the producers of each node."""
    table = op_runs.of(runs)
    names = [table.kinds[kind][0] for kind in table.kind.tolist()]
    steps, starts = table.step.tolist(), table.start_ns.tolist()
    ended: dict[tuple[int, str], list[tuple[int, int]]] = {}  # ends of runs, with their indices
    ends = (table.start_ns + table.duration_ns).tolist()
    for place, key in enumerate(zip(steps, names, strict=True)):
        ended.setdefault(key, []).append((ends[place], place))
    for own in ended.values():
        own.sort()
    arrows = []
    for place, (step, name, start) in enumerate(zip(steps, names, starts, strict=True)):
        for producer in before.get(name, ()):
            own = ended.get((step, producer), [])
            last = bisect_right(own, (start, len(names))) - 1
            if last >= 0:
                arrows.append((own[last][1], place))
    made, taken = np.array(arrows, np.int64).reshape(-1, 2).T
    return made, taken


def inferred_transfers(
    runs: Iterable[OpRun], nodes: Sequence[Node], transfers: Iterable[Transfer]
) -> Iterator[OpRun]:
    """Yield a run for each `_Recv`, from the end of the producer to the start of the first
    consumer.

    The runtime times neither `_Recv` nor `_Send`. A transfer cannot have taken longer than this
    run, but part of the run may be waiting. If a trace has the `_Recv`, as old ones do, nothing is
    inferred.
    """
    of_node: dict[int, dict[str, list[OpRun]]] = {}  # of each step
    transfers = list(transfers)
    for run in runs if transfers else ():
        of_node.setdefault(run.step, {}).setdefault(run.name, []).append(run)
    consumers = turned_around(dependencies(nodes, ()))
    for transfer in transfers:
        takers = consumers.get(transfer.recv, ())
        for own in of_node.values():
            starts = sorted(run.start_ns for name in takers for run in own.get(name, ()))
            producers = [] if transfer.recv in own else own.get(node_of(transfer.tensor), [])
            for run in sorted(producers, key=end_ns):
                first = bisect_left(starts, end_ns(run))
                if first < len(starts):
                    yield transfer_run(transfer, run, starts[first])


def end_ns(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


def transfer_run(transfer: Transfer, run: OpRun, until_ns: int) -> OpRun:
    direction = f"{short_device(transfer.from_device)} to {short_device(transfer.to_device)}"
    return OpRun(
        step=run.step,
        name=transfer.recv,
        op=f"{transfer.tensor} {INFERRED}",
        device=f"transfers {direction} {INFERRED}",
        start_ns=end_ns(run),
        duration_ns=until_ns - end_ns(run),
        requested_bytes=transfer.bytes or 0,
    )
