"""Conversion: recorded steps, summarised like the steps that tflab runs itself, and written."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from tflab.analysis import critical_path as paths
from tflab.analysis import memory, op_runs, op_table, timeline
from tflab.analysis.op_runs import Kind
from tflab.analysis.timeline import track_kind
from tflab.convert.read import Recording
from tflab.exporters.csv import cell
from tflab.exporters.json import plain
from tflab.records.measured import OpStats
from tflab.records.timed import CriticalPath, Memory, Owner
from tflab.runtime import trace

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


@dataclass(frozen=True)
class Conversion:
    recorded: Recording
    wall_ns: int
    time_ledger: tuple[Owner, ...]
    # With the kind of track, by self time in descending order; a share refers to its kind
    top_ops: tuple[tuple[str, OpStats], ...]
    critical_path: CriticalPath | None  # unknown without a graph
    memory: Memory


def convert(recorded: Recording) -> Conversion:
    """Return the summary of recorded steps.

    A node that ran on a GPU has a launch and kernels. They are not added up but are rows of two
    kinds; the critical path has the time of the kernels.
    """
    runs, steps = op_runs.of(recorded.runs), len(recorded.steps)
    kinds = dict.fromkeys(track.kind for track in recorded.tracks)
    stats = {kind: op_table.fold(runs.of_kinds(partial(is_node, kind))) for kind in kinds}
    rows = [
        (kind, row)
        for kind, nodes in stats.items()
        for row in (op_table.table(nodes, "node", steps, images=None) if nodes else ())
    ]
    path = None
    if recorded.nodes:
        path = paths.critical_path(recorded.nodes, runs, recorded.transfers)
    return Conversion(
        recorded=recorded,
        wall_ns=sum(step.wall_ns for step in recorded.steps),
        time_ledger=timeline.time_ledger(runs, recorded.steps),
        top_ops=tuple(sorted(rows, key=lambda item: (-item[1].self_ns, item[1].key))),
        critical_path=path,
        memory=memory.memory(runs.of_kinds(partial(is_node, None)), recorded.steps),
    )


def is_node(track: str | None, kind: Kind) -> bool:
    """Return True if runs of this kind are a node's, on this kind of track or on any."""
    name, _, device = kind
    return name != trace.EXECUTOR and track in (None, track_kind(device))


def write_json(stream: TextIO, conversion: Conversion) -> None:
    """Write the contract of `convert --to json`: `steps`, `devices`, `top_ops`, the results of
    analysis, and finally `runs`, one a line."""
    recorded = conversion.recorded
    about = {
        "files": recorded.files,
        "steps": len(recorded.steps),
        "devices": recorded.tracks,
        "step_times": recorded.steps,
        "wall_ns": conversion.wall_ns,
        "time_ledger": conversion.time_ledger,
        "critical_path": conversion.critical_path,
        "memory": conversion.memory,
        "notes": recorded.notes,
    }
    top_ops = [plain(row, "top_ops") | {"kind": kind} for kind, row in conversion.top_ops]
    head = json.dumps(plain(about) | {"top_ops": top_ops}, indent=1)
    stream.write(head.removesuffix("\n}") + ',\n "runs": [')
    for index, run in enumerate(recorded.runs):
        stream.write(("," if index else "") + "\n  " + json.dumps(run._asdict()))
    stream.write("\n ]\n}\n")


def write_csv(stream: TextIO, recorded: Recording) -> None:
    """Write one line for each op run."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for step, name, op, device, *numbers, _ in recorded.runs:
        row = (step, cell(name), cell(op), cell(device), track_kind(device), *numbers)
        writer.writerow(row)
