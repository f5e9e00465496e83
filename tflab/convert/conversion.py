"""Conversion: recorded steps, summarised like those that tflab runs, written and shown."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TextIO

import numpy as np

from tflab.analysis import critical_path, memory, op_runs, op_table, timeline
from tflab.analysis.op_runs import Kind
from tflab.analysis.timeline import track_kind
from tflab.convert.read import Recording
from tflab.exporters.csv import cell
from tflab.exporters.json import plain
from tflab.records.blocks import Block, Column, Fact, fact_table, numbers, table
from tflab.records.measured import OpStats
from tflab.records.timed import CriticalPath, Memory, Owner, StepTime
from tflab.runtime import trace
from tflab.units import percent, plural, short_device, time
from tflab.views import execution
from tflab.views import op_table as op_columns
from tflab.views.words import listed

LONG = 2  # times the median of the other steps: a longer step, such as a cold one, is left out
COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


@dataclass(frozen=True)
class TrackSummary:
    """The rows under one name in a trace, which may be a part of a device (see `timeline`)."""

    device: str
    kind: str
    op_runs: int
    total_ns: int


@dataclass(frozen=True)
class Conversion:
    recorded: Recording
    long_steps: tuple[StepTime, ...]  # that are in nothing below
    tracks: tuple[TrackSummary, ...]
    wall_ns: int
    time_ledger: tuple[Owner, ...]
    # With the kind of track, by time in descending order; a share refers to its kind
    top_ops: tuple[tuple[str, OpStats], ...]
    critical_path: CriticalPath | None  # unknown without a graph
    memory: Memory


def convert(recorded: Recording) -> Conversion:
    """Return the summary of recorded steps. The launch of a GPU kernel and the kernel are rows of
    two kinds; the critical path has the time of the kernels."""
    # Without the longest step, the median is that of the others for each step that exceeds it
    longest_ns = LONG * median(sorted(step.wall_ns for step in recorded.steps)[:-1] or [0])
    long_steps = [step for step in recorded.steps if 0 < longest_ns < step.wall_ns]
    steps = [step for step in recorded.steps if step not in long_steps]
    runs = op_runs.of(recorded.runs)
    runs = runs.where(~np.isin(runs.step, [step.step for step in long_steps]))
    tracks = tuple(
        TrackSummary(device, track_kind(device), len(own), int(own.duration_ns.sum()))
        for device, own in runs.of_kinds(partial(is_node, None)).by_device().items()
    )
    kinds = dict.fromkeys(track.kind for track in tracks)
    stats = {kind: op_table.fold(runs.of_kinds(partial(is_node, kind))) for kind in kinds}
    rows = [
        (kind, row)
        for kind, nodes in stats.items()
        for row in op_table.with_shares(op_table.rows(nodes, "node", len(steps), images=None))
    ]
    path = None
    if recorded.nodes:
        path = critical_path.critical_path(recorded.nodes, runs, recorded.transfers)
    return Conversion(
        recorded=recorded,
        long_steps=tuple(long_steps),
        tracks=tracks,
        wall_ns=sum(step.wall_ns for step in steps),
        time_ledger=timeline.time_ledger(runs, steps),
        top_ops=tuple(sorted(rows, key=lambda item: (-item[1].total_ns, item[1].key))),
        critical_path=path,
        memory=memory.memory(runs.of_kinds(partial(is_node, None)), steps),
    )


def is_node(track: str | None, kind: Kind) -> bool:
    """Return whether a run is a node's, and on a track of kind `track`; None stands for any."""
    name, _, device = kind
    return name != trace.EXECUTOR and track in (None, track_kind(device))


def write_json(stream: TextIO, conversion: Conversion) -> None:
    """Write the object of `convert --to json`, with the op runs last, as `runs`, one a line."""
    recorded = conversion.recorded
    about = {
        "files": recorded.files,
        "steps": len(recorded.steps),
        "devices": conversion.tracks,
        "step_times": recorded.steps,
        "long_steps": [step.step for step in conversion.long_steps],
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
    for step, name, op, device, *counts, _ in recorded.runs:
        writer.writerow((step, cell(name), cell(op), cell(device), track_kind(device), *counts))


# How it is shown

TOP = 10


def blocks(conversion: Conversion) -> Iterable[Block]:
    recorded = conversion.recorded
    steps, labels = recorded.steps, recorded.labels
    usual = [step for step in steps if step not in conversion.long_steps]
    middle = timeline.median_step(usual)
    by_step = op_runs.of(recorded.runs).of_kinds(partial(is_node, None)).by_step()
    several, counted = len(steps) > 1, plural(len(usual), "step")
    which = labels[middle.step] if several else "the step"
    about = "the only one: if it was the first of its session, its times include set-up"
    if several:
        order = "the shorter of" if len(usual) == 2 else "of median length among"
        about = which + f", {order} {counted}" * (len(usual) > 1)
    facts = [Fact("step", f"{time(middle.wall_ns)} from first op to last", about)]
    if longer := [f"{labels[one.step]} ({time(one.wall_ns)})" for one in conversion.long_steps]:
        why = f"longer than {LONG} x the median of the other steps, as a first run can be"
        facts.append(Fact("left out", listed(longer, 3), why))
    for kind, row in conversion.top_ops[:1]:
        share = f"{percent(row.share)} of the time of all {kind}"
        facts.append(Fact("most expensive node", row.key, share))
    where = f" in {counted}" if several else ""
    for track in conversion.tracks:
        about = f"{plural(track.op_runs, 'op run')} on {short_device(track.device)}{where}"
        facts.append(Fact(track.kind, time(track.total_ns), about))
    ledger = timeline.time_ledger(recorded.runs, [middle])
    facts += execution.owners(filter(lambda owner: owner.ns, ledger), middle.wall_ns, 1, which)
    if conversion.critical_path:
        facts += execution.parallel(conversion.critical_path)
    else:
        facts.append(Fact("critical path", "unknown", "the trace has no graph: give it as --graph"))
    yield fact_table([*facts, *execution.memory_facts(conversion.memory)])
    if several:
        yield table(
            "The steps",
            steps,
            numbers("step", lambda step: str(step.step)),
            Column("file", lambda step: labels[step.step], elastic=True, name=True),
            numbers("start to end", lambda step: time(step.wall_ns)),
            numbers("op runs", lambda step: f"{len(by_step.get(step.step, ())):,}"),
        )
    kinds = len({kind for kind, _ in conversion.top_ops}) > 1
    if kinds:
        yield "Totals of different kinds overlap and must not be added."
    share = "share of kind" if kinds else "share"
    names = ["type", "calls", "total", "median", share]
    if all(row.calls == 1 for _, row in conversion.top_ops):
        names = ["type", "total", share]
    every = (
        op_columns.key("node"),
        *op_columns.columns(names, {"type": 2, "calls": 1, "median": 0}),
    )
    columns = [*op_columns.columns_of(every, lambda item: item[1])]
    columns[2:2] = [Column("kind", lambda item: item[0])] * kinds
    title = f"The most expensive nodes (total time of {counted})"
    yield table(title, conversion.top_ops, *columns, most=TOP)
    held = labels[conversion.memory.curve.step] if several else which
    yield from execution.holders(conversion.memory, of=held)
