"""JSON: the contracts that other programs may rely on.

A record becomes an object of its fields. A field's metadata gives another key, if its name is a
keyword of Python, or says that JSON omits it, because it is live or is written to files:
`field(metadata={"json": "from"})`, `field(metadata={"json": None})`. A mapping of keys says that
the fields of a record are written in its place.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from tflab.records import codec
from tflab.records.graph import edge_count
from tflab.records.measured import OpStats
from tflab.records.stages import Stage

SPENT = ("forward_ns", "backward_ns", "update_ns")  # by phase
# Without the median, which is one only of a row of a single node
ROW = {item.name: item.name for item in fields(OpStats) if item.name != "median_ns"}
TOTALS = {"name": "key"} | {name: name for name in ("op", "calls", "total_ns", "mean_ns", "share")}
CELL = {name: name for name in ("calls", "total_ns", "mean_ns", "share", "gflops", *SPENT)} | {
    "ns_per_image": "image_ns",
    "bytes": "requested_bytes",
}
# What is written of the OpStats in a field, by key; a field that is not listed has those of ROW.
OP_STATS = {"top_ops": TOTALS, "cells": CELL}


def document(**parts: object) -> str:
    """Return these parts as one JSON object: what a command prints with `--format json`."""
    return json.dumps(plain(parts), indent=1, allow_nan=False)


def stages(
    model: str, environment: Mapping[str, object], stages: Iterable[Stage], error: str | None = None
) -> str:
    """Return one object: `model`, `environment`, `stages` in order; `error` if one failed."""
    failed = {} if error is None else {"error": error}
    every = list(map(stage_object, stages))
    return document(model=model, environment=environment, stages=every, **failed)


def stage_object(stage: Stage) -> dict[str, object]:
    from tflab.views import stages as views  # a watched program has none

    counts = {"node_count": len(stage.nodes), "edge_count": edge_count(stage.nodes)}
    return {"stage": views.name(stage), **counts, **plain(stage)}


def plain(value: Any, within: str = "", text: Callable[[str], str] = lambda text: text) -> Any:
    """Return records as dicts, tuples as lists, at all depths, without live objects. `within` is
    the field that contains the value; `text` is called for each text."""
    return codec.encoded(value, parts, within, text)


def parts(record: Any, within: str) -> codec.Parts:
    """Yield key, name and value of each field of a record that JSON has. `within` is the field of
    another record that holds it. If a key is a mapping, the fields of that field take its place."""
    if isinstance(record, OpStats):
        for key, name in OP_STATS.get(within, ROW).items():
            yield key, name, getattr(record, name)
        return
    kind: Any = type(record)
    for name, key in keys(kind):
        value = getattr(record, name)
        if isinstance(key, str):
            yield key, name, value
        elif value:
            for own_key, own, part in parts(value, name):
                yield key.get(own_key, own_key), own, part


@functools.cache
def keys(record: Any) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a record class that are written, with their keys."""
    named = ((item.name, item.metadata.get("json", item.name)) for item in fields(record))
    return tuple((name, key) for name, key in named if key is not None)
