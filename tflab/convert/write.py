"""Write recorded steps as JSON and as CSV."""

from __future__ import annotations

import csv
import json
from typing import TextIO

from tflab.convert.conversion import Conversion, ranked
from tflab.convert.read import Recording
from tflab.exporters.csv import cell
from tflab.exporters.json import plain

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")


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
