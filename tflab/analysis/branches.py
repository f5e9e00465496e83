"""Branches: the nodes of the graph that runs that did not run, because their branch was not taken.

A `Switch` passes its input on to one of its outputs. The other output is dead: what takes it does
not run, and its outputs are dead too, up to a `Merge` that another branch gives a value
(core/common_runtime/executor.cc). The same ops end a loop, so a body without a turn is dead.

A trace may also lack a node for other reasons. So a node counts only if a dead output explains it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tflab.records.graph import Node, makers, node_of, reach, turned_around
from tflab.records.placed import Fate

SWITCHES = ("Switch", "RefSwitch", "_SwitchN")
MERGES = ("Merge", "RefMerge", "_XlaMerge")  # run if one of their inputs is not dead
# Not in any trace. They also run to pass on that a tensor is dead
TRANSFERS = ("_Send", "_Recv", "_HostSend", "_HostRecv")
NOT_TAKEN = "in a branch that was not taken"  # instead of `executed`


def not_taken(
    nodes: Sequence[Node], ran: Collection[str], transfers: Iterable[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """The nodes of the graph that runs that are in a branch or a loop body that was not taken.

    `ran` are the nodes with an op run in any of the traced steps; `transfers` are the `_Send` and
    the `_Recv` of each tensor that goes to another device.
    """
    switches = {node.name for node in nodes if node.op in SWITCHES and node.name in ran}
    passed_on = {
        tensor
        for node in nodes
        if node.name in ran and node.op not in MERGES
        for tensor in node.inputs
    }
    first = (
        node.name
        for node in nodes
        if node.name not in ran
        and any(node_of(name) in switches and name not in passed_on for name in node.inputs)
    )
    edges = edges_of(nodes)
    for send, receive in transfers:
        edges.setdefault(receive, []).append(send)
    dead = reach(first, turned_around(edges), stop=ran)
    return tuple(node.name for node in nodes if node.name in dead and node.op not in TRANSFERS)


def edges_of(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """For each node, the nodes that it waits for."""
    edges = makers(nodes)
    for node in nodes:
        edges[node.name] += node.control_inputs
    return edges


def depending(nodes: Sequence[Node]) -> set[str]:
    """The nodes of which only a step can tell whether they run: all that take from a `Switch`."""
    switches = {node.name for node in nodes if node.op in SWITCHES}
    first = (node.name for node in nodes if any(node_of(name) in switches for name in node.inputs))
    return reach(first, turned_around(edges_of(nodes)))


def fates_in_step(ledger: Iterable[Fate], not_run: Collection[str]) -> dict[str, str]:
    """The fate of each node in a step; `not_run` are the nodes whose branch it did not take."""
    return {
        fate.name: NOT_TAKEN if fate.fate == "executed" and fate.name in not_run else fate.fate
        for fate in ledger
    }
