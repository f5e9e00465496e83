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

from tflab.escaping import visible
from tflab.exporters.json import ROW, plain
from tflab.records.measured import Change, Comparison

# Also the wide forms of these characters, which some spreadsheets treat alike
FORMULA = re.compile(r"\s*['=+@\-\uff1d\uff0b\uff20\uff0d]")
COMPARED = ("ratio", "low", "high", "observations", "word")  # of a verdict


def comparison(comparison: Comparison) -> str:
    """Return a table with a line for each row and batch size."""
    names = ["ns_per_image" if name == "image_ns" else name for name in ROW]
    lines: list[list[object]] = [["data", "partial", "batch_size", "traced_steps", *names]]
    for size, rows in comparison.tables.items():
        about = [comparison.data, comparison.partial, size, comparison.steps[size].steps]
        lines += [[*about, *plain(row).values()] for row in rows]
    return text_of(lines)


def changes(kinds: Mapping[str, Iterable[Change]]) -> str:
    """Return a table with a line for each change of each kind; unknown cells are empty."""
    names = ("batch_size", "kind", "key", "first_ns", "second_ns", *COMPARED[:-1], "verdict")
    lines: list[Iterable[object]] = [names]
    for kind, of_kind in kinds.items():
        for row in of_kind:
            verdict = plain(row.verdict) or {}
            times = [row.batch_size, kind, row.key, row.first_ns, row.second_ns]
            lines.append([*times, *map(verdict.get, COMPARED)])
    return text_of(lines)


def text_of(lines: Iterable[Iterable[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(cell, line) for line in lines)
    return out.getvalue()


def cell(value: object) -> object:
    """Return a value as a cell has it, a list as one text. The writer leaves None empty."""
    if isinstance(value, list):
        return cell(" ".join(value))
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if FORMULA.match(shown) else shown
