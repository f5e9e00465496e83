"""Graph: a data-flow graph by layer, from top to bottom, with the shapes of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from matplotlib.figure import Figure

from tflab.exporters import fitting
from tflab.exporters.plots import style

PITCH = 0.8  # inches from one row to the next
TALLEST = 30.0  # inches of all rows
HIGH, WIDE = 0.6, 0.94  # of a box, as shares of its place
WIDEST = 0.45  # a place, as a share of the picture
LANE = 0.12  # the place of a lane, as a share of that of a box
LETTERS = 75  # across the picture


class Box(NamedTuple):
    """A layer, or a node outside of all layers."""

    name: str
    label: str
    about: str  # the types of its nodes


class Lane(NamedTuple):
    """The place of an edge in a row that it crosses."""

    source: str
    target: str


@style.applied()
def draw(
    model: str, rows: Sequence[Sequence[Box | Lane]], shapes: Mapping[tuple[str, str], str]
) -> Figure:
    """Draw the boxes row by row, and an arrow for each edge, which has the shape of its tensor."""
    if not rows:
        return style.message("An empty graph", f"{model} has no nodes.")
    title = f"{fitting.middle_cut(model, 30)}: the data-flow graph, layer by layer"
    about = "Boxes: layers and op types. Arrows: tensors and shapes (?: any size)."
    figure, (axes,) = style.canvas(title, about, min(PITCH * len(rows), TALLEST))
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.6, -0.4)
    axes.set_axis_off()
    places: dict[str, tuple[float, int]] = {}
    lanes: dict[tuple[str, str], list[tuple[float, int]]] = {edge: [] for edge in shapes}
    for y, row in enumerate(rows):
        weights = [1 if isinstance(entry, Box) else LANE for entry in row]
        place = min(WIDEST, 1 / sum(weights))
        left = 0.5 - place * sum(weights) / 2
        ends = accumulate(weights)
        for entry, weight, end in zip(row, weights, ends, strict=True):
            x = left + place * (end - weight / 2)
            if isinstance(entry, Lane):
                lanes.setdefault((entry.source, entry.target), []).append((x, y))
                continue
            places[entry.name] = x, y
            wide, letters = WIDE * place, int(LETTERS * place)
            axes.barh(y, wide, HIGH, x - wide / 2, color="white", edgecolor=style.BLUE, zorder=2)
            style.write(axes, x, y - 0.12, style.short_name(entry.label, letters))
            words = style.short_name(entry.about, int(letters * 1.1))
            style.write(axes, x, y + 0.14, words, size=style.SMALL, color=style.FAINT)
    arrow = {"arrowstyle": "-|>", "color": style.FAINT, "shrinkA": 0, "shrinkB": 0}
    for edge, shape in shapes.items():
        (x, y), (to_x, to_y) = (places[name] for name in edge)
        down = HIGH / 2 if to_y > y else -HIGH / 2
        through = [(at, row + side) for at, row in lanes[edge] for side in (-down, down)]
        points = [(x, y + down), *through, (to_x, to_y - down)]
        axes.plot(*zip(*points[:-1], strict=True), color=style.FAINT, linewidth=1, zorder=1)
        axes.annotate("", points[-1], points[-2], arrowprops=arrow, zorder=1)  # behind the boxes
        middle = (x + points[1][0]) / 2 + 0.015, (y + down + points[1][1]) / 2
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # it hides other arrows
        style.write(
            axes, *middle, shape, size=style.SMALL, color=style.FAINT, ha="left", bbox=paper
        )
    return style.settled(figure)
