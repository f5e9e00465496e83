"""Selection: the chapters of a report, with the measurements that each needs.

A wrong name is refused before anything is imported.
"""

from __future__ import annotations

from collections.abc import Sequence

TOY = "toy"
FORMULA = "x*y + z"  # its name for readers
# Compared by default: fewer processors, and another library for the same work
CONFIGS = ("one-thread", "no-onednn")
CONFIGS_S = 60  # for comparing them: enough to notice most differences of a tenth

# chapter -> its measurements: graphs first, then times, then inspection.
# "sweep" is inference at several batch sizes.
NEEDS = {
    "toy": ("toy", "histories"),
    "devices": ("two devices",),
    "graph": ("walk", "histories"),
    "network": ("walk",),
    "training": ("training",),
    "slow": ("sweep",),
    "ops": ("walk", "experiments", "sweep"),
    "batch-sizes": ("sweep",),
    "configurations": ("sweep", "configurations"),
    "times": ("walk",),
    "memory": ("walk",),
    "environment": (),
    "methods": (),
}
CHAPTERS = tuple(NEEDS)
# chapters that are folded
REFERENCE = ("configurations", "memory", "environment", "methods")


def chosen(names: Sequence[str], model: str) -> tuple[str, ...]:
    """The chapters in order, each once; x*y + z, if it is the model, has one graph chapter."""
    own = {"graph": "toy"} if model == TOY else {}
    wanted = {own.get(name, name) for name in names or CHAPTERS}
    return tuple(name for name in CHAPTERS if name in wanted)


def title_of(model: str) -> str:
    """The name of a model for readers."""
    return FORMULA if model == TOY else model


def needs(names: Sequence[str], model: str) -> frozenset[str]:
    """The measurements for these chapters of a report on this model."""
    parts = {part for name in names for part in NEEDS[name]}
    if model == TOY and "walk" in parts:
        parts.add("toy")
    return frozenset(parts)
