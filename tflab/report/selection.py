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

# chapter -> the fields of a Lab that it needs, and what else they have to hold: histories with
# times at each batch size, experiments, configurations; in the order of a report
NEEDS = {
    "lab": ("walked", "history", "compared", "configurations"),
    "graph": ("walked", "histories"),
    "devices": ("toy_on_two",),
    "network": ("walked",),
    "training": ("history",),
    "ops": ("walked", "experiments"),
    "batch-sizes": ("compared",),
    "slow": ("compared",),
    "times": ("walked",),
    "configurations": ("compared", "configurations"),
    "memory": ("walked",),
    "environment": (),
}
CHAPTERS = tuple(NEEDS)
# Chapters that are folded
REFERENCE = ("configurations", "memory", "environment")


def chosen(names: Sequence[str], model: str) -> tuple[str, ...]:
    """Return the chapters in order, each once. Unless named, a report has no hand-in, and the two
    devices of x*y + z are in its own report."""
    usual = {*CHAPTERS} - ({"lab"} if model == TOY else {"lab", "devices"})
    return tuple(name for name in CHAPTERS if name in (names or usual))


def title_of(model: str) -> str:
    """Return the name of a model for readers."""
    return FORMULA if model == TOY else model


def needs(names: Sequence[str]) -> frozenset[str]:
    """Return what is measured for these chapters of a report."""
    return frozenset(part for name in names for part in NEEDS[name])
