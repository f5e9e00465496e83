"""Conversion: recorded steps, summarised like the steps that tflab runs itself, and written."""

from __future__ import annotations

import csv
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from tflab.analysis import critical_path as paths
from tflab.analysis import memory, op_runs, op_table, statistics, timeline
from tflab.analysis.op_runs import Kind
from tflab.convert.read import Recording
from tflab.exporters.csv import cell
from tflab.exporters.json import plain
from tflab.records.measured import OpStats
from tflab.records.timed import CriticalPath, Memory, Owner, StepTime
from tflab.runtime import trace

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


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
    """Return the summary of recorded steps.

    A node that ran on a GPU has a launch and kernels. They are not added up but are rows of two
    kinds; the critical path has the time of the kernels.
    """
    runs = op_runs.of(recorded.runs)
    devices: dict[str, set[str]] = {}  # by kind of track
    for track in recorded.tracks:
        devices.setdefault(track.kind, set()).add(track.device)
    stats = {
        kind: statistics.fold(runs.of_kinds(partial(is_node, own))) for kind, own in devices.items()
    }
    steps = len(recorded.steps)
    path = None
    if recorded.nodes:
        path = paths.critical_path(recorded.nodes, runs, recorded.transfers)
    return Conversion(
        recorded=recorded,
        step_times=tuple(recorded.steps),
        wall_ns=sum(step.wall_ns for step in recorded.steps),
        time_ledger=timeline.time_ledger(runs, recorded.steps),
        top_ops={
            kind: op_table.table(nodes, "node", steps, images=None)
            for kind, nodes in stats.items()
            if nodes
        },
        critical_path=path,
        memory=memory.memory(runs.of_kinds(partial(is_node, None)), recorded.steps),
    )


def is_node(devices: Container[str] | None, kind: Kind) -> bool:
    """Return True if runs of this kind are a node's, on one of these devices or on any."""
    name, _, device = kind
    return name != trace.EXECUTOR and (devices is None or device in devices)


def ranked(conversion: Conversion) -> list[tuple[str, OpStats]]:
    """Return the rows of all kinds, each with its kind, by self time in descending order."""
    rows = [(kind, row) for kind, table in conversion.top_ops.items() for row in table]
    return sorted(rows, key=lambda item: (-item[1].self_ns, item[1].key))


def write_json(stream: TextIO, conversion: Conversion) -> None:
    """Write the contract of `convert --to json`: `steps`, `devices`, `top_ops`, the results of
    analysis, and finally `runs`, one a line."""
    recorded = conversion.recorded
    about = {
        "files": recorded.files,
        "steps": len(recorded.steps),
        "devices": recorded.tracks,
        "step_times": conversion.step_times,
        "wall_ns": conversion.wall_ns,
        "time_ledger": conversion.time_ledger,
        "critical_path": conversion.critical_path,
        "memory": conversion.memory,
        "notes": recorded.notes,
    }
    top_ops = [plain(row, "top_ops") | {"kind": kind} for kind, row in ranked(conversion)]
    head = json.dumps(plain(about) | {"top_ops": top_ops}, indent=1)
    stream.write(head.removesuffix("\n}") + ',\n "runs": [')
    for index, run in enumerate(recorded.runs):
        stream.write(("," if index else "") + "\n  " + json.dumps(run._asdict()))
    stream.write("\n ]\n}\n")


def write_csv(stream: TextIO, recorded: Recording) -> None:
    """Write one line for each op run."""
    kinds = {track.device: track.kind for track in recorded.tracks}
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for step, name, op, device, *numbers, _ in recorded.runs:
        row = (step, cell(name), cell(op), cell(device), kinds.get(device), *numbers)
        writer.writerow(row)
