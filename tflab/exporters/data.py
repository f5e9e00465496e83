"""Data for other programs: the JSON contract of `lifecycle --format json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from tflab.records import Backward, Execution, Frontend, Placement, Stage, edge_count

NAMES = {Frontend: "frontend", Backward: "backward", Placement: "placement", Execution: "execution"}
# What only means something inside this process, or is too long and goes to files
LIVE = {"program", "user_nodes", "partition_graphs", "traces", "listings"}
# Words that Python keeps for itself
RENAMED = {"from_device": "from", "to_device": "to", "old": "from", "new": "to"}


def as_object(
    model: str, environment: dict[str, Any], stages: Sequence[Stage], error: str | None = None
) -> dict[str, Any]:
    """One object: `model`, `environment`, `stages` in their order; `error` if one failed."""
    found = {"model": model, "environment": environment, "stages": list(map(stage_object, stages))}
    return found if error is None else found | {"error": error}


def stage_object(stage: Stage) -> dict[str, Any]:
    return {
        "stage": NAMES[type(stage)],
        "node_count": len(stage.nodes),
        "edge_count": edge_count(stage.nodes),
        **plain(stage),
    }


def plain(value: Any) -> Any:
    """Records as dicts, tuples as lists, all the way down; live objects left out."""
    if is_dataclass(value):
        return {
            RENAMED.get(item.name, item.name): plain(getattr(value, item.name))
            for item in fields(value)
            if item.name not in LIVE
        }
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no word for it
    return value
