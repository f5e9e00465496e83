"""A life by hand: three nodes in a scope, in one state."""

from typing import Any


def small_life() -> dict[str, Any]:
    return {
        "stage": "frontend",
        "graph": {
            "title": "toy",
            "nodes": [{"name": name} for name in ("x", "y", "mul")],
            "boxes": [
                {"label": "all", "parent": None, "rows": [[1], [[-1, 1], 2]]},
                {"label": "x", "parent": 0, "rows": []},
                {"label": "mul", "parent": 0, "rows": []},
            ],
            "states": [{"stage": "frontend", "title": "Built"}],
        },
        "parts": {
            "In short": [
                "A sentence.",
                {"table": "T", "columns": [["node", False]], "rows": [["mul"]], "more": 0},
            ]
        },
        "nodes": {"mul": ["forward", "Mul(x, y) -> float32 []", None]},
    }
