"""Label placement: labels next to the points of a panel, without overlaps, or at the right end of
each of its lines, instead of a legend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import copysign, hypot

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from tflab.exporters.plots import style

LETTERS = 8.5  # points
LINE = 1.3  # line height, in font sizes
AROUND = ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, 1), (-1, -1), (0, 1), (0, -1))
DISTANCES = (4, 12, 24, 40, 60, 90)  # in points, from a marker's edge to its label
NEAR = 12  # up to this distance a label needs no leader line

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top; in points


@dataclass(frozen=True)
class LabelledPoint:
    """A marker in a panel and the lines of its label; without lines it only occupies space."""

    x: float
    y: float
    radius: float  # in points
    lines: Sequence[str]


@dataclass(frozen=True)
class LabelPosition:
    """A possible place for a label; all lengths in points."""

    offset: Point  # from the marker
    align: str
    box: Box
    edge: Point  # the end of the leader line at the label, from the marker
    lead: tuple[Box, ...]  # the boxes that the leader line covers, if there is one


def place_labels(
    axes: Axes,
    points: Sequence[LabelledPoint],
    curve: Iterable[Point] = (),
    occupied: Sequence[Box] = (),
) -> list[Annotation]:
    """Put a label next to each marker, in order; return the labels that were placed.

    A label lies within the panel and covers no marker, no other label, no leader line, no point of
    `curve` and no `occupied` box; no leader line crosses it. A label without such a place near its
    marker is omitted.
    """
    frame = frame_of(axes)
    occupied_boxes = [*occupied, *(square(on_page(axes, *point), 2) for point in curve)]
    occupied_boxes += [square(on_page(axes, point.x, point.y), point.radius) for point in points]
    boxes = list(occupied)
    annotations = []
    for point in (point for point in points if point.lines):
        for place in places(on_page(axes, point.x, point.y), point):
            clear = not any(overlap(place.box, other) for other in occupied_boxes)
            straight = not any(overlap(part, box) for part in place.lead for box in boxes)
            if is_inside(place.box, frame) and clear and straight:
                occupied_boxes += [place.box, *place.lead]
                boxes.append(place.box)
                annotations.append(annotate(axes, point, place))
                break
    return annotations


def places(at: Point, point: LabelledPoint) -> Iterator[LabelPosition]:
    """All places around a marker, the nearest first."""
    width = max(style.text_width(line, LETTERS) for line in point.lines)
    half = LINE * LETTERS * len(point.lines) / 2
    for distance in DISTANCES:
        for right, up in AROUND:
            away = point.radius + distance
            across, above = right * away, up * (away if right else away + half - LETTERS / 2)
            left = at[0] + across - width * (1 - right) / 2
            bottom = at[1] + above - half
            edge = (across, above if right else above - copysign(half, up))
            yield LabelPosition(
                (across, above),
                ("right", "center", "left")[right + 1],
                (left, bottom, left + width, bottom + 2 * half),
                edge,
                leader_squares(at, edge) if distance > NEAR else (),
            )


def annotate(axes: Axes, point: LabelledPoint, place: LabelPosition) -> Annotation:
    if place.lead:
        leader(axes, (point.x, point.y), place.edge)
    return axes.annotate(
        "\n".join(point.lines),
        (point.x, point.y),
        place.offset,
        textcoords="offset points",
        ha=place.align,
        va="center",
        multialignment=place.align,
        size=LETTERS,
        linespacing=LINE - 0.1,
    )


def on_page(axes: Axes, x: float, y: float) -> Point:
    """A point of a panel, in points from the lower left corner of the figure."""
    across, up = axes.transData.transform((x, y)) * style.POINTS / axes.figure.dpi
    return float(across), float(up)


def frame_of(axes: Axes) -> Box:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return (*on_page(axes, left, bottom), *on_page(axes, right, top))


def leader_squares(at: Point, edge: Point) -> tuple[Box, ...]:
    """Small squares that cover a leader line."""
    count = int(hypot(*edge) / 3)
    return tuple(
        square((at[0] + edge[0] * step / count, at[1] + edge[1] * step / count), 1)
        for step in range(1, count)
    )


def square(center: Point, radius: float) -> Box:
    x, y = center
    return (x - radius, y - radius, x + radius, y + radius)


def is_inside(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def overlap(first: Box, second: Box) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )


# Labels of lines

AWAY = 10  # points from a line's end to its label
GAP = 1.3 * style.SMALL  # points from one label to the next
CLOSE = 3  # points that a label may move before it needs a leader line


def label(axes: Axes, point: tuple[float, float], words: str, color: str, glyph: str) -> Annotation:
    """A label right of a line's last point: the line's marker as a glyph in its colour, and words.

    `separate` the labels of a panel when the layout of the figure is final; the words move with the
    glyph.
    """
    first = axes.annotate(
        glyph,
        point,
        (AWAY, 0),
        textcoords="offset points",
        va="center",
        size=style.SMALL,
        color=color,
        annotation_clip=False,
    )
    axes.annotate(
        words,
        (0, 0.5),
        (13, 0),
        xycoords=first,
        textcoords="offset points",
        va="center",
        size=style.SMALL,
        annotation_clip=False,
    )
    return first


def separate(axes: Axes, labels: Sequence[Annotation]) -> None:
    """Move labels up or down, as little as possible, until none overlap; draw leader lines to those
    that moved."""
    points = style.POINTS / axes.figure.dpi
    targets = [float(axes.transData.transform(label.xy)[1]) * points for label in labels]
    for label, before, after in zip(labels, targets, spread_positions(targets, GAP), strict=True):
        label.set_position((AWAY, after - before))
        if abs(after - before) > CLOSE:
            leader(axes, label.xy, (AWAY, after - before))


def leader(axes: Axes, point: tuple[float, float], offset: tuple[float, float]) -> None:
    """Draw a thin line from a point to its label, which is `offset` away (in points)."""
    axes.annotate(
        "",
        point,
        offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": style.FAINT, "linewidth": 0.6, "shrinkB": 2},
        annotation_clip=False,
    )


def spread_positions(targets: Sequence[float], gap: float) -> list[float]:
    """Positions at least `gap` apart, in the order of the targets and as near to them as possible.

    Without the gaps that is isotonic regression.
    """
    from scipy.optimize import isotonic_regression  # slow to import, and few plots have such labels

    order = np.argsort(targets, kind="stable")
    above = gap * np.arange(len(targets))
    positions = np.array(targets, float)
    if len(targets):
        positions[order] = isotonic_regression(positions[order] - above).x + above
    return positions.tolist()
