"""Data for other programs: the JSON contracts, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tflab.records import Comparison, OpStats, Stage, edge_count
from tflab.views import stages

# What only means something inside this process
LIVE = {"program", "user_nodes", "partition_graphs", "definitions"}
# What is too long and goes to files
LONG = {"listings"}
# Words that Python keeps for itself
RENAMED = {"from_device": "from", "to_device": "to", "old": "from", "new": "to"}
# Mappings whose contract is a list of pairs
PAIRED = {"times"}

# What is written of op statistics: the field that holds them -> key -> attribute of OpStats
TOTALS = {
    "name": "key",
    "op": "op",
    "calls": "calls",
    "total_ns": "total_ns",
    "self_ns": "self_ns",
    "mean_ns": "mean_ns",
    "share": "share",
}
CELL = {
    "calls": "calls",
    "total_ns": "total_ns",
    "mean_ns": "mean_ns",
    "ns_per_image": "image_ns",
    "share": "share",
    "bytes": "requested_bytes",
    "gflops": "gflops",
}
ROW = {
    "key": "key",
    "ops": "ops",
    "nodes": "nodes",
    "fused_from": "fused_from",
    "calls": "calls",
    "total_ns": "total_ns",
    "self_ns": "self_ns",
    "mean_ns": "mean_ns",
    "median_ns": "median_ns",
    "p95_ns": "p95_ns",
    "share": "share",
    "cumulative_share": "cumulative_share",
    "requested_bytes": "requested_bytes",
    "flops": "flops",
    "gflops": "gflops",
    "intensity": "intensity",
    "roof_share": "roof_share",
    "std_ns": "std_ns",
    "step_ns": "step_ns",
    "step_std_ns": "step_std_ns",
    "peak_bytes": "peak_bytes",
}
OP_STATS: Mapping[str, Mapping[str, str]] = {
    "top_ops": TOTALS,
    "top_types": TOTALS,
    "cold": TOTALS,
    "cells": CELL,
    "tables": ROW,
    "times": ROW,
    "csv": ROW | {"ns_per_image": "image_ns"},
}


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
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["data", "partial", "batch_size", "traced_steps", *OP_STATS["csv"]])
    partial = found.interrupted or found.failure is not None
    for size, rows in found.tables.items():
        for row in rows:
            values = map(cell_text, op_stats(row, "csv").values())
            writer.writerow([found.data, partial, size, found.steps[size].steps, *values])
    return out.getvalue()


def cell_text(value: Any) -> Any:
    """A list in one cell; nothing where nothing is known."""
    return " ".join(value) if isinstance(value, list) else "" if value is None else value


def op_stats(row: OpStats, within: str) -> dict[str, Any]:
    """What is written of a row, which depends on the field that it is within."""
    return {key: plain(getattr(row, name)) for key, name in OP_STATS[within].items()}


def plain(value: Any, within: str = "") -> Any:
    """Records as dicts, tuples as lists, all the way down; live objects left out.

    `within` is the field of a record that the value comes from.
    """
    if isinstance(value, OpStats):
        return op_stats(value, within)
    if is_dataclass(value):
        return {
            RENAMED.get(item.name, item.name): plain(getattr(value, item.name), item.name)
            for item in fields(value)
            if item.name not in LIVE | LONG
        }
    if isinstance(value, tuple | list):
        return [plain(item, within) for item in value]
    if isinstance(value, dict) and within in PAIRED:
        return [[key, plain(item, within)] for key, item in value.items()]
    if isinstance(value, dict):
        return {str(key): plain(item, within) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return value
