"""CSV: tables for spreadsheets, as text."""

from __future__ import annotations

import csv
import io
from typing import Any

from tflab.exporters.json import OP_STATS, op_stats
from tflab.records import Comparison


def comparison(comparison: Comparison) -> str:
    """One line for each row and batch size."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["data", "partial", "batch_size", "traced_steps", *OP_STATS["csv"]])
    partial = comparison.interrupted or comparison.failure is not None
    for size, rows in comparison.tables.items():
        steps = comparison.steps[size].steps
        for row in rows:
            values = map(cell, op_stats(row, "csv").values())
            writer.writerow([comparison.data, partial, size, steps, *values])
    return out.getvalue()


def cell(value: Any) -> Any:
    """A list in one cell. For None the writer leaves the cell empty."""
    return " ".join(value) if isinstance(value, list) else value
