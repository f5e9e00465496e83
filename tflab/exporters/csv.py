"""CSV: tables for spreadsheets, as text.

A spreadsheet evaluates text that begins like a formula, and a formula can contact other machines.
Such text gets an apostrophe in front, and so does text that already has one, so that different
texts stay different. Numbers are unchanged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from tflab.escaping import visible
from tflab.exporters.json import OP_STATS, plain
from tflab.records.comparison import Change
from tflab.records.measured import Comparison
from tflab.records.verdicts import Verdict

# Also the wide forms of these characters, which some spreadsheets treat alike
FORMULA = re.compile(r"\s*['=+@\-\uff1d\uff0b\uff20\uff0d]")
COMPARED = ("ratio", "low", "high", "observations", "verdict")  # of a verdict


def comparison(comparison: Comparison) -> str:
    """One line for each row and batch size."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["data", "partial", "batch_size", "traced_steps", *OP_STATS["csv"]])
    for size, rows in comparison.tables.items():
        steps = comparison.steps[size].steps
        for row in rows:
            values = plain(row, "csv").values()
            writer.writerow(map(cell, [comparison.data, comparison.partial, size, steps, *values]))
    return out.getvalue()


def changes(kinds: Mapping[str, Iterable[Change]]) -> str:
    """Return one line for each change of each kind, in two saved comparisons or programs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["batch_size", "kind", "key", "first_ns", "second_ns", *COMPARED])
    for kind, of_kind in kinds.items():
        for row in of_kind:
            times = (row.batch_size, kind, row.key, row.first_ns, row.second_ns)
            writer.writerow(map(cell, [*times, *compared(row.verdict)]))
    return out.getvalue()


def compared(verdict: Verdict | None) -> list[Any]:
    """The cells of a verdict; empty for a ratio without an interval."""
    if verdict is None:
        return [None] * len(COMPARED)
    high = verdict.high if isfinite(verdict.high) else None
    return [verdict.ratio, verdict.low, high, verdict.observations, verdict.word]


def cell(value: Any) -> Any:
    """A value as it is written in a cell, a list as one text. The writer leaves None empty."""
    if isinstance(value, list):
        return cell(" ".join(value))
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if FORMULA.match(shown) else shown
