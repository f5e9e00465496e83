"""Op runs: recorded steps for other programs, as JSON and CSV, each run written as it comes."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from typing import TextIO

from tflab.convert.conversion import Conversion
from tflab.convert.reading import Recorded
from tflab.exporters.json import plain
from tflab.records import OpRun

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


def write_json(stream: TextIO, found: Conversion) -> None:
    """The contract of `convert --to json`: `steps`, `devices`, `top_ops`, what else they add up
    to, and at last the `runs`."""
    recorded = found.recorded
    about = {
        "files": recorded.files,
        "steps": len(recorded.steps),
        "devices": recorded.tracks,
        "step_times": found.step_times,
        "wall_ns": found.wall_ns,
        "time_ledger": found.time_ledger,
        "critical_path": found.critical_path,
        "memory": found.memory,
        "notes": recorded.notes,
    }
    top_ops = [{**plain(dear.total), "kind": dear.kind} for dear in found.top_ops]
    head = json.dumps(plain(about) | {"top_ops": top_ops}, indent=1)
    stream.write(head.removesuffix("\n}") + ',\n "runs": [')
    names = [item.name for item in fields(OpRun)]
    for index, run in enumerate(recorded.runs):
        values = {name: getattr(run, name) for name in names}
        stream.write(("," if index else "") + "\n  " + json.dumps(values))
    stream.write("\n ]\n}\n")


def write_csv(stream: TextIO, found: Recorded) -> None:
    """One line for each op run."""
    kinds = {track.device: track.kind for track in found.tracks}
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in found.runs:
        kind = kinds[run.device]
        times = (run.start_ns, run.duration_ns, run.requested_bytes)
        writer.writerow((run.step, run.name, run.op, run.device, kind, *times))
