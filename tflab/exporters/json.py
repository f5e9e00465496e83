"""JSON: the contracts that other programs may rely on.

A record becomes an object of its fields. A field's metadata gives another key, if its name is a
keyword of Python, or says that JSON omits it, because it is live or is written to files:
`field(metadata={"json": "from"})`, `field(metadata={"json": None})`.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tflab.records.graph import edge_count
from tflab.records.measured import Comparison, OpStats
from tflab.records.measurements import Contrast
from tflab.records.node_history import NodeHistory
from tflab.records.stages import Stage
from tflab.records.watched import Watched
from tflab.views import stages as views

# What is written of op statistics: the field that contains them -> key -> attribute of OpStats
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
SPENT = {name: name for name in ("forward_ns", "backward_ns", "update_ns")}  # by phase
ADDED = (
    "image_ns",
    "code",
    "step_median_ns",
    *SPENT,
)  # after the others, which keep their places
ROW = {item.name: item.name for item in fields(OpStats) if item.name not in ADDED}
MEDIAN = {"step_median_ns": "step_median_ns"}
OP_STATS: Mapping[str, Mapping[str, str]] = {
    "top_ops": TOTALS,
    "top_types": TOTALS,
    "cold": TOTALS,
    "cells": CELL | SPENT,
    "tables": ROW | {"code": "code"} | MEDIAN | SPENT,
    "times": ROW,
    "csv": ROW | {"ns_per_image": "image_ns", "code": "code"} | MEDIAN | SPENT,
}
PAIRED = ("times",)  # mappings that are written as a list of pairs


def document(**parts: Any) -> str:
    """One object of these parts."""
    return json.dumps(plain(parts), indent=1, allow_nan=False)


def stages(
    model: str, environment: dict[str, Any], stages: Sequence[Stage], error: str | None = None
) -> str:
    """One object: `model`, `environment`, `stages` in their order; `error` if one failed."""
    parts = {"model": model, "environment": environment, "stages": list(map(stage_object, stages))}
    return document(**parts, **({} if error is None else {"error": error}))


def stage_object(stage: Stage) -> dict[str, Any]:
    return {
        "stage": views.name(stage),
        "node_count": len(stage.nodes),
        "edge_count": edge_count(stage.nodes),
        **plain(stage),
    }


def comparison(comparison: Comparison, environment: dict[str, Any]) -> str:
    """The contract of `compare --format json`: `rows`, `steps`, `findings`, and their setting."""
    return document(environment=environment, **plain(comparison))


def contrast(contrast: Contrast, environments: Mapping[str, Any]) -> str:
    """The contract of `compare FILE FILE --format json`: `steps` and `rows` of each measurement."""
    return document(environments=environments, **plain(contrast))


def node_history(model: str, environment: dict[str, Any], history: NodeHistory) -> str:
    """The contract of `follow --format json`: all that is known of one node."""
    return document(model=model, environment=environment, life=history)


def watched(seen: Watched) -> str:
    """The contract of `run --format json`: the groups of runs, the ledger, and the lines."""
    return document(**plain(seen))


def op_stats(row: OpStats, within: str) -> dict[str, Any]:
    """What is written of a row, which depends on the field that contains it; a single row is
    written as in tables."""
    names = OP_STATS.get(within, ROW)
    return {key: plain(getattr(row, name)) for key, name in names.items()}


def plain(value: Any, within: str = "tables") -> Any:
    """Records as dicts, tuples as lists, at all depths, without live objects.

    `within` is the field of a record that the value comes from.
    """
    record: Any = type(value)
    if isinstance(value, OpStats):
        return op_stats(value, within)
    if is_dataclass(value):
        return {key: plain(getattr(value, name), name) for name, key in keys(record)}
    if isinstance(value, tuple | list):
        return [plain(item, within) for item in value]
    if isinstance(value, dict) and within in PAIRED:
        return [[key, plain(item, within)] for key, item in value.items()]
    if isinstance(value, dict):
        return {str(key): plain(item, within) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return value


@functools.cache
def keys(record: Any) -> tuple[tuple[str, str], ...]:
    """The fields of a record class that are written, with their keys."""
    named = ((item.name, item.metadata.get("json", item.name)) for item in fields(record))
    return tuple((name, key) for name, key in named if key is not None)
