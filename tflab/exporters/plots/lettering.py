"""Lettering: names and numbers as a picture writes them, and how much room they take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from tflab import units
from tflab.analysis import op_table
from tflab.exporters import text

FONT = "DejaVu Sans"  # it comes with matplotlib


def named(name: str, most: int = 30) -> str:
    """A name from a stranger's file, on one line and not too long; it loses its middle."""
    return text.cut(harmless(name), most, at_end=False)


def harmless(words: str) -> str:
    """On one line, and without what no XML and no font can hold."""
    return text.printable(words.replace("\n", " "))


def distinct(names: Sequence[str], most: int) -> list[str]:
    """Each name `named`; of at most so many letters, but more where two would look the same."""
    for letters in range(most, 2 * most):
        found = [named(name, letters) for name in names]
        if len(set(found)) == len(set(names)):
            break
    return found


@lru_cache(maxsize=10_000)
def width(words: str, size: float, weight: str = "normal") -> float:
    """How long a text gets, in points, without a renderer."""
    font = FontProperties(family=FONT, weight=weight, size=size)
    return float(text_to_path.get_text_width_height_descent(words, font, ismath=False)[0])


def wrapped(words: str, room: float, size: float, weight: str = "normal") -> list[str]:
    """Lines of so many points at most; a longer word has a line of its own.

    A number and its unit stay together.
    """
    lines: list[str] = []
    for word in re.sub(r"(?<=\d) ", "\N{NO-BREAK SPACE}", words).split(" "):
        if lines and width(f"{lines[-1]} {word}", size, weight) < room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def essential(name: str) -> str:
    """`gradients/conv2/Conv2D_grad/Conv2DBackpropInput` without what lies within its layer."""
    return min(name, f"{op_table.layer(name)}/{name.rpartition('/')[2]}", key=len)


def folded(name: str, room: float, size: float) -> list[str]:
    """A name in lines of so many points, broken where its parts meet; none if a part is wider.

    Scopes are parts; words are, where a scope is too wide.
    """
    found: list[str] = []
    scopes = re.split(r"(?<=/)", name)
    words = [
        re.split(r"(?<=_)|(?<=[a-z])(?=[A-Z])", scope) if width(scope, size) > room else [scope]
        for scope in scopes
    ]
    for part in chain.from_iterable(words):
        if width(part, size) > room:
            return []
        if found and width(found[-1] + part, size) <= room:
            found[-1] += part
        else:
            found.append(part)
    return found


def brief(words: str) -> str:
    """`1.00 us` as `1 us`: a tick is a round number."""
    number, _, unit = words.partition(" ")
    return f"{float(number):g} {unit}"


def time_tick(ns: float, _: Any = None) -> str:
    return brief(units.time(ns))
