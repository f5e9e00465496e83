"""The chapter of configurations: the same step with one setting of the runtime changed."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.compare import view
from tflab.compare.configurations import CONFIGURATIONS, DEFAULT
from tflab.records import Comparison
from tflab.records.blocks import Column, Table
from tflab.report.contents import Part, Recipe
from tflab.units import plural
from tflab.views import execution


def parts(comparison: Comparison, seconds: int) -> Iterator[Part]:
    """`seconds` is for how long they were compared."""
    names = tuple(dict.fromkeys(row.config for row in comparison.configs))
    if not names:
        yield "No configuration was compared with the default."
        return
    yield from execution.busy(comparison.quality)
    yield (
        f"An untraced step of {comparison.phase}, with the runtime's defaults and with one "
        f"setting changed. All use the same weights and {comparison.unit}s."
    )
    yield Table(
        "What was changed",
        (
            Column("configuration", lambda name: name),
            Column("what it means", lambda name: CONFIGURATIONS[name].about, elastic=True),
        ),
        names,
    )
    yield from view.configs(comparison)
    yield recipe(comparison, names, seconds)


def recipe(comparison: Comparison, names: tuple[str, ...], seconds: int) -> Recipe:
    number = min(row.verdict.observations for row in comparison.configs if row.verdict)
    others = " ".join(name for name in names if name != DEFAULT)
    sizes = " ".join(map(str, comparison.batch_sizes))
    return Recipe(
        f"{plural(number, 'observation')}, each in new processes that take turns. After "
        f"{plural(seconds, 'second')} none started, except those that a verdict requires. The "
        "command takes longer and shows more.",
        f"python -m tflab.compare --model {comparison.model} --batch-sizes {sizes} "
        f"--configs {others}",
    )
