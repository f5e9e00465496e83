"""Style: what all pictures share, so that they can be read on a page, a phone, paper and in grey.

A picture is WIDTH inches wide: on a page of 900 pixels its letters are a little larger than the
text. For a phone of 400 pixels it is drawn again, NARROW inches wide. Colours are those of Okabe
and Ito ("Color universal design", 2008), which the colour-blind can distinguish. No colour is the
only sign of anything: a hatch, a marker, a line style or the lightness differs too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tflab import units
from tflab.analysis import row_labels
from tflab.escaping import visible
from tflab.exporters import fitting
from tflab.units import SIZES, TIMES

FONT = "DejaVu Sans"  # it comes with matplotlib
WIDTH = 7.5  # inches
NARROW = 4.9  # inches, which are as many points as a page of 400 pixels has room for
POINTS = 72  # in an inch
MARGIN = 0.12  # inches around a picture

_width: ContextVar[float] = ContextVar("width of a picture", default=WIDTH)

BLACK, BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = (
    "#000000",
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
INK, FAINT, RULE = "#222222", "#595959", "#DDDDDD"  # text, text beside it, grid
PALE = "#BFDDF0"  # what is not highlighted, beside BLUE or VERMILION

TITLE, BODY, SMALL = 13.0, 10.5, 9.5  # points

SETTINGS: dict[str, Any] = {
    "font.family": [FONT],
    "font.size": BODY,
    "text.color": INK,
    "text.parse_math": False,  # a name may hold `$`
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.labelsize": SMALL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tflab",
}


# Names and numbers, and their widths


def short_name(name: str, most: int = 30) -> str:
    """A name on one line, of at most `most` characters; a longer one loses its first scopes."""
    return fitting.short_name(visible(name), most)


def distinct_names(names: Sequence[str], most: int) -> list[str]:
    """Each name shortened to `most` characters; to more if two would look the same."""
    shorter = [short_name(name, most) for name in names]
    if len(set(shorter)) == len(set(names)):
        return shorter
    apart = fitting.short_names(map(visible, names), 2 * most - 1)
    return [apart[visible(name)] for name in names]


@lru_cache(maxsize=10_000)
def text_width(words: str, size: float, weight: str = "normal") -> float:
    """The width of a text in points, computed without a renderer."""
    font = FontProperties(family=FONT, weight=weight, size=size)
    return float(text_to_path.get_text_width_height_descent(words, font, ismath=False)[0])


def wrapped(words: str, room: float, size: float, weight: str = "normal") -> list[str]:
    """A text in lines of at most `room` points; a longer word has a line to itself.

    A number and its unit stay together.
    """
    lines: list[str] = []
    for word in re.sub(r"(?<=\d) ", "\N{NO-BREAK SPACE}", words).split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size, weight) < room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def without_inner_scopes(name: str) -> str:
    """A name without the scopes within its layer: `gradients/conv2/Conv2DBackpropInput` for
    `gradients/conv2/Conv2D_grad/Conv2DBackpropInput`, so that no gradient looks like a node of the
    layer itself."""
    return min(name, f"{row_labels.layer(name)}/{name.rpartition('/')[2]}", key=len)


def folded_name(name: str, room: float, size: float) -> list[str]:
    """A name in lines of at most `room` points, broken between its parts; empty if a part is wider.

    Its parts are scopes, and the words of a scope that is too wide.
    """
    lines: list[str] = []
    scopes = re.split(r"(?<=/)", name)
    words = [
        re.split(r"(?<=_)|(?<=[a-z])(?=[A-Z])", scope)
        if text_width(scope, size) > room
        else [scope]
        for scope in scopes
    ]
    for part in chain.from_iterable(words):
        if text_width(part, size) > room:
            return []
        if lines and text_width(lines[-1] + part, size) <= room:
            lines[-1] += part
        else:
            lines.append(part)
    return lines


def without_zeros(words: str) -> str:
    """`1.00 us` as `1 us`, because ticks are round numbers."""
    number, _, unit = words.partition(" ")
    return f"{float(number):g} {unit}"


def time_tick(ns: float, _: Any = None) -> str:
    return without_zeros(units.time(ns))


# The figure


@contextmanager
def applied() -> Iterator[None]:
    """matplotlib with its defaults and SETTINGS; afterwards its settings are as before.

    It decorates every function that draws, so that a user's matplotlibrc changes no picture.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        # Letters that the font does not have become boxes in a PNG.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


@contextmanager
def narrow() -> Iterator[None]:
    """What is drawn in here is drawn for a phone."""
    token = _width.set(NARROW)
    try:
        yield
    finally:
        _width.reset(token)


def width() -> float:
    """The width of a picture that is drawn now, in inches."""
    return _width.get()


def canvas(title: str, sentence: str, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with a title and a sentence above `panels` axes of `height` inches in all."""
    across = width()
    title, sentence = visible(title), visible(sentence)
    room = (across - 2 * MARGIN) * POINTS
    lines = [(line, TITLE, "bold", INK) for line in wrapped(title, room, TITLE, "bold")]
    lines += [(line, SMALL, "normal", FAINT) for line in wrapped(sentence, room, SMALL)]
    head = MARGIN + sum(1.4 * size for _, size, *_ in lines) / POINTS + 0.08
    total_height = head + height
    figure = Figure(
        figsize=(across, total_height),
        facecolor="white",
        layout=ConstrainedLayoutEngine(rect=(0, 0, 1, height / total_height), w_pad=0.1, h_pad=0.1),
    )
    figure.set_label(f"{title}. {sentence}" if sentence else title)
    below = MARGIN
    for line, size, weight, color in lines:
        figure.text(
            MARGIN / across,
            1 - below / total_height,
            line,
            size=size,
            weight=weight,
            color=color,
            va="top",
            in_layout=False,
        )
        below += 1.4 * size / POINTS
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0]) if panels else []


def message(title: str, sentence: str) -> Figure:
    """A picture without data: a title and a sentence that says why."""
    return canvas(title, sentence, MARGIN, panels=0)[0]


def settle(figure: Figure) -> None:
    """Run the layout, and keep the positions that it finds."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.set_layout_engine("none")


# Axes


def ruled(axis: Axis, limit: float, words: Callable[[float], str], most: int = 5) -> None:
    """Set round ticks from 0 to a limit in ns or bytes, `most` of them beside 0, all in the unit in
    which `words` writes the limit."""
    unit = words(limit).split()[1]
    factor = (TIMES | SIZES)[unit]
    ticks = MaxNLocator(most, steps=(1, 2, 2.5, 5, 10)).tick_values(0, limit / factor)
    shown = [tick for tick in ticks if 0 <= tick * factor <= limit]
    axis.set_ticks([tick * factor for tick in shown], [f"{tick:g} {unit}" for tick in shown])


def log_times(axes: Axes) -> None:
    """Make the axis of times logarithmic, with a tick at each power of ten, or at more if the times
    span less than two."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(time_tick))
    axes.yaxis.set_minor_formatter(NullFormatter())
