"""Selection: the chapters that a report may have, and what has to be measured for each.

A wrong name is refused before anything is imported.
"""

from __future__ import annotations

from collections.abc import Sequence

TOY = "toy"
FORMULA = "x*y + z"  # what a reader calls it
# Compared where none is named: fewer processors, and the same work by another library
CONFIGS = ("one-thread", "no-onednn")
CONFIGS_S = 60  # for comparing them: enough to see most of what is a tenth slower

# chapter -> what is measured for it: the graphs first, then times, and what is looked up last.
# "sweep" is the inference at several batch sizes; it also says whether the machine was quiet.
NEEDS = {
    "toy": ("toy", "histories"),
    "devices": ("toy", "two devices"),
    "graph": ("walk", "histories"),
    "network": ("walk",),
    "training": ("training",),
    "slow": ("sweep",),
    "ops": ("walk", "experiments", "sweep"),
    "batch-sizes": ("sweep",),
    "configurations": ("sweep", "configurations"),
    "elsewhere": ("sweep", "processes"),  # only where there are measurements to compare with
    "times": ("walk",),
    "memory": ("walk",),
    "roofline": ("sweep",),
    "tasks": ("tasks",),  # only where there are tasks to run on
    "environment": (),
    "methods": (),
}
CHAPTERS = tuple(NEEDS)
REFERENCE = ("configurations", "memory", "roofline", "environment", "methods")  # folded
ELSEWHERE, TASKS = "elsewhere", "tasks"


def chosen(names: Sequence[str], model: str) -> tuple[str, ...]:
    """The chapters in their order, each once; the graph of x*y + z itself has one chapter."""
    own = {"graph": "toy"} if model == TOY else {}
    wanted = {own.get(name, name) for name in names or CHAPTERS}
    return tuple(name for name in CHAPTERS if name in wanted)


def called(model: str) -> str:
    """What a reader calls a model."""
    return FORMULA if model == TOY else model


def needs(names: Sequence[str], model: str) -> frozenset[str]:
    """What has to be measured for these chapters of a report on this model."""
    parts = {part for name in names for part in NEEDS[name]}
    if model == TOY and "walk" in parts:
        parts.add("toy")
    return frozenset(parts)
