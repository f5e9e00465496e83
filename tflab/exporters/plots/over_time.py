"""Over time: the untraced step and the rows that cost most, from measurement to measurement."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from tflab.exporters.plots import label_placement, style
from tflab.exporters.plots.batch_sizes import LOOKS, STEP, curve
from tflab.records.measurements import OverTime, TimeLine
from tflab.units import plural
from tflab.views.abreast import ratio_text

PANEL = 3.0  # inches for each batch size
LETTERS = 28  # of the name of a line
NAMED = 8  # measurements at most that are named below the axis


@style.applied()
def draw(series: OverTime) -> Figure:
    """A panel for each batch size: every line from measurement to measurement, with its intervals.

    The axis of time is logarithmic, so that a tenth more looks the same everywhere. Measurements
    have equal distances, whenever they were made.
    """
    sizes = list(dict.fromkeys(line.batch_size for line in series.lines if any(line.points)))
    if not sizes:
        return style.message(
            "Nothing was measured", "No measurement was repeated in several processes."
        )
    figure, panels = style.canvas(headline(series), caption(series), PANEL * len(sizes), len(sizes))
    labels = []
    for axes, size in zip(panels, sizes, strict=True):
        lines = [line for line in series.lines if line.batch_size == size and any(line.points)]
        names = style.distinct_names([line.name for line in lines], LETTERS)
        drawn = zip(lines, names, (STEP, *LOOKS), strict=False)
        labels.append([curve_with_intervals(axes, *line) for line in drawn])
        axes.set_ylabel(f"a step at batch {size:,}")
        style.log_times(axes)
        axes.grid(axis="y")
        axes.set_xlim(-0.3, len(series.when) - 0.7)
        places = range(0, len(series.when), -(-len(series.when) // NAMED))
        axes.set_xticks(list(places), [date_over_time(series.when[place]) for place in places])
    style.settle(figure)
    for axes, names_of in zip(panels, labels, strict=True):
        label_placement.separate(axes, names_of)
    return figure


def curve_with_intervals(axes: Axes, line: TimeLine, name: str, look: tuple) -> Annotation:
    points = {place: point for place, point in enumerate(line.points) if point}
    label = curve(axes, name, {place: point.ns for place, point in points.items()}, look)
    color, *_ = look
    for place, point in points.items():
        if isfinite(point.high_ns) and point.low_ns > 0:
            axes.plot([place, place], [point.low_ns, point.high_ns], color=color, linewidth=1.2)
    return label


def date_over_time(when: str) -> str:
    """The day and, below it, the time: `2026-03-01` and `12:00`."""
    day, _, clock = when.partition("T")
    return f"{day}\n{clock[:5]}"


def headline(series: OverTime) -> str:
    """The verdict on the latest measurement of the step."""
    model = style.short_name(series.contrast.model)
    parts = [
        f"{ratio_text(line.verdict)} at batch {line.batch_size:,}"
        for line in steps(series.lines)
        if line.verdict
    ]
    if not parts:
        return f"A step of {model} in {plural(len(series.when), 'measurement')}"
    latest, first = map(
        style.short_name, (series.measurements[-1], series.contrast.measurements[0])
    )
    return f"A step of {model}, '{latest}' against '{first}': {'; '.join(parts)}"


def steps(lines: Sequence[TimeLine]) -> list[TimeLine]:
    """Of each batch size the first line, which is that of the step."""
    return list({line.batch_size: line for line in reversed(lines)}.values())[::-1]


def caption(series: OverTime) -> str:
    contrast = series.contrast
    return (
        f"{style.short_name(contrast.model)}, {contrast.phase}. Step: untraced. Others: the time "
        f"that a traced step spends in each {contrast.by}, for at most the {len(LOOKS)} largest. "
        "Each point is the mean of several processes. Its bar is the 99 % interval of the mean "
        "over processes. Times in UTC."
    )
