"""Recorded: the graph of a watched program as stages, as if it had been walked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tflab import units
from tflab.analysis import fates
from tflab.follow import node_history
from tflab.records.graph import FORWARD, UPDATE, Node, grouped, node_of
from tflab.records.placed import Partition, Pass
from tflab.records.stages import (
    UNEXPLAINED,
    Backward,
    Frontend,
    Gradient,
    NodeHistory,
    Placement,
    Stage,
)
from tflab.records.watched import Recorded, RecordedValues


def stages(graph: Recorded) -> tuple[Stage, ...]:
    """Return the graph as it was written, with any gradients, and as it was placed. Of a function,
    only the graph that its tracing made is known."""
    forward = tuple(node for node in graph.nodes if node.phase == FORWARD)
    frontend = Frontend(
        None, forward, notes=(), blocked=None, functions=(), unordered=(), always_run=()
    )
    added = tuple(node.name for node in graph.nodes if node.phase != FORWARD)
    by_forward = grouped((forward, name) for name, forward in graph.derived.items())
    backward = Backward(
        program=None,  # type: ignore[arg-type]  # it ended
        nodes=graph.nodes,
        added_nodes=added,
        gradients=tuple(
            Gradient(node.name, node.op, f"the gradient function of {node.op}", tuple(names), None)
            for node in graph.nodes
            if (names := by_forward.get(node.name))
        ),
        variable_count=graph.variables,
        update_nodes=tuple(node.name for node in graph.nodes if node.phase == UPDATE),
        unchecked="",
        functions=(),
        added_functions=(),
        gradient_stops=(),
        unordered=(),
        **UNEXPLAINED,
    )
    known = (frontend, backward) if added else (frontend,)
    if not graph.executed:
        return known
    devices = grouped((node.device, node.name) for node in graph.executed)
    placement = Placement(
        program=None,  # type: ignore[arg-type]
        nodes=graph.executed,
        user_nodes=graph.nodes,
        gradient_nodes=(),
        fetches=graph.fetches,
        batch_size=0,
        data="",
        passes=graph.passes,
        ledger=graph.ledger,
        origins=graph.origins,
        partitions=tuple(Partition(device, tuple(names)) for device, names in devices.items()),
        transfers=(),
        kernels=graph.kernels,
        generated=(),
        partition_graphs=(),
        first_run=None,
        not_run=fates.not_taken(graph.executed, graph.ops),
        notes=(),
    )
    return (*known, placement)


def histories(
    graph: Recorded, stages: Sequence[Stage], recorded_values: RecordedValues | None
) -> node_history.Histories:
    """Return the history of each node, with its values in the recorded run if they are known."""
    unknown = set() if graph.traced else fates.depending(graph.executed)
    plain = {
        name: replace(history, not_run=None) if history.carrier in unknown else history
        for name, history in node_history.histories(stages).items()
    }
    known = recorded_values.values if recorded_values else ()
    return node_history.with_values(plain, (), known)


def needed(graph: Recorded) -> Recorded:
    """Return the graph without the nodes that the group does not need, such as initialisers."""
    lost = {fate.name for fate in graph.ledger if fate.fate == "unreached"}

    def left(things: Iterable[Any]) -> tuple[Any, ...]:
        """Return the items that are not lost. An item is a node's name, or has one."""
        return tuple(one for one in things if getattr(one, "name", one) not in lost)

    def left_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
        """Return the nodes that are not lost, without inputs from those that are."""
        return tuple(
            replace(
                node,
                inputs=tuple(name for name in node.inputs if node_of(name) not in lost),
                control_inputs=left(node.control_inputs),
            )
            for node in left(nodes)
        )

    def left_of(step: Pass) -> Pass:
        names = ("added", "removed", "rewired", "moved", "rewritten", "taken")
        lists: dict[str, Any] = {name: left(getattr(step, name)) for name in names}
        return replace(step, definitions=left_nodes(step.definitions), **lists)

    return replace(
        graph,
        nodes=left_nodes(graph.nodes),
        derived={name: of for name, of in graph.derived.items() if not {name, of} & lost},
        ledger=left(graph.ledger),
        passes=tuple(map(left_of, graph.passes)),
    )


def time(graph: Recorded, history: NodeHistory) -> str:
    """Return what the node, or the node that does its work, took in the program's own runs."""
    if history.carrier is None or history.not_run is not False:
        return ""
    if not ((op := graph.ops.get(history.carrier)) and graph.traced):
        return "; its time is in no traced run"
    each, runs = units.time(op.ns / graph.traced), units.plural(graph.traced, "traced run")
    calls = units.plural(op.runs, "call")
    return f"; mean time of {history.carrier} in a run: {each}, {calls} in {runs}"
