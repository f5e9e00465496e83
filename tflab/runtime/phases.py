"""Phases: which nodes belong to updates, although they were made outside of an optimiser.

The optimiser's own nodes, and those that gradient functions make, have their phases from the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from tensorflow import Operation

STORED = (*VARIABLES, "ReadVariableOp", "Const")  # values that do not depend on the step's data
FED = ("Placeholder", "PlaceholderWithDefault")
# An initialiser assigns, too; these change a value that is there
CHANGES = re.compile(r"Assign(Add|Sub)(VariableOp)?|(Resource)?Scatter(Nd)?(Add|Sub)")
SUMMARY = re.compile(r"Summary(V2)?$")
ASSIGNS = re.compile(r"Assign(Variable(Op)?)?|(Resource)?Scatter(Nd)?Update")


def phased(graph_nodes: Sequence[Node], ops: Iterable[Operation]) -> tuple[Node, ...]:
    """Return the nodes of these ops; a node is forward only if it does not depend on gradients."""
    if all(node.phase == FORWARD for node in graph_nodes):
        return tuple(graph_nodes)
    derived = [forward.name for op in ops if (forward := private.original_op(op)) is not None]
    updating = Updates(graph_nodes, derived).found()
    return tuple(replace(n, phase=UPDATE) if n.name in updating else n for n in graph_nodes)


class Updates:
    """The search for the forward nodes that belong to updates. Nodes that lead to a node which
    others are `derived` from are excluded: the loss needs them. Of the others these belong to
    updates:

    - those that depend on gradients, such as clipping
    - changes of variables that do not depend on the data, see `changing`
    - those that only updates and summaries use
    - those that updates use and that do not depend on the loss, such as a learning rate, whatever
      else uses them: a schedule has nodes that lead nowhere

    A node does not depend on what was made after it: a loop gets further inputs when it is
    differentiated. A copy that waits for updates, such as a returned loss, is no part of them.
    """

    def __init__(self, nodes: Sequence[Node], derived: Iterable[str]) -> None:
        self.nodes = nodes
        self.phases = {node.name: node.phase for node in nodes}
        self.inputs: Mapping[str, Sequence[str]] = makers(nodes)
        self.consumers = turned_around(self.inputs)
        self.of_loss = reach(derived, self.inputs)
        self.rest = [n for n in nodes if n.phase == FORWARD and n.name not in self.of_loss]
        variables = {node.name for node in nodes if node.op in VARIABLES}
        stored = {
            node.name
            for node in nodes
            if node.op in STORED
            or (node.op == "Identity" and variables.issuperset(self.inputs[node.name]))
        }
        self.on_loss = reach(self.of_loss - stored, self.consumers)

    def found(self) -> set[str]:
        self.follow()
        self.phases |= dict.fromkeys(self.changing(), UPDATE)
        self.follow()
        self.mark_used()
        return {node.name for node in self.rest if self.phases[node.name] == UPDATE}

    def of(self, *phases: str) -> list[str]:
        return [name for name, phase in self.phases.items() if phase in phases]

    def follow(self) -> None:
        """Mark nodes that depend on gradients or updates."""
        places = {node.name: place for place, node in enumerate(self.nodes)}
        for node in self.rest:  # in the order in which they were made: inputs first
            parents = self.inputs[node.name][: 1 if node.op == "Identity" else None]
            earlier = (n for n in parents if places.get(n, len(places)) < places[node.name])
            if any(self.phases[name] != FORWARD for name in earlier):
                self.phases[node.name] = UPDATE

    def mark_used(self) -> None:
        """Mark nodes that updates use; a node that the loss depends on, or that gradients use, only
        if nothing else does."""
        waiting = turned_around({node.name: node.control_inputs for node in self.nodes})
        shared = self.on_loss | reach(self.of(BACKWARD), self.inputs)
        summaries = {node.name for node in self.nodes if SUMMARY.search(node.op)}
        left, before = [node.name for node in reversed(self.rest)], 0
        while len(left) != before:  # a branch of TensorFlow 1 makes the inputs of a node after it
            before = len(left)
            for name in left:
                users = [user for user in self.consumers.get(name, ()) if user not in summaries]
                if name in shared:
                    used = bool(users) and all(self.phases[user] == UPDATE for user in users)
                else:
                    users += waiting.get(name, ())
                    used = any(self.phases[user] == UPDATE for user in users)
                if used:
                    self.phases[name] = UPDATE
            left = [name for name in left if self.phases[name] != UPDATE]

    def changing(self) -> Iterator[str]:
        """Yield the assignments that are updates although no gradient is in them, such as a moving
        average of a weight: they have to do with a variable that the loss or an update uses, and
        not with the data. A batch's statistics and metrics depend on the data."""
        used = self.of_loss | reach(self.of(UPDATE), self.inputs)
        variables = (n.name for n in self.nodes if n.op in VARIABLES and n.name in used)
        of_variables = reach(variables, self.consumers)
        fed = (node.name for node in self.nodes if node.op in FED)
        on_data = self.on_loss | reach(fed, self.consumers)
        edges = {n.name: (*self.inputs[n.name], *n.control_inputs) for n in self.nodes}
        waiting = turned_around(edges)
        after = reach(self.of(UPDATE), waiting)
        for node in self.rest:
            if node.name in of_variables and node.name not in on_data:
                assigns = node.name in after and ASSIGNS.fullmatch(node.op)
                if assigns or CHANGES.fullmatch(node.op):
                    after |= reach([node.name], waiting)
                    yield node.name
