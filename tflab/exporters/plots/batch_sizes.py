"""Batch sizes: the cost of an op per step and per row, at each batch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tflab.exporters import fitting
from tflab.exporters.plots import style
from tflab.records.measured import Compared, Comparison
from tflab.units import plural, three_digits

# Colour, marker and dashes of each line
LOOKS = (
    (style.BLUE, "o", "-"),
    (style.VERMILION, "s", "--"),
    (style.GREEN, "^", "-."),
    (style.PURPLE, "D", (0, (5, 1))),
    (style.ORANGE, "v", (0, (3, 1, 1, 1))),
    (style.SKY, "P", ":"),
)
STEP = (style.BLACK, "X", "-")  # of the whole step

Line = tuple[str, Mapping[int, float], tuple[Any, ...]]  # name, ns by batch size, look


@style.applied()
def draw(comparison: Comparison) -> Figure:
    """The most expensive rows of the table and the step: above the time per step, below the time
    per row of the data, such as an image.

    An op's time is its self time (mean over the traced steps), the step's is the median of the
    untraced ones. Both axes are logarithmic: a time that doubles with the batch is a straight line.
    """
    if not comparison.steps:
        return style.message("Nothing was measured", "No batch size has a complete step.")
    figure, panels = style.canvas(headline(comparison), caption(comparison), 6.8, panels=2)
    for axes, unit in zip(panels, ("step", comparison.unit), strict=True):
        for name, times, (color, marker, dashes) in lines(comparison, unit):
            axes.plot(
                sorted(times),
                [times[size] for size in sorted(times)],
                label=name,
                color=color,
                marker=marker,
                linestyle=dashes,
                linewidth=1.6,
                markeredgecolor="white",
            )
        axes.set_ylabel(f"time per {unit}")
        axes.set_xscale("log")
        style.logarithmic(axes, style.time_tick)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(list(comparison.steps), [f"{size:,}" for size in comparison.steps])
        axes.grid(axis="y")
    panels[1].set_xlabel("batch size")
    # Without these names it would leave out those that begin with an underscore.
    names = [name for name, *_ in lines(comparison, "step")]
    panels[1].legend(
        panels[1].lines, names, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=3
    )
    return style.settled(figure)


def lines(comparison: Comparison, unit: str) -> list[Line]:
    """Return the step, and the rows with the largest share at any batch size, in ns per step or per
    row of the data."""
    steps = comparison.steps
    part = {size: 1 if unit == "step" else size for size in steps}
    drawn: list[Line] = [
        ("whole step", {size: steps[size].untraced_ns.median / part[size] for size in steps}, STEP)
    ]
    rows = most_expensive(comparison)[: len(LOOKS)]
    names = style.distinct_names([row.key for row in rows], 24)
    for row, name, look in zip(rows, names, LOOKS, strict=False):
        times = {
            size: stats.total_ns / steps[size].steps if unit == "step" else stats.image_ns or 0
            for size, stats in row.cells.items()
            if stats.total_ns  # 0 has no logarithm
        }
        drawn.append((name, times, look))
    return drawn


def most_expensive(comparison: Comparison) -> list[Compared]:
    share = {
        row.key: max((stats.share for stats in row.cells.values()), default=0.0)
        for row in comparison.rows
    }
    return sorted((row for row in comparison.rows if share[row.key]), key=lambda r: -share[r.key])


def headline(comparison: Comparison) -> str:
    sizes = list(comparison.steps)
    first, last = (comparison.steps[size].untraced_ns.median for size in (sizes[0], sizes[-1]))
    if len(sizes) == 1:
        name = fitting.short_name(comparison.model, 30)
        return f"{name} at batch {sizes[0]:,}, the only one measured"
    return (
        f"From batch {sizes[0]:,} to {sizes[-1]:,}, a step takes {three_digits(last / first)} x as "
        f"long, one {comparison.unit} {three_digits(last / sizes[-1] / (first / sizes[0]))} x"
    )


def caption(comparison: Comparison) -> str:
    shown = min(len(LOOKS), len(most_expensive(comparison)))
    partial = " The measurement did not finish." if comparison.partial else ""
    return (
        f"{fitting.short_name(comparison.model, 30)}, {comparison.phase}, {comparison.data}. Whole "
        f"step: untraced, median. Others: self time of the {plural(shown, 'row')} by "
        f"{comparison.by} with the largest share. A level line in the lower panel means that a "
        f"larger batch saves nothing.{partial}"
    )
