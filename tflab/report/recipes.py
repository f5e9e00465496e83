"""Recipes: how often it was measured, and the commands that repeat it."""

from __future__ import annotations

from tflab.records import Comparison, Execution
from tflab.report.contents import Recipe, Walked
from tflab.units import plural


def warm(step: Execution) -> str:
    return (
        f"{plural(step.steps, 'untraced step')} and as many traced ones in turn, after "
        f"{plural(step.warmup_steps, 'warm-up step')} of each; batch size {step.batch_size}."
    )


def walking(walked: Walked) -> str:
    return f"python -m tflab.lifecycle --model {walked.model} --steps {walked.execution.steps}"


def swept(comparison: Comparison) -> Recipe:
    images = max(step.images for step in comparison.steps.values())
    return Recipe(
        f"{plural(images, 'image')} of {comparison.data} at each batch size, untraced and traced "
        f"in turn; the first {comparison.warmup} steps of each are not counted.",
        f"python -m tflab.compare --model {comparison.model} "
        f"--batch-sizes {' '.join(map(str, comparison.batch_sizes))}",
    )
