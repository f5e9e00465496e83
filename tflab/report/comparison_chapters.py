"""The chapters of comparisons: batch sizes and configurations."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.compare import CONFIGURATIONS, DEFAULT, view
from tflab.exporters import plots
from tflab.records.blocks import Column, Table
from tflab.records.measured import Comparison
from tflab.report import contents
from tflab.report.contents import TOP, Method, Part
from tflab.units import percent, plural, time
from tflab.views import execution


def configurations(comparison: Comparison, seconds: int) -> Iterator[Part]:
    """`seconds` is the time spent on comparing them."""
    names = tuple(dict.fromkeys(row.config for row in comparison.configs))
    if not names:
        yield "No configuration was compared with the default."
        return
    yield from execution.load_line(comparison.load)
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
    yield configurations_recipe(comparison, names, seconds)


def configurations_recipe(comparison: Comparison, names: tuple[str, ...], seconds: int) -> Method:
    number = min(row.verdict.observations for row in comparison.configs if row.verdict)
    others = " ".join(name for name in names if name != DEFAULT)
    return Method(
        f"The comparison has {plural(number, 'observation')}, each in new processes that take "
        f"turns. After {plural(seconds, 'second')} no new observation started, except those that "
        "a verdict requires. The command takes longer and shows more.",
        f"{contents.comparing(comparison)} --configs {others}",
    )


def batch_sizes(comparison: Comparison) -> Iterator[Part]:
    yield table(comparison)
    yield contents.picture("batch_sizes", plots.batch_sizes.draw, comparison)
    if len(comparison.batch_sizes) > 1:
        yield view.side_by_side(comparison, TOP)
    yield from view.findings(comparison)
    yield view.steps(comparison)
    yield view.units(comparison)
    yield from view.cold(comparison)
    yield contents.swept(comparison)


def table(comparison: Comparison) -> Table:
    """One row for each batch size, with what was found at it."""
    steps = comparison.steps

    def rate(size: int) -> str:
        return f"{steps[size].mean_images_per_second:,.0f}"

    return Table(
        f"{comparison.model}, {comparison.phase}: findings at each batch size",
        (
            Column("batch", lambda size: str(size), right=True),
            Column("a step, median", lambda size: time(steps[size].untraced_ns.median), right=True),
            Column("mean", lambda size: view.mean_step(size, steps[size]), right=True),
            Column(f"{comparison.unit}s a second", rate, right=True),
            Column("found", lambda size: finding_at(comparison, size), elastic=True),
        ),
        comparison.batch_sizes,
    )


def finding_at(comparison: Comparison, size: int) -> str:
    """`_FusedConv2D takes 41.0 % of the op time, 158 us a call; a step takes 2.3 x as long ...`"""
    rows = [row for row in comparison.rows if size in row.cells]
    largest = max(rows, key=lambda row: row.cells[size].share)
    cell = largest.cells[size]
    words = (
        f"{largest.key} takes {percent(cell.share)} of the op time, {time(cell.mean_ns)} a call on "
        "average"
    )
    before = max((smaller for smaller in comparison.batch_sizes if smaller < size), default=None)
    if before is None:
        return words
    longer = comparison.steps[size].untraced_ns.median / comparison.steps[before].untraced_ns.median
    return (
        f"{words}; {size / before:g} x the {comparison.unit}s of batch {before} take {longer:.1f} "
        "x as long (medians)"
    )
