"""Batch sizes: the cost of an op per step and per row, at each batch size."""

from __future__ import annotations

import re

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from tflab.escaping import visible
from tflab.exporters import fitting
from tflab.exporters.plots import style
from tflab.records.measured import Compared, Comparison
from tflab.units import plural, three_digits, time

ZEROS = re.compile(r"\.0+(?= )")  # decimals of a tick that say nothing

# Colour, marker and dashes of each line; the first are those of the whole step
LOOKS = (
    (style.BLACK, "X", "-"),
    (style.BLUE, "o", "-"),
    (style.VERMILION, "s", "--"),
    (style.GREEN, "^", "-."),
    (style.PURPLE, "D", (0, (5, 1))),
    (style.ORANGE, "v", (0, (3, 1, 1, 1))),
    (style.SKY, "P", ":"),
)


@style.applied()
def draw(comparison: Comparison) -> Figure:
    """Draw the step and the rows with the largest share: above the time per step, below the time
    per row of the data. Both axes are logarithmic."""
    steps = comparison.steps
    if not steps:
        return style.message("Nothing was measured", "No batch size has a complete step.")

    def share(row: Compared) -> float:
        return max((cell.share for cell in row.cells.values()), default=0.0)

    # As many as can be drawn
    rows = sorted(filter(share, comparison.rows), key=share, reverse=True)[: len(LOOKS) - 1]
    by = "op type" if comparison.by == "op" else comparison.by
    about = (
        f"{fitting.middle_cut(comparison.model, 30)}: steps of {comparison.phase} on "
        f"{comparison.data}. All times are means. Whole step: untraced. Others, traced: the "
        f"{plural(len(rows), by)} with the largest share. A level line in the lower panel means "
        "that a larger batch saves nothing."
    )
    about += " The measurement did not finish." * comparison.partial
    means = {size: row.mean_step_ns for size, row in steps.items()}
    small, large = min(steps), max(steps)
    rate = steps[large].mean_images_per_second / steps[small].mean_images_per_second
    title = (
        f"From batch size {small:,} to {large:,}: {three_digits(means[large] / means[small])} x "
        f"the time of a step, {three_digits(rate)} x the {comparison.unit}s a second"
    )
    of_small, of_large = steps[small].untraced_ns, steps[large].untraced_ns
    if small == large:
        title = f"Only batch size {small:,} was measured"
    elif max(of_small.p10, of_large.p10) <= min(of_small.p90, of_large.p90):
        title = f"The times of steps at batch size {small:,} and {large:,} overlap (p10 to p90)"
    figure, panels = style.canvas(title, about, 6.8, panels=2)
    times = {"whole step": means}
    names = [fitting.wrapped(visible(row.key), 24) for row in rows]
    for name, row in zip(names, rows, strict=True):
        ran = {size: cell.total_ns / steps[size].steps for size, cell in row.cells.items()}
        times[name] = {size: ns for size, ns in ran.items() if ns}  # 0 has no logarithm
    for axes, unit in zip(panels, ("step", comparison.unit), strict=True):
        for by_size, (color, marker, dashes) in zip(times.values(), LOOKS, strict=False):
            of_step = unit == "step"
            points = sorted((n, ns if of_step else ns / n) for n, ns in by_size.items())
            line = axes.plot(*zip(*points, strict=True), color=color, marker=marker)[0]
            line.set(linestyle=dashes, markeredgecolor="white")
        axes.set_ylabel(f"time per {unit}")
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = axes.get_ylim()  # a tick at each power of ten, or at more within two of them
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda ns, _: ZEROS.sub("", time(ns))))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(list(steps), [f"{size:,}" for size in steps])
        axes.grid(axis="y")
    panels[1].set_xlabel("batch size")
    legend = panels[1].legend(panels[1].lines, list(times), loc="upper center", ncols=3)
    legend.set_bbox_to_anchor((0.5, -0.25), panels[1].transAxes)
    return style.settled(figure)
