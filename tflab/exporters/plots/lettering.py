"""Lettering: names and numbers for pictures, and their widths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from tflab import units
from tflab.analysis import row_labels
from tflab.escaping import visible
from tflab.exporters import fitting

FONT = "DejaVu Sans"  # it comes with matplotlib


def short(name: str, most: int = 30) -> str:
    """A name on one line, of at most `most` characters; a longer one loses its first scopes."""
    return fitting.short_name(visible(name), most)


def distinct(names: Sequence[str], most: int) -> list[str]:
    """Each name shortened to `most` characters; to more if two would look the same."""
    shorter = [short(name, most) for name in names]
    if len(set(shorter)) == len(set(names)):
        return shorter
    apart = fitting.short_names(map(visible, names), 2 * most - 1)
    return [apart[visible(name)] for name in names]


@lru_cache(maxsize=10_000)
def width(words: str, size: float, weight: str = "normal") -> float:
    """The width of a text in points, computed without a renderer."""
    font = FontProperties(family=FONT, weight=weight, size=size)
    return float(text_to_path.get_text_width_height_descent(words, font, ismath=False)[0])


def wrapped(words: str, room: float, size: float, weight: str = "normal") -> list[str]:
    """A text in lines of at most `room` points; a longer word has a line to itself.

    A number and its unit stay together.
    """
    lines: list[str] = []
    for word in re.sub(r"(?<=\d) ", "\N{NO-BREAK SPACE}", words).split(" "):
        if lines and width(f"{lines[-1]} {word}", size, weight) < room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def without_inner_scopes(name: str) -> str:
    """A name without the scopes within its layer: `gradients/conv2/Conv2DBackpropInput` for
    `gradients/conv2/Conv2D_grad/Conv2DBackpropInput`, so that no gradient looks like a node of the
    layer itself."""
    return min(name, f"{row_labels.layer(name)}/{name.rpartition('/')[2]}", key=len)


def folded(name: str, room: float, size: float) -> list[str]:
    """A name in lines of at most `room` points, broken between its parts; empty if a part is wider.

    Its parts are scopes, and the words of a scope that is too wide.
    """
    lines: list[str] = []
    scopes = re.split(r"(?<=/)", name)
    words = [
        re.split(r"(?<=_)|(?<=[a-z])(?=[A-Z])", scope) if width(scope, size) > room else [scope]
        for scope in scopes
    ]
    for part in chain.from_iterable(words):
        if width(part, size) > room:
            return []
        if lines and width(lines[-1] + part, size) <= room:
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
