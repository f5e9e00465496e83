"""Spots: names beside the points of a panel, none on top of anything else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import copysign, hypot

from matplotlib.axes import Axes
from matplotlib.text import Annotation

from tflab.exporters.plots import lettering, line_labels, style

LETTERS = 8.5  # points
LINE = 1.3  # of that, from one line to the next
AROUND = ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, 1), (-1, -1), (0, 1), (0, -1))
DISTANCES = (4, 12, 24, 40, 60, 90)  # in points, from a spot's edge to its name
NEAR = 12  # of these no line has to lead to the name

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, right, top; in points


@dataclass(frozen=True)
class Spot:
    """A point of a panel and its name; without lines it only takes its place."""

    x: float
    y: float
    radius: float  # in points
    lines: Sequence[str]


@dataclass(frozen=True)
class Place:
    """Where a name might stand; all in points."""

    offset: Point  # from the spot
    align: str
    box: Box
    edge: Point  # of the name, from the spot: a line leads there
    lead: tuple[Box, ...]  # what that line takes, if there is one


def name(
    axes: Axes,
    spots: Sequence[Spot],
    curve: Iterable[Point] = (),
    written_on: Sequence[Box] = (),
) -> list[Annotation]:
    """Put its name beside each spot, the first ones first; those that found a place.

    A name stands in the panel, on no spot, no other name, no line that leads to one, no point of
    `curve`, and nothing that is `written_on` the panel already; no line leads through it. Where
    there is no such place near its spot, it is left out.
    """
    frame = frame_of(axes)
    taken = [*written_on, *(square(on_page(axes, *point), 2) for point in curve)]
    taken += [square(on_page(axes, spot.x, spot.y), spot.radius) for spot in spots]
    boxes = list(written_on)
    found = []
    for spot in (spot for spot in spots if spot.lines):
        for place in places(on_page(axes, spot.x, spot.y), spot):
            clear = not any(overlap(place.box, other) for other in taken)
            straight = not any(overlap(part, box) for part in place.lead for box in boxes)
            if inside(place.box, frame) and clear and straight:
                taken += [place.box, *place.lead]
                boxes.append(place.box)
                found.append(written(axes, spot, place))
                break
    return found


def places(at: Point, spot: Spot) -> Iterator[Place]:
    """All places around a spot, the nearest first."""
    width = max(lettering.width(line, LETTERS) for line in spot.lines)
    half = LINE * LETTERS * len(spot.lines) / 2
    for distance in DISTANCES:
        for right, up in AROUND:
            away = spot.radius + distance
            across, above = right * away, up * (away if right else away + half - LETTERS / 2)
            left = at[0] + across - width * (1 - right) / 2
            bottom = at[1] + above - half
            edge = (across, above if right else above - copysign(half, up))
            yield Place(
                (across, above),
                ("right", "center", "left")[right + 1],
                (left, bottom, left + width, bottom + 2 * half),
                edge,
                steps(at, edge) if distance > NEAR else (),
            )


def written(axes: Axes, spot: Spot, place: Place) -> Annotation:
    if place.lead:
        line_labels.leader(axes, (spot.x, spot.y), place.edge)
    return axes.annotate(
        "\n".join(spot.lines),
        (spot.x, spot.y),
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
    return (*on_page(axes, *low(axes)), *on_page(axes, *high(axes)))


def low(axes: Axes) -> Point:
    return axes.get_xlim()[0], axes.get_ylim()[0]


def high(axes: Axes) -> Point:
    return axes.get_xlim()[1], axes.get_ylim()[1]


def steps(at: Point, edge: Point) -> tuple[Box, ...]:
    """Small squares along a line."""
    count = int(hypot(*edge) / 3)
    return tuple(
        square((at[0] + edge[0] * step / count, at[1] + edge[1] * step / count), 1)
        for step in range(1, count)
    )


def square(center: Point, radius: float) -> Box:
    x, y = center
    return (x - radius, y - radius, x + radius, y + radius)


def inside(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
