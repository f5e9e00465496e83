"""Conversion: recorded steps, summarised like the steps that tflab runs itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflab.analysis import critical_path as paths
from tflab.analysis import lanes, memory, op_stats, op_table, timeline
from tflab.analysis.columns import columns
from tflab.convert.reading import Recording
from tflab.records.measured import OpStats
from tflab.records.timed import CriticalPath, Memory, Owner, StepTime
from tflab.runtime import trace


@dataclass(frozen=True)
class Conversion:
    recorded: Recording
    step_times: tuple[StepTime, ...]
    wall_ns: int
    time_ledger: tuple[Owner, ...]
    top_ops: Mapping[str, tuple[OpStats, ...]]  # by kind of track; shares refer to that kind
    critical_path: CriticalPath | None  # unknown without a graph
    memory: Memory


def convert(recorded: Recording) -> Conversion:
    """The summary of recorded steps.

    A node that ran on a GPU has a launch and kernels. They are not added up but are rows of two
    kinds; the critical path has the time of the kernels.
    """
    runs = columns(recorded.runs)
    of_nodes = runs.of_kinds(name != trace.EXECUTOR for name, *_ in runs.kinds)
    kinds = {track.device: track.kind for track in recorded.tracks}
    of_kind = {
        kind: of_nodes.of_kinds(kinds.get(device) == kind for *_, device in runs.kinds)
        for kind in dict.fromkeys(kinds[device] for device in of_nodes.by_device())
    }
    steps = len(recorded.steps)
    path = None
    if recorded.nodes:
        path = paths.critical_path(recorded.nodes, runs, recorded.transfers)
    return Conversion(
        recorded=recorded,
        step_times=lanes.steps_with_shape(runs, recorded.steps),
        wall_ns=sum(step.wall_ns for step in recorded.steps),
        time_ledger=timeline.time_ledger(runs, recorded.steps),
        top_ops={
            kind: op_table.table(op_stats.fold(group), "node", steps, images=None)
            for kind, group in of_kind.items()
        },
        critical_path=path,
        memory=memory.memory(of_nodes, recorded.steps),
    )


def ranked(conversion: Conversion) -> list[tuple[str, OpStats]]:
    """The rows of all kinds, each with its kind, by self time in descending order."""
    rows = [(kind, row) for kind, table in conversion.top_ops.items() for row in table]
    return sorted(rows, key=lambda item: (-item[1].self_ns, item[1].key))
