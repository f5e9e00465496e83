"""Critical path: the chain of dependent op runs that takes longest.

The critical path method (Kelley and Walker, "Critical-path planning and scheduling", 1959): a
forward pass finds the earliest end of each run, a backward pass the latest; the difference is its
slack. Only dependencies count. The model has unlimited processors and starts ops at no cost, so a
real step takes longer.

A node in a loop has a run for each iteration, and each run is a link of its own. A trace does not
say which iteration a run belongs to. If two nodes ran equally often, the n-th run of one waits for
the n-th run of the other; otherwise a run waits for the last run that had ended when it began. A
path is returned only if each of its runs began after the previous one had ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from statistics import median_low

from tflab.analysis.timeline import by_step, merged, times, total_ns
from tflab.analysis.tracks import ON_GPU, track_kind, work_runs
from tflab.records.graph import Node, node_of
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath, OpRun

BACK = ("NextIteration", "RefNextIteration")  # leads to the next iteration of a loop
JOINS = ("Merge", "RefMerge", "Exit", "RefExit")  # runs once after one of several inputs
OVERLAP_NS = 1_000  # traces of old versions have whole microseconds
Parents = Mapping[str, Sequence[str]]  # node -> the nodes that it waits for


@dataclass
class ChainNode:
    """A run of a node, and the runs that it waits for, as indices in the order of starts."""

    run: OpRun
    before: list[int] = field(default_factory=list)
    whole: bool = True  # whether all of them had ended when it began


def critical_path(
    nodes: Sequence[Node], runs: Iterable[OpRun], transfers: Iterable[Transfer] = ()
) -> CriticalPath:
    """The chain of dependent op runs that takes longest in a step; with several steps, that of the
    step whose chain has the median length. A node in a loop occurs once for each iteration; ns.

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
        path = path_of_step(parents, kinds, rank, group) if group else None
        count += path is not None
        if path and path.nodes:
            lengths.append((path.ns, step))
    if 2 * len(lengths) <= count:
        return CriticalPath((), 0, 0)
    _, middle = sorted(lengths, key=itemgetter(0))[(len(lengths) - 1) // 2]
    path = path_of_step(parents, kinds, rank, in_step[middle])
    return replace(path, achieved_parallelism=achieved_parallelism(work))


def path_of_step(
    parents: Parents, kinds: Mapping[str, str], rank: Mapping[str, int], runs: Iterable[OpRun]
) -> CriticalPath:
    """The chain of one step, without the achieved parallelism. `rank` orders runs that begin at the
    same time."""
    links = linked(parents, kinds, rank, runs)
    if not all(link.whole for link in links):
        return CriticalPath((), 0, 0)
    ends: list[int] = []  # earliest end of each run
    for link in links:
        start = max((ends[place] for place in link.before), default=0)
        ends.append(start + link.run.duration_ns)
    length = max(ends)
    latest = [length] * len(links)
    for place in range(len(links) - 1, -1, -1):
        start = latest[place] - links[place].run.duration_ns
        for before in links[place].before:
            latest[before] = min(latest[before], start)
    chain = [ends.index(length)]
    while links[chain[-1]].before:
        chain.append(max(links[chain[-1]].before, key=ends.__getitem__))
    slack: dict[str, float] = {}
    for link, end, last in zip(links, ends, latest, strict=True):
        slack[link.run.name] = min(last - end, slack.get(link.run.name, length))
    return CriticalPath(
        nodes=tuple(links[place].run.name for place in reversed(chain)),
        ns=length,
        parallelism=sum(link.run.duration_ns for link in links) / length if length else 0,
        slack=tuple(slack.items()),
        durations_ns=tuple(links[place].run.duration_ns for place in reversed(chain)),
    )


def linked(
    parents: Parents, kinds: Mapping[str, str], rank: Mapping[str, int], runs: Iterable[OpRun]
) -> list[ChainNode]:
    """The runs of a step in the order of their starts, each with the runs that it waits for."""
    links = [ChainNode(run) for run in sorted(runs, key=lambda run: (run.start_ns, rank[run.name]))]
    places: dict[str, list[int]] = {}
    for place, link in enumerate(links):
        places.setdefault(link.run.name, []).append(place)
    around = {name: ran_before(name, parents, places, kinds) for name in places}
    stops = {
        name: [links[place].run.start_ns + links[place].run.duration_ns for place in own]
        for name, own in places.items()
    }
    on_gpu = {
        name for name, own in places.items() if track_kind(links[own[0]].run.device) in ON_GPU
    }
    for name, own in places.items():
        for number, place in enumerate(own):
            if number and name in on_gpu:  # the kernels of a node run one after the other
                join(links[place], links[own[number - 1]], place, own[number - 1])
            for parent, later in around[name]:
                before = places[parent]
                # A Switch runs once more than the loop body behind it
                often = (len(own),) if parent in on_gpu else (len(own), len(own) + 1)
                if kinds[name] not in JOINS and not later and len(before) in often:
                    wanted = number
                else:
                    until = links[place].run.start_ns + OVERLAP_NS
                    wanted = bisect_right(stops[parent], until) - 1
                if wanted >= 0:
                    join(links[place], links[before[wanted]], place, before[wanted])
                elif not later and kinds[name] not in JOINS:
                    links[place].whole = False
    return links


def join(link: ChainNode, before: ChainNode, place: int, place_before: int) -> None:
    """Let a run wait for another one, which must have ended."""
    ended_ns = before.run.start_ns + before.run.duration_ns
    if place_before < place and ended_ns <= link.run.start_ns + OVERLAP_NS:
        link.before.append(place_before)
    else:
        link.whole = False


def ran_before(
    name: str, parents: Parents, places: Container[str], kinds: Mapping[str, str]
) -> list[tuple[str, bool]]:
    """The nodes that ran and that a node waits for, through nodes that did not run; with each,
    whether the path crosses the end of an iteration."""
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
    """The nodes that each node waits for, in the same iteration or the previous one."""
    parents = in_order(dependencies(nodes, transfers))
    ends = {node.name for node in nodes if node.op in BACK}
    for node in nodes:
        parents[node.name] += [one for one in map(node_of, node.inputs) if one in ends]
    return parents


def median_per_step(runs: Iterable[OpRun]) -> dict[str, float]:
    """Each node's median time per step in ns; its runs within a step (in a loop) are added up.

    For an even number of steps it is the lower median, as in the tables of ops: a node has the same
    median everywhere, and sums of medians are exact.
    """
    return {name: median_low(steps.values()) for name, steps in per_step(runs).items()}


def per_step(runs: Iterable[OpRun]) -> dict[str, dict[int, int]]:
    """Each node's time in each step in ns."""
    spent: dict[str, dict[int, int]] = {}
    for run in runs:
        steps = spent.setdefault(run.name, {})
        steps[run.step] = steps.get(run.step, 0) + run.duration_ns
    return spent


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
            if ops.get(parent, BACK[0]) not in BACK
        ]
        for node in nodes
    }
    for transfer in transfers:
        if transfer.recv in parents and transfer.send in parents:
            parents[transfer.recv].append(transfer.send)
    return parents


def in_order(parents: Parents) -> dict[str, list[str]]:
    """The same nodes in topological order, in time linear in the edges.

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
    """The total time of all runs divided by the time in which at least one ran; 0 without runs.

    This is the mean number of ops that ran at once, gaps excluded, over all steps.
    """
    work = busy = 0
    for group in by_step(runs).values():
        starts, durations = times(group)
        work += int(durations.sum())
        busy += total_ns(*merged(starts, starts + durations))
    return work / busy if busy else 0
