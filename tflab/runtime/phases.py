"""Phases: which nodes belong to updates, although they were made outside of an optimiser.

The optimiser's own nodes, and those that gradient functions make, have their phases from the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tflab.records.graph import (
    BACKWARD,
    FORWARD,
    UPDATE,
    VARIABLES,
    Node,
    makers,
    reach,
    turned_around,
)
from tflab.runtime import private

STORED = (*VARIABLES, "ReadVariableOp", "Const")  # values that do not depend on the step's data
FED = ("Placeholder", "PlaceholderWithDefault")
# An initialiser assigns, too; these change a value that is there
CHANGES = re.compile(r"Assign(Add|Sub)(VariableOp)?|(Resource)?Scatter(Nd)?(Add|Sub)")
SUMMARY = re.compile(r"Summary(V2)?$")
ASSIGNS = re.compile(r"Assign(Variable(Op)?)?|(Resource)?Scatter(Nd)?Update")

Edges = Mapping[str, Sequence[str]]  # node -> nodes: its inputs, or its consumers


def phased(graph_nodes: Sequence[Node], ops: Iterable[Any]) -> tuple[Node, ...]:
    """The nodes of these ops; a node is forward only if it does not depend on gradients."""
    if all(node.phase == FORWARD for node in graph_nodes):
        return tuple(graph_nodes)
    derived = [forward.name for op in ops if (forward := private.original_op(op)) is not None]
    updating = for_updates(graph_nodes, derived)
    return tuple(replace(n, phase=UPDATE) if n.name in updating else n for n in graph_nodes)


def for_updates(nodes: Sequence[Node], derived: Iterable[str]) -> set[str]:
    """The forward nodes that belong to updates. Nodes that lead to a node which others are
    `derived` from are excluded: the loss needs them. Of the others these belong to updates:

    - those that depend on gradients, such as clipping
    - changes of variables that do not depend on the data, see `changing`
    - those that only updates and summaries use
    - those that updates use and that do not depend on the loss, such as a learning rate, whatever
      else uses them: a schedule has nodes that lead nowhere

    A node does not depend on what was made after it: a loop gets further inputs when it is
    differentiated. A copy that waits for updates, such as a returned loss, is no part of them.
    """
    phases = {node.name: node.phase for node in nodes}
    inputs = makers(nodes)
    consumers = turned_around(inputs)
    of_loss = reach(derived, inputs)
    rest = [node for node in nodes if node.phase == FORWARD and node.name not in of_loss]
    follow_updates(rest, nodes, phases, inputs)
    on_loss = reach(of_loss - stored(nodes, inputs), consumers)
    edges = inputs, consumers
    phases |= dict.fromkeys(changing(rest, nodes, phases, of_loss, on_loss, edges), UPDATE)
    follow_updates(rest, nodes, phases, inputs)
    mark_used_by_updates(rest, nodes, phases, on_loss, edges)
    return {node.name for node in rest if phases[node.name] == UPDATE}


def follow_updates(
    rest: Sequence[Node], nodes: Sequence[Node], phases: dict[str, str], inputs: Edges
) -> None:
    """Mark those of the rest that depend on gradients or updates."""
    places = {node.name: place for place, node in enumerate(nodes)}
    for node in rest:  # in the order in which they were made: inputs first
        parents = inputs[node.name][:1] if node.op == "Identity" else inputs[node.name]
        earlier = (name for name in parents if places.get(name, len(places)) < places[node.name])
        if any(phases[name] != FORWARD for name in earlier):
            phases[node.name] = UPDATE


def mark_used_by_updates(
    rest: Sequence[Node],
    nodes: Sequence[Node],
    phases: dict[str, str],
    on_loss: set[str],
    edges: tuple[Edges, Edges],
) -> None:
    """Mark those of the rest that updates use; those that depend on the loss or that gradients use
    only if nothing else does."""
    inputs, consumers = edges
    waiting = turned_around({node.name: node.control_inputs for node in nodes})
    for_gradients = reach((node.name for node in nodes if node.phase == BACKWARD), inputs)
    shared = on_loss | for_gradients
    summaries = {node.name for node in nodes if SUMMARY.search(node.op)}
    left, before = [node.name for node in reversed(rest)], 0
    while len(left) != before:  # a branch of TensorFlow 1 makes the inputs of a node after it
        before = len(left)
        for name in left:
            users = [user for user in consumers.get(name, ()) if user not in summaries]
            of_updates = [phases[user] == UPDATE for user in users]
            if name in shared:
                used = bool(users) and all(of_updates)
            else:
                used = any(of_updates) or any(phases[n] == UPDATE for n in waiting.get(name, ()))
            if used:
                phases[name] = UPDATE
        left = [name for name in left if phases[name] != UPDATE]


def changing(
    rest: Sequence[Node],
    nodes: Sequence[Node],
    phases: Mapping[str, str],
    of_loss: set[str],
    on_loss: set[str],
    edges: tuple[Edges, Edges],
) -> Iterator[str]:
    """The assignments that are updates although no gradient is in them, such as a moving average of
    a weight: they have to do with a variable that the loss or an update uses, and not with the
    data. A batch's statistics and metrics depend on the data."""
    inputs, consumers = edges
    used = of_loss | reach((name for name, phase in phases.items() if phase == UPDATE), inputs)
    of_variables = reach((n.name for n in nodes if n.op in VARIABLES and n.name in used), consumers)
    on_data = on_loss | reach((node.name for node in nodes if node.op in FED), consumers)
    waiting = turned_around({n.name: (*inputs[n.name], *n.control_inputs) for n in nodes})
    after = reach((name for name, phase in phases.items() if phase == UPDATE), waiting)
    for node in rest:
        if node.name not in of_variables or node.name in on_data:
            continue
        if CHANGES.fullmatch(node.op) or (node.name in after and ASSIGNS.fullmatch(node.op)):
            after |= reach([node.name], waiting)
            yield node.name


def stored(nodes: Sequence[Node], inputs: Edges) -> set[str]:
    """The variables, their reads, and the constants."""
    variables = {node.name for node in nodes if node.op in VARIABLES}
    reads = {n.name for n in nodes if n.op == "Identity" and variables.issuperset(inputs[n.name])}
    return {node.name for node in nodes if node.op in STORED} | reads
