"""Critical path: the chain of dependent op runs that takes longest.

The critical path method (Kelley and Walker, "Critical-path planning and scheduling", 1959) finds
the earliest end of each run. Only dependencies count. The model has unlimited processors and starts
ops at no cost, so the traced step takes longer. An untraced step may be faster: a trace makes its
ops longer.

A node in a loop has a run for each iteration, and each run is a link of its own. A trace does not
say which iteration a run belongs to. If two nodes ran equally often, the n-th run of one waits for
the n-th run of the other; otherwise a run waits for the last run that had ended when it began. A
path is returned only if each of its runs began after the previous one had ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from tflab.analysis.op_runs import OpRuns
from tflab.analysis.timeline import ON_GPU, track_kind, work_runs
from tflab.records.graph import Node, grouped, in_order, node_of
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath, OpRun

BACK = ("NextIteration", "RefNextIteration")  # leads to the next iteration of a loop
JOINS = ("Merge", "RefMerge", "Exit", "RefExit")  # runs once after one of several inputs
OVERLAP_NS = 1_000  # traces of old versions have whole microseconds
Parents = Mapping[str, Sequence[str]]  # node -> the nodes that it waits for


def critical_path(
    nodes: Sequence[Node], runs: Iterable[OpRun], transfers: Iterable[Transfer] = ()
) -> CriticalPath:
    """Return the chain of dependent op runs that takes longest in a step, in ns; of several steps,
    the chain of median length. The possible parallelism is the total work divided by the length of
    the chain: the largest speed-up that any number of processors could bring (work over span,
    Blumofe and Leiserson 1999). A step is ignored if the runtime recorded fewer receives in it than
    in other steps, or if a run began before the end of one that it waits for. If the latter is so
    in half of the steps or more, the chain is empty."""
    transfers = tuple(transfers)
    parents = waits(nodes, transfers)
    kinds = {node.name: node.op for node in nodes}
    receives = {transfer.recv for transfer in transfers}
    steps = work_runs(runs).of_kinds(lambda kind: kind[0] in parents).by_step().values()
    received = [len(step.of_kinds(lambda kind: kind[0] in receives)) for step in steps]
    whole = [step for step, n in zip(steps, received, strict=True) if n == max(received)]
    chains = [chain for step in whole if (chain := longest(step, parents, kinds))]
    if 2 * len(chains) <= len(whole):
        return CriticalPath((), 0, 0, ())
    return sorted(chains, key=lambda path: path.ns)[(len(chains) - 1) // 2]


def longest(runs: OpRuns, parents: Parents, kinds: Mapping[str, str]) -> CriticalPath | None:
    """Return the longest chain of runs in a step; None if a run overlaps one that it waits for."""
    rank = {name: place for place, name in enumerate(parents)}
    # Some kinds have no run here, and no rank
    rank_of = np.array([rank.get(name, 0) for name, *_ in runs.kinds], np.int64)
    # In the order of their starts, and of equal starts a run after those that it may wait for
    runs = runs.take(np.lexsort((rank_of[runs.kind], runs.start_ns)))
    before = waited_for(parents, kinds, runs)
    if before is None:
        return None
    durations = runs.duration_ns.tolist()
    ends: list[int] = []  # the earliest of each run, since the start of the step
    for duration, waits_for in zip(durations, before, strict=True):
        ends.append(max((ends[place] for place in waits_for), default=0) + duration)
    length = max(ends)
    path = [ends.index(length)]
    while before[path[-1]]:
        path.append(max(before[path[-1]], key=ends.__getitem__))
    path.reverse()
    return CriticalPath(
        nodes=tuple(runs.kinds[kind][0] for kind in runs.kind[path].tolist()),
        ns=length,
        parallelism=sum(durations) / length if length else 0,
        durations_ns=tuple(durations[place] for place in path),
    )


def waited_for(parents: Parents, kinds: Mapping[str, str], runs: OpRuns) -> list[list[int]] | None:
    """Return the indices of the runs that each run waits for. Return None if a run began before the
    end of one that it waits for. The runs are in the order of their starts."""
    starts = runs.start_ns.tolist()
    ends = (runs.start_ns + runs.duration_ns).tolist()
    places = grouped((runs.kinds[kind][0], place) for place, kind in enumerate(runs.kind.tolist()))
    on_gpu = {name for name, _, device in runs.kinds if track_kind(device) == ON_GPU}
    ends_of = {name: [ends[place] for place in own] for name, own in places.items()}
    before: list[list[int]] = [[] for _ in starts]
    for name, own in places.items():
        # The nodes that ran and that this one waits for, directly or through nodes that did not
        # run; each with whether the path crosses the end of an iteration
        around: dict[tuple[str, bool], None] = {}
        visited: set[str] = set()
        waiting = [(parent, kinds[parent] in BACK) for parent in parents[name]]
        while waiting:
            parent, later = waiting.pop()
            if parent in places:
                around[parent, later] = None
            elif parent not in visited:
                visited.add(parent)
                waiting += [(one, later or kinds[one] in BACK) for one in parents[parent]]
        for number, place in enumerate(own):
            until = starts[place] + OVERLAP_NS
            if number and name in on_gpu:  # the kernels of a node run one after the other
                before[place].append(own[number - 1])
            for parent, later in around:
                earlier = places[parent]
                # A Switch runs once more than the loop body behind it
                often = (len(own),) if parent in on_gpu else (len(own), len(own) + 1)
                free = later or kinds[name] in JOINS
                if not free and len(earlier) in often:
                    wanted = number
                else:
                    wanted = bisect_right(ends_of[parent], until) - 1
                if wanted >= 0:
                    before[place].append(earlier[wanted])
                elif not free:
                    return None
            if not all(earlier < place and ends[earlier] <= until for earlier in before[place]):
                return None
    return before


def waits(nodes: Sequence[Node], transfers: Iterable[Transfer]) -> dict[str, list[str]]:
    """Return the nodes that each node waits for; a `_Recv` waits for the `_Send` of its tensor."""
    ops = {node.name: node.op for node in nodes}
    parents = {
        node.name: [parent for parent in node.waits_for if ops.get(parent, BACK[0]) not in BACK]
        for node in nodes
    }
    for transfer in transfers:
        if transfer.recv in parents and transfer.send in parents:
            parents[transfer.recv].append(transfer.send)
    parents = in_order(parents)  # within one iteration, so without the ends of iterations
    for node in nodes:
        parents[node.name] += [one for one in map(node_of, node.inputs) if ops.get(one) in BACK]
    return parents


def median_per_step(runs: Iterable[OpRun]) -> dict[str, float]:
    """Return each node's median time per step in ns, with the runs of a loop added up."""
    spent: dict[str, Counter[int]] = {}  # by node and step
    for run in runs:
        spent.setdefault(run.name, Counter())[run.step] += run.duration_ns
    return {name: median(steps.values()) for name, steps in spent.items()}
