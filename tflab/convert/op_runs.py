"""Op runs: recorded steps as JSON and as CSV, written step by step."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from typing import TextIO

from tflab.analysis.columns import PORTION
from tflab.analysis.stored import in_columns
from tflab.convert.conversion import Conversion, ranked
from tflab.convert.reading import Recording
from tflab.exporters.csv import cell
from tflab.exporters.json import plain
from tflab.records.timed import OpRun

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


def write_json(stream: TextIO, conversion: Conversion) -> None:
    """The contract of `convert --to json`: `steps`, `devices`, `top_ops`, further summaries, and
    finally `runs`."""
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
    names = [item.name for item in fields(OpRun)]
    for index, run in enumerate(recorded.runs):
        values = {name: getattr(run, name) for name in names}
        stream.write(("," if index else "") + "\n  " + json.dumps(values))
    stream.write("\n ]\n}\n")


def write_csv(stream: TextIO, recorded: Recording) -> None:
    """One line for each op run."""
    kinds = {track.device: track.kind for track in recorded.tracks}
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    runs = in_columns(recorded.runs)
    named = [(cell(name), cell(op), cell(dev), kinds.get(dev)) for name, op, dev in runs.kinds]
    for own in runs.by_step().values():
        numbers = (own.step, own.kind, own.start_ns, own.duration_ns, own.requested_bytes)
        for begin in range(0, len(own), PORTION):
            rows = (column[begin : begin + PORTION].tolist() for column in numbers)
            writer.writerows(
                (step, *named[kind], *times) for step, kind, *times in zip(*rows, strict=True)
            )
