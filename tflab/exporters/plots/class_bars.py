"""Class bars: a probability for each class, and the gradient by its score beside it."""

from __future__ import annotations

import numpy as np

from tflab.exporters.plots import lettering, style
from tflab.exporters.plots.sheet import LINE, NUMBER, Page, box, name, wrapped, write
from tflab.records.maps import Probabilities
from tflab.units import percent

BAR = 11  # points, the height of a bar
NO_GRADIENT = "not computed: no variable's gradient needs it"


def height(probabilities: Probabilities | None) -> float:
    if probabilities is None:
        return 0
    return LINE + (BAR + 3) * len(probabilities.array)


def draw_classes(page: Page, record: Probabilities, top: float) -> None:
    """A bar for each class, and beside it the gradient to either side of a line."""
    beside = "left: probabilities" if record.computed else "left: its softmax, the probabilities"
    name(page, top, record.name, beside)
    best = record.best
    shares = np.nan_to_num(record.array, nan=0, posinf=0, neginf=0)
    digits = max(lettering.width(f"{len(record.array) - 1}", style.SMALL, "bold"), 8) + 5
    room = page.width - digits - 92
    for number, (share, exact) in enumerate(zip(shares, record.array, strict=True)):
        at = top + LINE + number * (BAR + 3)
        weight = "bold" if number in (best, record.label) else "normal"
        write(page, page.lefts[0], at, str(number), style.INK, weight=weight)
        color = style.BLUE if number == best else style.PALE
        left, long = page.lefts[0] + digits, room * float(share) / (float(max(shares)) or 1)
        box(page, left, at, (long, BAR), color)
        known = percent(float(share)) if np.isfinite(exact) else f"{exact}"
        words = f"{known}{' label' if number == record.label else ''}"
        write(page, left + long + 4, at, words, style.INK, weight=weight, size=NUMBER)
    if record.gradient is None:
        write(page, page.lefts[1], top + LINE, wrapped(page, NO_GRADIENT), style.FAINT)
        return
    draw_signed_bars(page, record.gradient, top + LINE)


def draw_signed_bars(page: Page, gradient: np.ndarray, top: float) -> None:
    """Bars from the middle of the column, to the left where the number is negative."""
    lengths = np.nan_to_num(np.abs(gradient), nan=0, posinf=0)
    most = float(lengths.max()) or 1
    half = page.width / 2 - 44
    middle = page.lefts[1] + page.width / 2
    for number, value in enumerate(gradient):
        at, long = top + number * (BAR + 3), half * float(lengths[number]) / most
        color = style.BLUE if value < 0 else style.ORANGE
        box(page, middle - long if value < 0 else middle, at, (long, BAR), color)
        align, side = ("right", -long - 4) if value < 0 else ("left", long + 4)
        write(page, middle + side, at, f"{value:+#.2g}", style.INK, size=NUMBER, align=align)
    end = top + len(gradient) * (BAR + 3) - 3
    page.axes.plot([middle, middle], [top, end], color=style.FAINT, linewidth=0.8, zorder=4)
