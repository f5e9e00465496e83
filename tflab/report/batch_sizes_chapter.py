"""The chapter of batch sizes: what was found at each, then all that was compared."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.analysis import quality
from tflab.compare import view
from tflab.exporters import plots
from tflab.records import Comparison
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.report import pictures, recipes
from tflab.report.contents import TOP, Part
from tflab.units import percent, time


def parts(comparison: Comparison) -> Iterator[Part]:
    yield table(comparison)
    yield pictures.picture("batch_sizes", plots.batch_sizes.draw, comparison)
    if len(comparison.batch_sizes) > 1:
        yield view.side_by_side(comparison, TOP)
    if comparison.findings:
        yield Strip(
            f"Findings, computed from the tables{quality.mark(comparison.quality)}",
            (Frame("", "", comparison.findings),),
        )
    yield view.steps(comparison)
    yield view.units(comparison)
    yield view.cold(comparison)
    yield recipes.swept(comparison)


def table(comparison: Comparison) -> Table:
    """One row for each batch size, and what was found there."""

    def step(size: int) -> float:
        return comparison.steps[size].untraced_ns.median

    def mean(size: int) -> str:
        return view.mean_step(size, comparison.steps[size])

    def rate(size: int) -> str:
        return f"{comparison.steps[size].mean_images_per_second:,.0f}"

    return Table(
        f"{comparison.model}, {comparison.phase}: findings at each batch size",
        (
            Column("batch", lambda size: str(size), right=True),
            Column("a step, median", lambda size: time(step(size)), right=True),
            Column("mean", mean, right=True),
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
    if before is None or quality.disturbed(comparison.quality):
        return words
    longer = comparison.steps[size].untraced_ns.median / comparison.steps[before].untraced_ns.median
    return (
        f"{words}; {size / before:g} x the {comparison.unit}s of batch {before} take {longer:.1f} "
        "x as long (medians)"
    )
