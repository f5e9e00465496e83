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

# chapter -> its measurements, in the order of a report; "sweep" is inference at several batch sizes
NEEDS = {
    "lab": ("walk", "training", "sweep", "configurations"),
    "graph": ("walk", "histories"),
    "toy": ("toy", "histories"),
    "devices": ("two devices",),
    "network": ("walk",),
    "training": ("training",),
    "ops": ("walk", "experiments", "sweep"),
    "batch-sizes": ("sweep",),
    "slow": ("sweep",),
    "times": ("walk",),
    "configurations": ("sweep", "configurations"),
    "memory": ("walk",),
    "environment": (),
}
CHAPTERS = tuple(NEEDS)
ASKED = ("lab", "toy", "devices")  # chapters that a report has only if they are named
# chapters that are folded
REFERENCE = ("configurations", "memory", "environment")


def chosen(names: Sequence[str], model: str) -> tuple[str, ...]:
    """The chapters in order, each once; those of x*y + z are in its own report."""
    usual = [name for name in CHAPTERS if name not in ASKED]
    if model == TOY:
        wanted = {"graph" if name == "toy" else name for name in names or (*usual, "devices")}
    else:
        wanted = {*(names or usual)}
    return tuple(name for name in CHAPTERS if name in wanted)


def title_of(model: str) -> str:
    """The name of a model for readers."""
    return FORMULA if model == TOY else model


def needs(names: Sequence[str]) -> frozenset[str]:
    """The measurements for these chapters of a report."""
    return frozenset(part for name in names for part in NEEDS[name])
