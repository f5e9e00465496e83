"""Flows: from which run to which run data went. No TensorFlow in here.

A trace tells when ops ran, a graph who hands what to whom. Together they tell which run took its
inputs from which: of a loop, whose nodes run many times, the run that ended last before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from tflab.analysis.critical_path import dependencies, in_order
from tflab.analysis.timeline import by_step, column, times
from tflab.records import Node, OpRun, Transfer, node_of
from tflab.units import short_device

INFERRED = "(inferred)"


def producers(
    nodes: Iterable[Node], transfers: Iterable[Transfer], ran: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """For each node that ran, the nodes that ran and whose data it takes.

    Data that come through nodes without a run of their own (fused, folded, `_Send` and `_Recv`)
    come from the last ones before that ran.
    """
    data = [replace(node, control_inputs=()) for node in nodes]
    found: dict[str, tuple[str, ...]] = {}
    for name, parents in in_order(dependencies(data, transfers)).items():
        of_parents = ((parent,) if parent in ran else found[parent] for parent in parents)
        found[name] = tuple(dict.fromkeys(one for group in of_parents for one in group))
    return {name: before for name, before in found.items() if before and name in ran}


def pairs(
    runs: Sequence[OpRun], before: Mapping[str, Sequence[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """For each arrow the place in `runs` of the run that made the data, and of the one that took
    them in the same step, by the names in `before`.

    Runs are sorted by node, step and end. In that order the run that ended last before another
    began is found by one search for all.
    """
    nodes = {name: number for number, name in enumerate(dict.fromkeys(run.name for run in runs))}
    node = column(nodes[run.name] for run in runs)
    steps, step = np.unique(column(run.step for run in runs), return_inverse=True)
    starts, lasted = times(runs)
    moments, rank = np.unique(np.concatenate([starts, starts + lasted]), return_inverse=True)

    def place(node: np.ndarray, step: np.ndarray, rank: np.ndarray) -> np.ndarray:
        return (node * len(steps) + step) * len(moments) + rank

    takes = [[nodes[name] for name in before.get(taker, ()) if name in nodes] for taker in nodes]
    first = np.cumsum([0, *map(len, takes)])
    wanted_by = np.diff(first)[node]
    consumers: np.ndarray = np.repeat(np.arange(len(runs)), wanted_by)
    nth = np.arange(len(consumers)) - np.repeat(np.cumsum(wanted_by) - wanted_by, wanted_by)
    wanted = column(chain.from_iterable(takes))[first[node[consumers]] + nth]

    ended = place(node, step, rank[len(runs) :])
    order = np.argsort(ended, kind="stable")
    asked = place(wanted, step[consumers], rank[consumers])
    found = np.searchsorted(ended[order], asked, side="right") - 1
    producers = order[found]
    there = (found >= 0) & (node[producers] == wanted) & (step[producers] == step[consumers])
    return producers[there], consumers[there]


def by_name(runs: Iterable[OpRun]) -> dict[str, list[OpRun]]:
    """The runs of each node, in the order in which they ended."""
    found: dict[str, list[OpRun]] = {}
    for run in runs:
        if run.name in found:
            found[run.name].append(run)
        else:
            found[run.name] = [run]
    for group in found.values():
        if len(group) > 1:
            group.sort(key=end)
    return found


def end(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


def inferred(
    runs: Iterable[OpRun], nodes: Sequence[Node], transfers: Iterable[Transfer]
) -> Iterator[OpRun]:
    """A run of each `_Recv`, from the end of the producer to the start of the first consumer.

    The runtime times neither it nor the `_Send`. A transfer cannot have taken longer than that,
    but much of it may have been waiting. Where a trace has the `_Recv` (old ones do), there is
    nothing to infer.
    """
    transfers = list(transfers)
    steps = [by_name(own) for own in by_step(runs).values()] if transfers else []
    takers: dict[str, list[str]] = {}
    for name, parents in dependencies(nodes, ()).items():
        for parent in parents:
            takers.setdefault(parent, []).append(name)
    for transfer in transfers:
        for ran in steps:
            if transfer.recv in ran:
                continue
            starts = sorted(
                run.start_ns for name in takers.get(transfer.recv, ()) for run in ran.get(name, ())
            )
            for run in ran.get(node_of(transfer.tensor), ()):
                first = bisect_left(starts, end(run))
                if first < len(starts):
                    yield bar(transfer, run, starts[first])


def bar(transfer: Transfer, run: OpRun, until_ns: int) -> OpRun:
    way = f"{short_device(transfer.from_device)} to {short_device(transfer.to_device)}"
    return OpRun(
        step=run.step,
        name=transfer.recv,
        op=f"{transfer.tensor} {INFERRED}",
        device=f"transfers {way} {INFERRED}",
        start_ns=end(run),
        duration_ns=until_ns - end(run),
        requested_bytes=transfer.bytes or 0,
    )
