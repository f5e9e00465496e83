"""Conversion: recorded steps, summarised like the steps that tflab runs itself, and how the summary
is written and shown."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from tflab.analysis import critical_path, memory, op_runs, op_table, timeline
from tflab.analysis.op_runs import Kind
from tflab.analysis.timeline import track_kind
from tflab.convert.read import Recording
from tflab.exporters.csv import cell
from tflab.exporters.json import plain
from tflab.records.blocks import Block, Column, Fact, fact_table, numbers, table
from tflab.records.measured import OpStats
from tflab.records.timed import CriticalPath, Memory, Owner
from tflab.runtime import trace
from tflab.units import percent, plural, short_device, time
from tflab.views import execution
from tflab.views import op_table as op_columns

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


@dataclass(frozen=True)
class Conversion:
    recorded: Recording
    wall_ns: int
    time_ledger: tuple[Owner, ...]
    # With the kind of track, by time in descending order; a share refers to its kind
    top_ops: tuple[tuple[str, OpStats], ...]
    critical_path: CriticalPath | None  # unknown without a graph
    memory: Memory


def convert(recorded: Recording) -> Conversion:
    """Return the summary of recorded steps. The launch of a GPU kernel and the kernel are rows of
    two kinds; the critical path has the time of the kernels."""
    runs, steps = op_runs.of(recorded.runs), len(recorded.steps)
    kinds = dict.fromkeys(track.kind for track in recorded.tracks)
    stats = {kind: op_table.fold(runs.of_kinds(partial(is_node, kind))) for kind in kinds}
    rows = [
        (kind, row)
        for kind, nodes in stats.items()
        for row in op_table.with_shares(op_table.rows(nodes, "node", steps, images=None))
    ]
    path = None
    if recorded.nodes:
        path = critical_path.critical_path(recorded.nodes, runs, recorded.transfers)
    return Conversion(
        recorded=recorded,
        wall_ns=sum(step.wall_ns for step in recorded.steps),
        time_ledger=timeline.time_ledger(runs, recorded.steps),
        top_ops=tuple(sorted(rows, key=lambda item: (-item[1].total_ns, item[1].key))),
        critical_path=path,
        memory=memory.memory(runs.of_kinds(partial(is_node, None)), recorded.steps),
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
    for step, name, op, device, *counts, _ in recorded.runs:
        writer.writerow((step, cell(name), cell(op), cell(device), track_kind(device), *counts))


# How it is shown

TOP = 10
LONG = 2  # times the median, from which on the longest step is told


def blocks(conversion: Conversion) -> Iterable[Block]:
    recorded, steps = conversion.recorded, conversion.recorded.steps
    runs, middle = op_runs.of(recorded.runs), timeline.median_step(steps)
    by_step, several = runs.by_step(), len(steps) > 1
    which = "the step of median length" if several else "the step"
    among, where = f"Of {plural(len(steps), 'step')}, {which}", f" in the {len(steps):,} steps"
    said = [
        f"{among if several else 'The step'} took {time(middle.wall_ns)} from the start of its "
        "first op to the end of its last."
    ]
    for kind, row in conversion.top_ops[:1]:
        share = f"{percent(row.share)} of the time of all {kind}"
        said.append(f"{row.key} took {share}{where * several}.")
    longest = max(steps, key=lambda step: step.wall_ns)
    if longest.wall_ns > LONG * middle.wall_ns:
        times = f"{longest.wall_ns / (middle.wall_ns or 1):,.0f} times the median"
        said.append(
            f"Step {longest.step} ({recorded.labels[longest.step]}) took {time(longest.wall_ns)}, "
            f"{times}: the totals and shares of nodes include it."
        )
    yield " ".join(said)
    starts = len(runs.of_kinds(lambda kind: kind[0] == trace.EXECUTOR))
    own = f"{starts:,} of them the executor's own ({trace.EXECUTOR})" if starts else ""
    facts = [Fact("op runs", f"{len(runs):,}", own)]
    for track in recorded.tracks if len(recorded.tracks) == 1 else ():
        about = f"added up{where * several}, on {short_device(track.device)}"
        facts.append(Fact(track.kind, time(track.total_ns), about))
    ledger = timeline.time_ledger(by_step.get(middle.step, ()), [middle])
    facts += execution.owners(filter(lambda owner: owner.ns, ledger), middle.wall_ns, 1, which)
    if conversion.critical_path:
        facts += execution.parallel(conversion.critical_path)
    missing = "time of session.run before the first op and after the last"
    facts += [*execution.memory_facts(conversion.memory), Fact("not recorded", missing)]
    yield fact_table(facts)
    if several:
        yield table(
            "The steps",
            steps,
            numbers("step", lambda step: str(step.step)),
            Column("file", lambda step: recorded.labels[step.step], elastic=True, name=True),
            numbers("start to end", lambda step: time(step.wall_ns)),
            numbers("op runs", lambda step: f"{len(by_step[step.step]):,}"),
        )
    if len(recorded.tracks) > 1:
        yield table(
            "What was recorded",
            recorded.tracks,
            Column("device", lambda track: short_device(track.device), elastic=True, name=True),
            Column("its rows are", lambda track: track.kind, spare=1),
            numbers("op runs", lambda track: f"{track.op_runs:,}"),
            numbers("total", lambda track: time(track.total_ns)),
        )
    kinds = len({kind for kind, _ in conversion.top_ops}) > 1
    if kinds:
        yield (
            "Totals of different kinds overlap and must not be added: a launch ends before its "
            "kernel, and a thread waits for GPU work that is counted elsewhere."
        )
    names = ["type", "calls", "total", "median", "share"]
    if all(row.calls == 1 for _, row in conversion.top_ops):
        names = ["type", "total", "share"]
    headers = {"total": "time"} if len(names) == 3 else {"calls": "op runs"}
    headers |= {"share": "share of kind"} if kinds else {}
    every = (op_columns.key("node"), *op_columns.columns(names, headers, {"calls": 1, "median": 0}))
    columns = [*op_columns.columns_of(every, lambda item: item[1])]
    columns[2:2] = [Column("kind", lambda item: item[0])] * kinds
    title = f"The most expensive nodes (total time of {plural(len(steps), 'step')})"
    yield table(title, conversion.top_ops, *columns, most=TOP)
    if conversion.critical_path is None:
        yield "The trace has no graph. With --graph, the critical path is shown too."
    elif not conversion.critical_path.nodes:
        yield "The graph may not be the one that ran, because passes change edges."
    yield from execution.holders(conversion.memory)
