"""Batch sizes: the cost of an op per step and per row, at each batch size."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import NullLocator

from tflab.exporters import fitting
from tflab.exporters.plots import label_placement, style
from tflab.records.measured import Compared, Comparison
from tflab.units import plural

# Colour, marker, the marker as a letter, and dashes of each line
LOOKS = (
    (style.BLUE, "o", "●", "-"),
    (style.VERMILION, "s", "■", "--"),
    (style.GREEN, "^", "▲", "-."),
    (style.PURPLE, "D", "◆", (0, (5, 1))),
    (style.ORANGE, "v", "▼", (0, (3, 1, 1, 1))),
    (style.SKY, "P", "✚", ":"),
)
STEP = (style.BLACK, "X", "✖", "-")  # of the whole step

Line = tuple[str, Mapping[int, float], tuple]  # name, ns by batch size, look


@style.applied()
def draw(comparison: Comparison) -> Figure:
    """The most expensive rows of the table and the step: above the time per step, below the time
    per row of the data, such as an image.

    An op's time is its self time (mean over the traced steps), the step's is the median of the
    untraced ones. Both axes are logarithmic: a time that doubles with the batch is a straight line.
    """
    if not comparison.steps:
        return style.message("Nothing was measured", "No batch size has a complete step.")
    figure, panels = style.canvas(headline(comparison), caption(comparison), 6.6, panels=2)
    labels = []
    for axes, unit in zip(panels, ("step", comparison.unit), strict=True):
        labels.append([curve(axes, *line) for line in lines(comparison, unit)])
        axes.set_ylabel(f"time per {unit}")
        axes.set_xscale("log")
        style.log_times(axes)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(list(comparison.steps), [f"{size:,}" for size in comparison.steps])
        axes.grid(axis="y")
    panels[1].set_xlabel("batch size")
    style.settle(figure)
    for axes, names in zip(panels, labels, strict=True):
        label_placement.separate(axes, names)
    return figure


def lines(comparison: Comparison, unit: str) -> list[Line]:
    """The step, and the rows with the largest share at any batch size, in ns per step or per row of
    the data."""
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


def curve(axes: Axes, name: str, times: Mapping[int, float], look: tuple) -> Annotation:
    """A line of times by their places on the axis, with its name at the end."""
    color, marker, glyph, dashes = look
    places = sorted(times)
    axes.plot(
        places,
        [times[place] for place in places],
        color=color,
        marker=marker,
        linestyle=dashes,
        linewidth=1.6,
        markersize=6,
        markeredgecolor="white",
    )
    return label_placement.label(axes, (places[-1], times[places[-1]]), name, color, glyph)


def headline(comparison: Comparison) -> str:
    sizes = list(comparison.steps)
    first, last = (comparison.steps[size].untraced_ns.median for size in (sizes[0], sizes[-1]))
    if len(sizes) == 1:
        name = fitting.short_name(comparison.model, 30)
        return f"{name} at batch {sizes[0]:,}, the only one measured"
    return (
        f"From batch {sizes[0]:,} to {sizes[-1]:,}, a step takes {last / first:.2g} x as long, "
        f"one {comparison.unit} {last / sizes[-1] / (first / sizes[0]):.2g} x"
    )


def caption(comparison: Comparison) -> str:
    shown, rows = min(len(LOOKS), len(most_expensive(comparison))), len(comparison.rows)
    which = "that" if shown == 1 else "those"
    counted = f"{plural(shown, 'row')} of the {rows:,} by {comparison.by}, {which} with the largest"
    others = f"the only row by {comparison.by}" if shown == rows == 1 else f"{counted} share"
    partial = " The measurement did not finish." if comparison.partial else ""
    name = fitting.short_name(comparison.model, 30)
    return (
        f"{name}, {comparison.phase}, {comparison.data}. Whole step: untraced, median. Others: "
        f"self time of {others}. A level line in the lower panel means that a larger batch saves "
        f"nothing.{partial}"
    )
