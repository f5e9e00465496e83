"""JSON: the contracts that other programs may rely on.

A record becomes an object of its fields. A field's metadata gives another key, if its name is a
keyword of Python, or says that JSON omits it, because it is live or is written to files:
`field(metadata={"json": "from"})`, `field(metadata={"json": None})`. A mapping of keys says that
the fields of a record are written in its place.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from tflab.records import codec
from tflab.records.graph import edge_count
from tflab.records.measured import Comparison, OpStats
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
    return rows_in_lines(parts | ({} if error is None else {"error": error}))


ROWS = 4  # depth of nodes, op runs and other rows in the object of all stages


def rows_in_lines(value: Any, depth: int = 0) -> str:
    """Return JSON with a row in a line: thousands of steps have a million op runs, and without line
    breaks these take a third of the space and of the time."""
    if depth == ROWS or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, allow_nan=False)
    begin = "\n" + " " * (depth + 1)
    if isinstance(value, list):
        items = (rows_in_lines(item, depth + 1) for item in value)
        return f"[{begin}{f',{begin}'.join(items)}\n{' ' * depth}]"
    pairs = (f"{json.dumps(key)}: {rows_in_lines(item, depth + 1)}" for key, item in value.items())
    return f"{{{begin}{f',{begin}'.join(pairs)}\n{' ' * depth}}}"


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


def node_history(model: str, environment: dict[str, Any], history: NodeHistory) -> str:
    """The contract of `follow --format json`: all that is known of one node."""
    return document(model=model, environment=environment, life=history)


def watched(seen: Watched) -> str:
    """The contract of `run --format json`: the groups of runs, the ledger, and the lines."""
    return document(**plain(seen))


def plain(
    value: Any, within: str = "tables", text: Callable[[str], str] = lambda text: text
) -> Any:
    """Records as dicts, tuples as lists, at all depths, without live objects.

    `within` is the field that contains the value: what is written of op statistics depends on it.
    `text` is called for each text.
    """
    return codec.encoded(value, parts, within, text)


def parts(record: Any, within: str) -> codec.Parts:
    """What is written of a record in this field of another."""
    if isinstance(record, OpStats):
        names = OP_STATS.get(within, ROW).items()
        return ((key, name, getattr(record, name)) for key, name in names)
    return list(fields_written(record))


def fields_written(record: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield key, name and value of each field. A field whose key is a mapping has its own fields
    written in its place, with these keys, or nothing if it is None."""
    kind: Any = type(record)
    for name, key in keys(kind):
        if isinstance(key, str):
            yield key, name, paired(record, name)
        elif inner := getattr(record, name):
            for own_key, own, value in fields_written(inner):
                yield key.get(own_key, own_key), own, value


def paired(record: Any, name: str) -> Any:
    value = getattr(record, name)
    return tuple(value.items()) if name in PAIRED else value


@functools.cache
def keys(record: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a record class that are written, with their keys."""
    named = ((item.name, item.metadata.get("json", item.name)) for item in fields(record))
    return tuple((name, key) for name, key in named if key is not None)
