"""Graph states: a graph in each of its states, as the changes since the previous state.

The first state is the graph as written; then come the gradients, each pass of the runtime that
changed something, and the graph that ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tflab.analysis import passes
from tflab.analysis.passes import PURPOSES, Versions
from tflab.records.graph import edge_count
from tflab.records.placed import Pass
from tflab.records.stages import Backward, Execution, Placement, Stage
from tflab.report.contents import State
from tflab.units import plural
from tflab.views import placement
from tflab.views import stages as views

FACTS = 4  # of a stage beside the drawing


def states(stages: Sequence[Stage]) -> tuple[State, ...]:
    """Return the states of a walk's graph, up to the end of the walk."""
    first = stages[0]
    about = "The lines of the program have become nodes. Nothing is computed yet."
    edges = plural(edge_count(first.nodes), "edge")
    log = [State("frontend", "Frontend", about, (edges,), defined=first.nodes)]
    for before, stage in pairwise(stages):
        if isinstance(stage, Backward):
            log.append(with_gradients(before, stage))
        elif isinstance(stage, Placement):
            log.extend(after_passes(stage))
        elif isinstance(stage, Execution):
            about = f"A step of {phase(stages)} ran: each op after those that it depends on."
            log.append(State("execution", "Execution", about, facts(stage)))
    return tuple(log)


def phase(stages: Sequence[Stage]) -> str:
    """Return what a step of this walk is."""
    updates = any(isinstance(stage, Backward) and stage.update_nodes for stage in stages)
    return "training" if updates else "inference"


def with_gradients(before: Stage, stage: Backward) -> State:
    old = {node.name: node for node in before.nodes}
    new = tuple(node for node in stage.nodes if old.get(node.name) != node)
    about = "Each op's gradient function added the nodes that compute its gradient."
    if not stage.added_nodes:
        about = f"Nothing was added: {stage.unchecked}."
    lines = (
        (plural(edge_count(stage.nodes), "edge"), *facts(stage)[1:]) if stage.added_nodes else ()
    )
    ends = ((stop, pair) for stop in stage.gradient_stops for pair in pairwise(stop.path))
    cut = dict.fromkeys(pair for stop, pair in ends if pair[1] == stop.node)
    return State("backward", "Backward", about, lines, (), new, cut=tuple(cut))


def facts(stage: Stage) -> tuple[str, ...]:
    """Return the first facts of a stage in short, without those about what is absent."""
    found = (fact for fact in views.in_short(stage)[:FACTS] if fact.value != "nothing")
    return tuple(f"{fact.label}: {fact.text}" for fact in found)


def after_passes(stage: Placement) -> Iterator[State]:
    """Yield a state for each pass that changed the graph."""
    for place, (step, lines) in enumerate(placement.changes(stage)):
        if not step.changed:
            continue
        again = f", iteration {step.iteration + 1}" if step.iteration else ""
        yield State(
            stage="placement",
            title=f"{step.name}{again}",
            about=PURPOSES.get(step.name, ""),
            lines=lines,
            gone=step.removed,
            defined=step.definitions,
            touched=() if step.moved else touched(step),
            place=place,
        )


def touched(step: Pass) -> tuple[str, ...]:
    """Return the nodes that a pass added or rewrote, and those that replaced others."""
    heirs = (taken.into for taken in step.taken if taken.into)
    rewritten = (rewrite.name for rewrite in step.rewritten)
    return tuple(dict.fromkeys((*step.added, *rewritten, *heirs)))


def versions(states: Sequence[State]) -> Versions:
    """Return every definition of each node, with the states in which it was valid."""
    return passes.replay((state.gone, state.defined) for state in states)


def node_counts(states: Sequence[State], node_versions: Versions) -> list[int]:
    """Return the number of nodes in each state, from the versions of the nodes."""
    every = [version for own in node_versions.values() for version in own]
    return [sum(v.first <= n <= v.last for v in every) for n in range(len(states))]
