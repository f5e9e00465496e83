"""Graph states: a graph in each of its states, as the changes since the previous state.

The first state is the graph as written; then come the gradients, each pass of the runtime that
changed something, and the graph that ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tflab.analysis import passes
from tflab.analysis.passes import PURPOSES, Versions
from tflab.records.blocks import Column, Frame, Table
from tflab.records.graph import edge_count
from tflab.records.placed import Pass
from tflab.records.stages import Backward, Execution, Frontend, Placement, Stage
from tflab.report.contents import StandIn, State
from tflab.units import percent, plural, time
from tflab.views import pass_log
from tflab.views.backward import not_finite, result


def states(stages: Sequence[Stage]) -> tuple[State, ...]:
    """The states of a walk's graph, up to the end of the walk."""
    by_type: dict[type, Any] = {type(stage): stage for stage in stages}
    log = [as_written(by_type[Frontend])]
    if Backward in by_type:
        log.append(with_gradients(by_type[Frontend], by_type[Backward]))
    if Placement in by_type:
        log.extend(after_passes(by_type[Placement]))
    if Execution in by_type:
        log.append(as_run(by_type[Placement], by_type[Execution]))
    return tuple(log)


def as_written(stage: Frontend) -> State:
    return State(
        stage="frontend",
        title="Written",
        about="The lines of the program have become nodes. Nothing is computed yet.",
        lines=(f"{plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}",),
        gone=(),
        defined=stage.nodes,
    )


def with_gradients(before: Frontend, stage: Backward) -> State:
    old = {node.name: node for node in before.nodes}
    new = tuple(node for node in stage.nodes if old.get(node.name) != node)
    about = "Each op's gradient function added the nodes that compute its gradient."
    if stage.inferred:
        about = "The graph already has its gradients: nothing was added."
    elif not stage.added_nodes:
        about = "There is nothing to differentiate, so nothing was added."
    lines = tuple(grown(stage)) if stage.added_nodes else ()
    return State("backward", "With gradients", about, lines, (), new)


def grown(stage: Backward) -> Iterator[str]:
    derived = sum(bool(gradient.nodes) for gradient in stage.gradients)
    updates = len(stage.update_nodes)
    yield (
        f"{plural(len(stage.added_nodes) - updates, 'node')} to differentiate "
        f"{plural(derived, 'op')}, {plural(updates, 'node')} to update "
        f"{plural(stage.variable_count, 'variable')}"
    )
    if stage.gradient_checks:
        yield (
            f"{plural(len(stage.gradient_checks), 'gradient')} compared with finite differences: "
            f"{not_finite(stage) or result(stage)}"
        )


def after_passes(stage: Placement) -> Iterator[State]:
    """A state for each pass that changed the graph."""
    lost = {fate.name for fate in stage.ledger if fate.fate == "unreached"}
    types = {node.name: node.op for node in (*stage.nodes, *stage.user_nodes)}
    for place, step in enumerate(stage.passes):
        if not changed(step):
            continue
        again = f", iteration {step.iteration + 1}" if step.iteration else ""
        yield State(
            stage="placement",
            title=f"{step.name}{again}",
            about=PURPOSES.get(step.name, ""),
            lines=tuple(pass_log.happened(step, lost, types)),
            gone=step.removed,
            defined=step.definitions,
            touched=() if step.moved else touched(step),
            place=place,
        )


def changed(step: Pass) -> bool:
    return bool(step.removed or step.definitions)


def touched(step: Pass) -> tuple[str, ...]:
    """The nodes that a pass added or rewrote, and those that replaced others."""
    heirs = (taken.into for taken in step.taken if taken.into)
    rewritten = (rewrite.name for rewrite in step.rewritten)
    return tuple(dict.fromkeys((*step.added, *rewritten, *heirs)))


def critical_path(stage: Execution) -> Iterator[str]:
    path = stage.critical_path
    if path.nodes:
        runs = plural(len(path.nodes), "op run")
        yield f"critical path: {runs}, {time(path.ns)} in a traced step"


def as_run(before: Placement, stage: Execution) -> State:
    """The graph that ran: that of the last pass, with its times."""
    owned = {owner.owner: owner.ns / stage.wall_ns for owner in stage.time_ledger}
    largest = max(owned, key=owned.__getitem__)
    missing = set(before.not_run).difference(run.name for run in stage.runs)
    ran = f"{len(stage.nodes) - len(missing):,} of " if missing else ""
    lines = (
        f"{ran}{plural(len(stage.nodes), 'node')} on {plural(len(before.partitions), 'device')}, "
        f"{time(stage.untraced_step_ns.median)} a step for a batch of {stage.batch_size} (median)",
        *critical_path(stage),
        f"largest owner of the wall time of traced steps: {largest}, {percent(owned[largest])}",
    )
    return State(
        stage="execution",
        title="Ran",
        about="The ops ran in the order of their dependencies.",
        lines=lines,
        gone=(),
        defined=(),
    )


def idle(stage: Placement) -> Frame | None:
    """The passes that changed nothing, if there are any."""
    names = [step.name for step in stage.passes if not changed(step)]
    if not names:
        return None
    busy = {step.name for step in stage.passes if changed(step)}
    return Frame(
        pass_log.idle_runs(names), "changed nothing", tuple(pass_log.idle_names(names, busy))
    )


def stand_ins(stage: Placement, kinds: Mapping[str, str]) -> tuple[StandIn, ...]:
    """The gradient nodes with which passes merged forward nodes.

    A stand-in may itself be merged with another node, which then replaces both.
    """
    # node -> the nodes that it replaces, and the passes
    replaced: dict[str, list[tuple[str, str]]] = {}
    for step in stage.passes:
        for taken in step.taken:
            if taken.fate != "merged" or taken.into is None:
                continue
            earlier = replaced.get(taken.name, [])
            if kinds.get(taken.name) == "forward":
                earlier = [*earlier, (taken.name, step.name)]
            replaced.setdefault(taken.into, []).extend(earlier)
    return tuple(
        StandIn(node, name, by)
        for node, names in replaced.items()
        if kinds.get(node) == "gradient"
        for name, by in names
    )


def versions(states: Sequence[State]) -> Versions:
    """Every definition of each node, with the states in which it was valid."""
    return passes.replay((state.gone, state.defined) for state in states)


def node_counts(states: Sequence[State], node_versions: Versions) -> list[int]:
    """The number of nodes in each state, from the versions of the nodes."""
    return [len(passes.graph_at(node_versions, number)) for number in range(len(states))]


def changes(states: Sequence[State]) -> Table:
    """The states as a table: the number of nodes in each, and the step that led to it."""
    counts = node_counts(states, versions(states))
    return Table(
        "The changes of the graph, step by step",
        (
            Column("step", lambda row: row[0].title),
            Column("nodes before", lambda row: f"{row[1]:,}", right=True),
            Column("after", lambda row: f"{row[2]:,}", right=True),
            Column("what happened", lambda row: "; ".join(row[0].lines), elastic=True),
        ),
        tuple(zip(states, [0, *counts], counts, strict=False)),
    )
