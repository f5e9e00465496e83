"""Conversion: what recorded steps add up to, as for steps that tflab ran itself.

No TensorFlow in here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflab.analysis import critical_path as paths
from tflab.analysis import lanes, memory, tables, timeline, tracks
from tflab.convert.reading import Recorded
from tflab.records import CriticalPath, Memory, OpTotal, Owner, StepTime
from tflab.runtime import trace


@dataclass(frozen=True)
class Dear:
    """All runs of one node of one kind; its share is of that kind."""

    kind: str  # see `tflab.analysis.tracks`
    total: OpTotal


@dataclass(frozen=True)
class Conversion:
    recorded: Recorded
    step_times: tuple[StepTime, ...]
    wall_ns: int
    time_ledger: tuple[Owner, ...]
    top_ops: tuple[Dear, ...]
    critical_path: CriticalPath | None  # without a graph nobody knows
    memory: Memory


def convert(found: Recorded) -> Conversion:
    """The account of recorded steps.

    A node that ran on a GPU has a launch and kernels, which are not added up: they are rows of two
    kinds, and on the critical path stands what its kernels took.
    """
    of_nodes = [run for run in found.runs if run.name != trace.EXECUTOR]
    of_kind: dict[str, list] = {}
    kinds = {track.device: track.kind for track in found.tracks}
    for run in of_nodes:
        of_kind.setdefault(kinds[run.device], []).append(run)
    dear = [Dear(kind, row) for kind, runs in of_kind.items() for row in tables.top_ops(runs)]
    path = None
    if found.nodes:
        path = paths.critical_path(found.nodes, tracks.work_runs(found.runs), found.transfers)
    return Conversion(
        recorded=found,
        step_times=lanes.steps_with_shape(found.runs, found.steps),
        wall_ns=sum(step.wall_ns for step in found.steps),
        time_ledger=timeline.time_ledger(found.runs, found.steps),
        top_ops=tuple(sorted(dear, key=lambda one: (-one.total.self_ns, one.total.name))),
        critical_path=path,
        memory=memory.memory(of_nodes, found.steps),
    )
