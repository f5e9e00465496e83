"""Flows: which run took data from which run.

A trace says when ops ran, and a graph which node takes whose outputs. Together they show from which
run a run took its inputs. In a loop, a node runs many times; then it is its last run that had
ended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from tflab.analysis import op_runs
from tflab.analysis.critical_path import dependencies, in_order
from tflab.records.graph import Node, node_of
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun
from tflab.units import short_device

INFERRED = "(inferred)"


def producers(
    nodes: Iterable[Node], transfers: Iterable[Transfer], ran: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """For each node that ran, the nodes that ran and whose data it takes.

    Data that pass through nodes without a run (fused, folded, `_Send` and `_Recv`) come from the
    last nodes before them that ran.
    """
    data = [replace(node, control_inputs=()) for node in nodes]
    sources: dict[str, tuple[str, ...]] = {}
    for name, parents in in_order(dependencies(data, transfers)).items():
        of_parents = ((parent,) if parent in ran else sources[parent] for parent in parents)
        sources[name] = tuple(dict.fromkeys(chain.from_iterable(of_parents)))
    return {name: names for name, names in sources.items() if names and name in ran}


def pairs(
    runs: Sequence[OpRun], before: Mapping[str, Sequence[str]]
) -> tuple[np.ndarray, np.ndarray]:
    """For each arrow two indices into `runs`: the run that made the data, and the run of the same
    step that took them. `before` names the producers of each node.

    Runs are sorted by node, step and end, so one binary search over all arrows finds the last run
    of the producer that ended before the run of the consumer began.
    """
    table, nodes = op_runs.of(runs), op_runs.Index()
    node_number = op_runs.renumbered([name for name, *_ in table.kinds], nodes)[table.kind]
    steps, step = np.unique(table.step, return_inverse=True)
    ends = table.start_ns + table.duration_ns
    moments, rank = np.unique(np.concatenate([table.start_ns, ends]), return_inverse=True)

    def sort_key(node: np.ndarray, step: np.ndarray, rank: np.ndarray) -> np.ndarray:
        return (node * len(steps) + step) * len(moments) + rank

    inputs = [[nodes[name] for name in before.get(node, ()) if name in nodes] for node in nodes]
    first = np.cumsum([0, *map(len, inputs)])
    inputs_per_run = np.diff(first)[node_number]
    consumers: np.ndarray = np.repeat(np.arange(len(runs)), inputs_per_run)
    first_arrow = np.cumsum(inputs_per_run) - inputs_per_run  # index of each run's first arrow
    nth = np.arange(len(consumers)) - np.repeat(first_arrow, inputs_per_run)
    flat: np.ndarray = np.array([*chain.from_iterable(inputs)], np.int64)
    producer_nodes = flat[first[node_number[consumers]] + nth]

    run_keys = sort_key(node_number, step, rank[len(runs) :])
    order = np.argsort(run_keys, kind="stable")
    consumer_keys = sort_key(producer_nodes, step[consumers], rank[consumers])
    last_before = np.searchsorted(run_keys[order], consumer_keys, side="right") - 1
    producers = order[last_before]
    same_node = node_number[producers] == producer_nodes
    exists = (last_before >= 0) & same_node & (step[producers] == step[consumers])
    return producers[exists], consumers[exists]


def runs_by_node(runs: Iterable[OpRun]) -> dict[str, list[OpRun]]:
    """The runs of each node, in the order in which they ended."""
    runs_of_node: dict[str, list[OpRun]] = {}
    for run in runs:
        if run.name in runs_of_node:
            runs_of_node[run.name].append(run)
        else:
            runs_of_node[run.name] = [run]
    for node_runs in runs_of_node.values():
        if len(node_runs) > 1:
            node_runs.sort(key=end_ns)
    return runs_of_node


def end_ns(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


def inferred_transfers(
    runs: Iterable[OpRun], nodes: Sequence[Node], transfers: Iterable[Transfer]
) -> Iterator[OpRun]:
    """A run for each `_Recv`, from the end of the producer to the start of the first consumer.

    The runtime times neither `_Recv` nor `_Send`. A transfer cannot have taken longer than this
    run, but part of the run may be waiting. If a trace has the `_Recv`, as old ones do, nothing is
    inferred.
    """
    transfers = list(transfers)
    steps = (
        [runs_by_node(step_runs) for step_runs in op_runs.of(runs).by_step().values()]
        if transfers
        else []
    )
    consumers: dict[str, list[str]] = {}
    for name, parents in dependencies(nodes, ()).items():
        for parent in parents:
            consumers.setdefault(parent, []).append(name)
    for transfer in transfers:
        for runs_of_node in steps:
            if transfer.recv in runs_of_node:
                continue
            starts = sorted(
                run.start_ns
                for name in consumers.get(transfer.recv, ())
                for run in runs_of_node.get(name, ())
            )
            for run in runs_of_node.get(node_of(transfer.tensor), ()):
                first = bisect_left(starts, end_ns(run))
                if first < len(starts):
                    yield transfer_run(transfer, run, starts[first])


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
