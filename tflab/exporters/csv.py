"""CSV: tables for spreadsheets, as text."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from typing import Any

from tflab.exporters.json import plain
from tflab.records import Comparison, Row


def comparison(comparison: Comparison) -> str:
    """One line for each row and batch size."""
    out = io.StringIO()
    names = [item.name for item in fields(Row)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["data", "partial", "batch_size", "traced_steps", *names, "ns_per_image"])
    partial = comparison.interrupted or comparison.failure is not None
    for size, rows in comparison.tables.items():
        steps = comparison.steps[size]
        for row in rows:
            values = [cell(plain(getattr(row, name))) for name in names]
            ns_per_image = row.self_ns / steps.images
            writer.writerow([comparison.data, partial, size, steps.steps, *values, ns_per_image])
    return out.getvalue()


def cell(value: Any) -> Any:
    """A list in one cell. For None the writer leaves the cell empty."""
    return " ".join(value) if isinstance(value, list) else value
