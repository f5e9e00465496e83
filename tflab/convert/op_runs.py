"""Op runs: recorded steps as JSON, as CSV and as columns, written step by step."""

from __future__ import annotations

import csv
import json
from dataclasses import fields
from pathlib import Path
from typing import TextIO

from tflab.analysis.columns import PORTION, OpRuns
from tflab.analysis.stored import in_columns
from tflab.convert.conversion import Conversion, ranked
from tflab.convert.reading import Recording
from tflab.convert.rows import coded
from tflab.escaping import visible
from tflab.exporters import parquet
from tflab.exporters.csv import cell
from tflab.exporters.json import plain
from tflab.records.timed import OpRun

COLUMNS = ("step", "name", "op", "device", "kind", "start_ns", "duration_ns", "requested_bytes")
PARQUET = ("step", "node", *COLUMNS[2:])


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
        "parameters": recorded.parameters,
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


def write_parquet(file: Path, recorded: Recording) -> None:
    """A row for each op run."""
    import pyarrow

    kind_of = {track.device: track.kind for track in recorded.tracks}
    runs = in_columns(recorded.runs)
    texts = [[*map(visible, kind), kind_of.get(kind[2], "")] for kind in runs.kinds]
    columns = [coded(pyarrow.array(column)) for column in zip(*texts, strict=True)]

    def table(own: OpRuns) -> pyarrow.Table:
        text = [
            pyarrow.DictionaryArray.from_arrays(codes[own.kind], words) for codes, words in columns
        ]
        numbers = (own.start_ns, own.duration_ns, own.requested_bytes)
        return pyarrow.table([own.step, *text, *numbers], names=PARQUET)

    parquet.write(file, map(table, runs.by_step().values()), rising="start_ns")
