"""Data for other programs: the JSON contracts, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tflab.records import Comparison, Row, Stage, edge_count
from tflab.views import stages

# What only means something inside this process
LIVE = {"program", "user_nodes", "partition_graphs", "definitions"}
# What is too long and goes to files
LONG = {"listings"}
# Words that Python keeps for itself
RENAMED = {"from_device": "from", "to_device": "to", "old": "from", "new": "to"}


def as_object(
    model: str, environment: dict[str, Any], walked: Sequence[Stage], error: str | None = None
) -> dict[str, Any]:
    """One object: `model`, `environment`, `stages` in their order; `error` if one failed."""
    found = {"model": model, "environment": environment, "stages": list(map(stage_object, walked))}
    return found if error is None else found | {"error": error}


def stage_object(stage: Stage) -> dict[str, Any]:
    return {
        "stage": stages.name(stage),
        "node_count": len(stage.nodes),
        "edge_count": edge_count(stage.nodes),
        **plain(stage),
    }


def comparison_object(found: Comparison, environment: dict[str, Any]) -> dict[str, Any]:
    """The contract of `compare --format json`: `rows`, `steps`, `findings`, and their setting."""
    return {"environment": environment, **plain(found)}


def comparison_csv(found: Comparison) -> str:
    """One line for each row and batch size, for a spreadsheet."""
    out = io.StringIO()
    names = [item.name for item in fields(Row)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["data", "partial", "batch_size", "traced_steps", *names, "ns_per_image"])
    partial = found.interrupted or found.failure is not None
    for size, rows in found.tables.items():
        steps = found.steps[size]
        for row in rows:
            values = [cell_text(plain(getattr(row, name))) for name in names]
            each = row.self_ns / steps.images
            writer.writerow([found.data, partial, size, steps.steps, *values, each])
    return out.getvalue()


def cell_text(value: Any) -> Any:
    """A list in one cell; nothing where nothing is known."""
    return " ".join(value) if isinstance(value, list) else "" if value is None else value


def plain(value: Any) -> Any:
    """Records as dicts, tuples as lists, all the way down; live objects left out."""
    if is_dataclass(value):
        return {
            RENAMED.get(item.name, item.name): plain(getattr(value, item.name))
            for item in fields(value)
            if item.name not in LIVE | LONG
        }
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return value
