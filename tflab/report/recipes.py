"""Recipes: how often it was measured, and the commands that repeat it."""

from __future__ import annotations

from dataclasses import replace

from tflab.records import Comparison, Execution
from tflab.report.contents import Chapter, Recipe, Walked
from tflab.units import plural


def warm(step: Execution) -> str:
    return (
        f"{plural(step.steps, 'untraced step')} and as many traced ones, alternating, after "
        f"{plural(step.warmup_steps, 'warm-up step')} of each; batch size {step.batch_size}."
    )


def walking(walked: Walked) -> str:
    return f"python -m tflab.lifecycle --model {walked.model} --steps {walked.execution.steps}"


def swept(comparison: Comparison) -> Recipe:
    rows = max(step.images for step in comparison.steps.values())
    return Recipe(
        f"{plural(rows, comparison.unit)} of {comparison.data} at each batch size, untraced and "
        f"traced steps alternate; the first {comparison.warmup} steps of each are not counted.",
        f"python -m tflab.compare --model {comparison.model} "
        f"--batch-sizes {' '.join(map(str, comparison.batch_sizes))}",
    )


SOFTLY = " --soft-placement"


def with_soft_placement(chapter: Chapter) -> Chapter:
    """The chapter of a model that runs nowhere without it: each command needs it, too."""
    parts = (
        replace(part, command=part.command.replace("\n", f"{SOFTLY}\n") + SOFTLY)
        if isinstance(part, Recipe)
        else part
        for part in chapter.parts
    )
    return replace(chapter, parts=tuple(parts))
