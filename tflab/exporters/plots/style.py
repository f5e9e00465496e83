"""Style: what all pictures share, so that they can be read on a page, on paper and in grey.

A picture is WIDTH inches wide: on a page of 900 pixels its letters are a little larger than the
text. Colours are those of Okabe and Ito ("Color universal design", 2008), which the colour-blind
can distinguish. No colour is the only sign of anything: a hatch, a marker, a line style or the
lightness differs too.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from tflab.escaping import visible
from tflab.exporters import fitting
from tflab.units import SIZES, TIMES

WIDTH = 7.5  # inches
POINTS = 72  # in an inch
MARGIN = 0.12  # inches around a picture

BLACK, BLUE, VERMILION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
RED = "#C62828"  # of what is above a threshold, and of nothing else
INK, FAINT, RULE = "#222222", "#595959", "#DDDDDD"  # text, text beside it, grid
PALE = "#BFDDF0"  # what is not highlighted, beside BLUE or VERMILION

TITLE, BODY, SMALL = 13.0, 10.5, 9.5  # points
TITLE_LETTERS, LETTERS = 65, 106  # of a line of the title, and of the sentence below it

# Fonts with Chinese letters, of macOS, Windows and Linux
CHINESE = {"PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "SimHei"}
FONTS = ["DejaVu Sans", *sorted(CHINESE & {*get_font_names()})]  # the first is matplotlib's own
SETTINGS: dict[str, object] = {
    "font.family": FONTS,
    "font.size": BODY,
    "text.color": INK,
    "text.parse_math": False,  # a name may hold `$`
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.labelsize": SMALL,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": SMALL,
    "axes.titlepad": 3,
    "grid.color": RULE,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tflab",
}

translation: ContextVar[Callable[[str], str]] = ContextVar("translation", default=str)


@contextmanager
def translated(words: Callable[[str], str]) -> Iterator[None]:
    """Have titles, sentences, axes and legends of pictures translated by this function."""
    token = translation.set(words)
    try:
        yield
    finally:
        translation.reset(token)


def short_name(name: str, most: int = 30) -> str:
    """Return a name on one line, at most `most` long. `canvas` does so for its own text."""
    return fitting.middle_cut(visible(name), most)


@contextmanager
def applied() -> Iterator[None]:
    """Give matplotlib its defaults and SETTINGS, so that a user's settings change no picture."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        # Letters that the font does not have become boxes in a PNG.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def canvas(title: str, sentence: str, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure with a title, a sentence, and panels that share `height` inches."""
    title, sentence = (visible(translation.get()(text)) for text in (title, sentence))
    lines = [(line, TITLE, "bold", INK) for line in wrapped(title, TITLE_LETTERS)]
    lines += [(line, SMALL, "normal", FAINT) for line in wrapped(sentence, LETTERS)]
    whole = MARGIN + sum(1.4 * size for _, size, *_ in lines) / POINTS + 0.08 + height
    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, height / whole), w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(WIDTH, whole), facecolor="white", layout=layout)
    figure.set_label(f"{title}. {sentence}")
    above = whole - MARGIN
    for line, size, weight, color in lines:
        text = figure.text(MARGIN / WIDTH, above / whole, line, va="top", in_layout=False)
        text.set(size=size, weight=weight, color=color)
        above -= 1.4 * size / POINTS
    return figure, list(figure.subplots(panels, 1, squeeze=False)[:, 0]) if panels else []


def wrapped(words: str, letters: int) -> list[str]:
    """Return a text in lines. A number and its unit stay together."""
    joined = re.sub(r"(?<=\d) ", "\N{NO-BREAK SPACE}", words)
    wide = len(re.findall("[\u3000-\uffff]", joined))  # Chinese letters have twice the width
    if wide:  # lines end after a Chinese comma or stop, which needs no space
        joined = re.sub(
            "(?<=[\u3002\uff0c\uff1a\uff1b])", " ", joined.replace(" ", "\N{NO-BREAK SPACE}")
        )
    fitting = letters * len(joined) // (len(joined) + wide or 1)
    lines = textwrap.wrap(joined, max(1, fitting), break_on_hyphens=False)
    return [line.replace(" ", "") for line in lines] if wide else lines


def message(title: str, sentence: str) -> Figure:
    """Return a picture without data: a title and a sentence that says why."""
    return canvas(title, sentence, MARGIN, panels=0)[0]


def settled(figure: Figure) -> Figure:
    """Translate axes and legends, and fix the layout's positions: a figure is always the same."""
    for axes in figure.axes:
        legend = axes.get_legend()
        for text in (axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend else ())):
            text.set_text(translation.get()(text.get_text()))
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def write(axes: Axes, x: float, y: float, words: str, **look: Any) -> None:
    """Write words above all else, by default with their middle at (x, y)."""
    axes.text(x, y, words, **{"ha": "center", "va": "center", "zorder": 3, **look})


def ruled(axis: Axis, limit: float, words: Callable[[float], str], most: int = 5) -> None:
    """Set at most `most` round ticks from 0 to a limit (ns or bytes), in the unit of its text."""
    unit = words(limit).split()[1]
    factor = (TIMES | SIZES)[unit]
    ticks = MaxNLocator(most, steps=(1, 2, 2.5, 5, 10)).tick_values(0, limit / factor)
    shown = [tick for tick in ticks if 0 <= tick * factor <= limit]
    axis.set_ticks([tick * factor for tick in shown], [f"{tick:g} {unit}" for tick in shown])
