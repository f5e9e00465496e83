"""Sheet: a figure that is laid out by hand, in points from the top left corner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tflab.exporters.plots import lettering, style

LINE = 14  # points
BASELINE = 9  # points from the top of a line to the foot of its letters
NUMBER = 8.5  # points, the size of numbers beside what they measure


@dataclass(frozen=True)
class Page:
    """Where the two columns are, in points from the top left corner."""

    axes: Axes
    width: float  # of a column
    lefts: tuple[float, float]


def sheet(figure: Figure, room: float) -> Axes:
    """Axes over all that is below the caption, whose units are points from the top left."""
    across = style.width() * style.POINTS
    height_points = figure.get_figheight() * style.POINTS
    axes = figure.add_axes((0, 0, 1, room / height_points))
    axes.set_axis_off()
    axes.set_xlim(0, across)
    axes.set_ylim(room, 0)
    axes.set_autoscale_on(False)
    return axes


def name(page: Page, top: float, words: str, note: str) -> None:
    """A name, and a note in a fainter colour, shortened to the width of the page."""
    room = page.lefts[1] + page.width - page.lefts[0]
    left = room - lettering.width(note, style.SMALL) - 8
    short = words
    for most in range(60, 8, -2):
        short = lettering.short(words, most)
        if lettering.width(short, style.SMALL, "bold") <= left:
            break
    write(page, page.lefts[0], top, short, style.INK, weight="bold")
    after = page.lefts[0] + lettering.width(short, style.SMALL, "bold") + 8
    write(page, after, top, note, style.FAINT)


def image(
    page: Page, pixels: np.ndarray, left: float, top: float, area: tuple[float, float]
) -> None:
    wide, high = area
    drawn = page.axes.imshow(
        pixels,
        extent=(left, left + wide, top + high, top),
        aspect="auto",
        interpolation="none",
        zorder=2,
    )
    drawn.set_gid(f"image_{len(page.axes.images)}")  # two that are equal would have the same id


def box(
    page: Page,
    left: float,
    top: float,
    area: tuple[float, float],
    color: str,
    edge: str = "none",
) -> None:
    page.axes.add_patch(
        Rectangle((left, top), *area, facecolor=color, edgecolor=edge, linewidth=0.5, zorder=3)
    )


def wrapped(page: Page, words: str) -> str:
    return "\n".join(lettering.wrapped(words, page.width, style.SMALL))


def write(
    page: Page,
    left: float,
    top: float,
    words: str,
    color: str,
    *,
    weight: str = "normal",
    size: float = style.SMALL,
    align: str = "left",
) -> None:
    page.axes.text(
        left,
        top + BASELINE,
        words,
        color=color,
        weight=weight,
        size=size,
        ha=align,
        linespacing=1.3,
        va="baseline",
        zorder=4,
    )
