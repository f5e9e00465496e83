"""Flows: from which run to which run data went. No TensorFlow in here.

A trace tells when ops ran, a graph who hands what to whom. Together they tell which run took its
inputs from which: of a loop, whose nodes run many times, the run that ended last before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab.paths import dependencies, in_order
from tflab.records import Node, OpRun, Transfer, node_of
from tflab.schedule import by_step
from tflab.story.words import short_device

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
    runs: Iterable[OpRun], before: Mapping[str, Sequence[str]]
) -> Iterator[tuple[OpRun, OpRun]]:
    """Each run with the runs, in its step, that it has its data from, by the names in `before`."""
    nothing: tuple[list[OpRun], list[int]] = ([], [])
    for own in by_step(runs).values():
        ended = {name: (group, list(map(end, group))) for name, group in by_name(own).items()}
        for run in own:
            for name in before.get(run.name, ()):
                group, ends = ended.get(name, nothing)
                last = bisect_right(ends, run.start_ns)
                if last:
                    yield group[last - 1], run


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
    steps = [by_name(own) for own in by_step(runs).values()]
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
