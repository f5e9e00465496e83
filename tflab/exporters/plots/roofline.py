"""Roofline: how fast ops compute, against what the machine could do.

The model is that of Williams, Waterman and Patterson, with a roof for each cache (see
`tflab.analysis.roofline`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import atan2, cos, degrees, inf, sin, sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from tflab.analysis.roofline import bandwidth, roof
from tflab.exporters import fitting
from tflab.exporters.plots import label_placement, style
from tflab.records.measured import OpStats, Peaks
from tflab.units import percent, plural

MOST = 12  # names at most
NAME = 125  # points of a line of a name
# Where words may be placed at a part of the roof: points above it, and how far along it
HEIGHTS = (5.0, 17.0, 29.0)
ALONG = (0.5, 0.35, 0.65, 0.25, 0.75, 0.15, 0.85)
WIDE = 3 / 7  # of the other part, at least, so that either has room for its words
ROOM = HEIGHTS[0] + 1.3 * style.SMALL  # points between two slopes, for words between them
LETTER = 0.5 * style.SMALL  # points around the middle of a letter
SMALLEST, LARGEST = 5.0, 22.0  # diameters of points, in points


@style.applied()
def draw(rows: Sequence[OpStats], peaks: Peaks) -> Figure:
    """Each row at its intensity and speed, both logarithmic, below the roof; its area is its share.

    Rows whose FLOPs or bytes are unknown or 0 have no place and are counted. An op may come out
    above the roof: see `tflab.runtime.machine.benchmark` and `tflab.runtime.costs`.
    """
    shown_rows = sorted(filter(has_place, rows), key=lambda row: -row.self_ns)
    if not shown_rows:
        return style.message(
            "No op can be drawn below the roof",
            f"Of {plural(len(rows), 'row')} none has known FLOPs and bytes.",
        )
    slopes = cache_slopes(peaks)
    words = caption(rows, shown_rows, bool(slopes))
    figure, (axes,) = style.canvas(headline(shown_rows, peaks), words, 4.6)
    points = [(row.intensity or 0.0, row.gflops or 0.0) for row in shown_rows]
    set_axes(axes, peaks, slopes, points)
    draw_roof(axes, peaks)
    axes.scatter(
        [x for x, _ in points],
        [y for _, y in points],
        s=[diameter(row) ** 2 for row in shown_rows],
        color=style.SKY,
        edgecolor=style.BLUE,
        linewidth=1.2,
        zorder=3,
    )
    style.settle(figure)
    marks = [
        label_placement.LabelledPoint(x, y, diameter(row) / 2, name)
        for (x, y), row, name in zip(points, shown_rows, names(shown_rows), strict=True)
    ]
    slopes = slopes_with_room(axes, peaks, slopes)
    draw_slopes(axes, peaks, slopes)
    used_boxes = name_parts(axes, peaks, parts_of_roof(axes, peaks, slopes), marks)
    rates = (peaks.gigabytes_per_s, *(rate for _, rate in slopes))
    lines = [
        (x, min(peaks.gflops, x * rate))
        for rate in rates
        for x in np.geomspace(*axes.get_xlim(), 150)
    ]
    label_placement.place_labels(axes, marks, lines, used_boxes)
    return figure


def set_axes(
    axes: Axes,
    peaks: Peaks,
    slopes: Sequence[tuple[str, float]],
    points: Sequence[tuple[float, float]],
) -> None:
    """Logarithmic axes with all points, the ridge and the tops of the slopes between them."""
    ridge = peaks.gflops / peaks.gigabytes_per_s
    left = min(ridge, *(peaks.gflops / rate for _, rate in slopes), *(x for x, _ in points)) / 3
    right = max(ridge, *(x for x, _ in points)) * 4
    right = max(right, ridge * (ridge / left) ** WIDE)
    left = min(left, ridge / (right / ridge) ** WIDE)
    lowest = min(peaks.gflops, *(y for _, y in points)) / 3
    highest = max(peaks.gflops, *(y for _, y in points)) * 2
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(lowest, highest)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("intensity: FLOPs per byte of inputs and outputs")
    axes.set_ylabel("GFLOP/s")
    axes.grid()


def draw_roof(axes: Axes, peaks: Peaks) -> None:
    left, right = axes.get_xlim()
    axes.plot(
        (left, peaks.gflops / peaks.gigabytes_per_s, right),
        (roof(peaks, left), peaks.gflops, peaks.gflops),
        color=style.INK,
        linewidth=1.8,
    )


def draw_slopes(axes: Axes, peaks: Peaks, slopes: Sequence[tuple[str, float]]) -> None:
    """What each cache delivers."""
    left, _ = axes.get_xlim()
    for _, rate in slopes:
        top = peaks.gflops / rate
        axes.plot(
            (left, top, peaks.gflops / peaks.gigabytes_per_s),
            (left * rate, peaks.gflops, peaks.gflops),
            color=style.INK,
            linewidth=0.6,
        )


def parts_of_roof(
    axes: Axes, peaks: Peaks, slopes: Sequence[tuple[str, float]]
) -> list[tuple[float, float, float, str]]:
    """Each part of the roof: from which intensity to which, its GB/s, and its words."""
    left, right = axes.get_xlim()
    ridge = peaks.gflops / peaks.gigabytes_per_s
    return [
        (left, ridge, peaks.gigabytes_per_s, f"memory delivers {peaks.gigabytes_per_s:.3g} GB/s"),
        (ridge, right, inf, f"the processor does {peaks.gflops:.3g} GFLOP/s"),
        *((left, peaks.gflops / rate, rate, words) for words, rate in slopes),
    ]


def has_place(row: OpStats) -> bool:
    return bool(row.gflops and row.intensity)


def names(drawn: Sequence[OpStats]) -> list[list[str]]:
    """The names of the rows that cost most, in lines, shortened if they still differ; none for
    others."""
    keys = [row.key for row in drawn[:MOST]]
    short = list(map(style.without_inner_scopes, keys))
    clear = short if len(set(short)) == len(short) else keys
    lines = [
        style.folded_name(style.short_name(name, 60), NAME, label_placement.LETTERS)
        for name in clear
    ]
    return lines + [[]] * (len(drawn) - len(lines))


def diameter(row: OpStats) -> float:
    """In points: the area of a circle, as far as it can be seen, is the row's share."""
    return max(SMALLEST, LARGEST * sqrt(row.share))


def cache_slopes(peaks: Peaks) -> list[tuple[str, float]]:
    """What to call each level, and its GB/s: the largest, and slowest, first. Of levels that
    deliver the same the largest represents all, and memory for those that are no faster."""
    slopes: list[tuple[str, float]] = []
    last = peaks.gigabytes_per_s
    for level in reversed(peaks.levels):
        rate = bandwidth(peaks, level.working_set_bytes)
        if rate > last:
            slopes.append((f"up to {binary_size(level.working_set_bytes)}: {rate:.3g} GB/s", rate))
            last = rate
    return slopes


def slopes_with_room(
    axes: Axes, peaks: Peaks, slopes: Sequence[tuple[str, float]]
) -> list[tuple[str, float]]:
    """Those that have room for words below them, above memory and the others."""
    x = axes.get_xlim()[0]
    last = peaks.gigabytes_per_s
    shown: list[tuple[str, float]] = []
    for words, rate in slopes:
        foot, above, ahead = (
            label_placement.on_page(axes, *point)
            for point in ((x, x * last), (x, x * rate), (10 * x, 10 * x * last))
        )
        turn = atan2(ahead[1] - foot[1], ahead[0] - foot[0])
        if (above[1] - foot[1]) * cos(turn) >= ROOM:
            shown.append((words, rate))
            last = rate
    return shown


def binary_size(size: int) -> str:
    """`64 KiB`: a working set is a power of two."""
    return f"{size >> 20} MiB" if size >= 2**20 else f"{size >> 10} KiB"


def name_parts(
    axes: Axes,
    peaks: Peaks,
    parts: Sequence[tuple[float, float, float, str]],
    marks: Sequence[label_placement.LabelledPoint],
) -> list[label_placement.Box]:
    """Label each part of the roof; returns where these labels are.

    A part is where it starts and stops, its GB/s, and its words. An op may lie on the roof or
    above it: the first place is taken that is free of points.
    """
    frame = label_placement.frame_of(axes)
    taken = [
        label_placement.square(label_placement.on_page(axes, mark.x, mark.y), mark.radius)
        for mark in marks
    ]
    written: list[label_placement.Box] = []

    def free(boxes: Sequence[label_placement.Box]) -> bool:
        clear = not any(label_placement.overlap(box, other) for box in boxes for other in taken)
        return clear and all(label_placement.is_inside(box, frame) for box in boxes)

    for start, stop, rate, words in parts:

        def height(x: float, rate: float = rate) -> float:
            return min(peaks.gflops, x * rate)

        foot, top = (label_placement.on_page(axes, x, height(x)) for x in (start, stop))
        turn = atan2(top[1] - foot[1], top[0] - foot[0])
        room = style.text_width(words, style.SMALL)
        places = []
        for above, part in product(HEIGHTS, ALONG):
            x = start * (stop / start) ** part
            at = label_placement.on_page(axes, x, height(x))
            places.append((x, above, sloping_boxes(at, turn, above, room)))
        x, above, boxes = next((place for place in places if free(place[2])), places[0])
        taken += boxes
        written += boxes
        axes.annotate(
            words,
            (x, height(x)),
            (-above * sin(turn), above * cos(turn)),
            textcoords="offset points",
            rotation=degrees(turn),
            rotation_mode="anchor",
            ha="center",
            size=style.SMALL,
            color=style.INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # lines pass below
        )
    return written


def sloping_boxes(
    at: label_placement.Point, turn: float, above: float, room: float
) -> list[label_placement.Box]:
    """What lies under words so wide, so far above a point of a sloping line: small squares."""
    middle = above + style.SMALL / 3  # of the letters' height
    center = (at[0] - middle * sin(turn), at[1] + middle * cos(turn))
    return [
        label_placement.square((center[0] + step * cos(turn), center[1] + step * sin(turn)), LETTER)
        for step in np.linspace(-room / 2, room / 2, 2 + int(room / LETTER))
    ]


def headline(drawn: Sequence[OpStats], peaks: Peaks) -> str:
    first = drawn[0]
    reached = first.roof_share
    if reached is None:  # a table that was made without peaks
        reached = (first.gflops or 0.0) / roof(peaks, first.intensity or 0.0)
    name = fitting.short_name(first.key, 50)
    if reached > 1:
        return f"{name} computes above the roof measured here"
    return f"{name} computes at {percent(reached)} of the roof measured here at its intensity"


def caption(rows: Sequence[OpStats], drawn: Sequence[OpStats], has_levels: bool) -> str:
    missing = len(rows) - len(drawn)
    verb = "is" if missing == 1 else "are"
    left_out = (
        f" {plural(missing, 'row')} without known FLOPs or bytes {verb} omitted." if missing else ""
    )
    caches = (
        " Thin lines: the bandwidth of caches, for ops whose inputs and outputs have that size or "
        "less."
        if has_levels
        else ""
    )
    return (
        "The larger a point, the larger its share of the time. The roof is a model: below the "
        f"slope, memory is the limit; below the level part, the processor.{caches}{left_out}"
    )
