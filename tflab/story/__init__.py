"""Story: what each stage tells its reader, as sentences and tables. No TensorFlow in here.

A stage's result goes in, a list of blocks comes out; text and Markdown show the same blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflab.records import Backward, Execution, Frontend, Placement, Stage, edge_count
from tflab.story import backward, execution, frontend, placement
from tflab.table import Block, plural, time

TITLES = {
    Frontend: "Frontend: Python calls become nodes",
    Backward: "Backward: gradient functions add the other half of the graph",
    Placement: "Placement: the graph is rewritten, given devices and cut into partitions",
    Execution: "Execution: ops run in the order of their dependencies",
}


def title(stage: Stage) -> str:
    return TITLES[type(stage)]


def summary(stage: Stage) -> str:
    """One line: what this stage left behind."""
    counts = f"{plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}"
    if isinstance(stage, Backward):
        return f"{counts}, {len(stage.added_nodes):,} of the nodes new"
    if isinstance(stage, Placement):
        return f"{counts} on {plural(len(stage.partitions), 'device')}"
    if isinstance(stage, Execution):
        return f"{counts}, {time(stage.untraced_step_ns.median)} a step"
    return counts


def tell(stage: Stage, expanded: Sequence[str] = ()) -> list[Block]:
    """The blocks of one stage. `expanded` names the scopes of the frontend that are opened."""
    if isinstance(stage, Frontend):
        return list(frontend.tell(stage, expanded))
    if isinstance(stage, Backward):
        return list(backward.tell(stage))
    if isinstance(stage, Placement):
        return list(placement.tell(stage))
    return list(execution.tell(stage))
