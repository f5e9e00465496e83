"""Fitting: which columns of a table fit on a line, and how its cells are shortened.

Spare columns are omitted first, then prose is shortened. Names are wrapped, so that they stay
whole; only in a drawing they lose their middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from textwrap import TextWrapper

from rich.cells import cell_len, set_cell_size

from tflab.records.blocks import Column, Table

GAP = 2  # between columns
INDENT = 2  # of all lines of a wrapped cell but the first
# The parts of a word, each up to where a line can break; the first are preferred
PARTS = re.compile(r"[^/]+/*|/+"), re.compile(r"[^(_,]+[(_,]*|[(_,]+")
UNIT = re.compile(r"(?<=\d) (?=%|(?:[num]?s|[KMG]iB|B|x)\b)")  # the space before a unit
RAILS = "lines of the drawing"  # the first column of a drawing, which has no header
BESIDE = 36  # characters next to rails below which the rails are omitted
NAME = 36  # characters of a name for which columns are omitted; a longer one is wrapped first


@dataclass(eq=False)
class Sized:
    """A column with its cells as they are shown, and the characters that they take."""

    column: Column
    cells: Sequence[str]
    width: int
    wrapped: int  # the width if the header is wrapped
    least: int  # the width for which other columns are omitted


def fit(
    table: Table, rows: Sequence[Sequence[str]], available: int
) -> tuple[list[Sized], list[str]]:
    """Return the columns that fit, with `rows` as cells, and the headers of those that do not."""
    every = list(map(sized, table.columns, zip(*rows, strict=True) if rows else repeat(())))
    kept = every
    if table.drawing and not table.columns[0].header:
        rails = every[0]
        rails.least = rails.width
        kept = every[1:] if rails.width + GAP + BESIDE > available else every
    kept = kept_columns(kept, available)
    fit_widths(kept, available - GAP * (len(kept) - 1))
    for one in kept:
        one.cells = cut_all(one, wraps=not table.drawing)
    return kept, [one.column.header or RAILS for one in every if one not in kept]


def sized(column: Column, cells: Sequence[str]) -> Sized:
    """Return a column in its natural width. A header of numbers may wrap between words."""
    of_cells = max(map(cell_len, cells), default=0)
    width = wrapped = max(of_cells, cell_len(column.header))
    if column.right and width > of_cells:
        wrapped = max(of_cells, (width + 1) // 2, *map(cell_len, column.header.split()))
    least = max(column.least, NAME) if column.name else column.least
    shrinks = column.name or column.elastic or column.hanging
    return Sized(column, cells, width, wrapped, min(wrapped, least) if shrinks else wrapped)


def kept_columns(columns: Iterable[Sized], available: int) -> list[Sized]:
    """Return the columns that stay: the highest `spare` goes first, then the last numbers."""
    kept = list(columns)
    while sum(one.least for one in kept) + GAP * (len(kept) - 1) > available:
        numbers = [one for one in kept if one.column.right]
        if spare := max(one.column.spare for one in kept):
            kept = [one for one in kept if one.column.spare != spare]
        elif len(numbers) > 1:
            kept.remove(numbers[-1])
        else:
            break
    return kept


def fit_widths(columns: Sequence[Sized], available: int) -> None:
    """Make columns fit: wrap headers, shrink elastic columns (names last), then the widest."""

    def excess() -> int:
        return max(0, sum(one.width for one in columns) - available)

    if excess():
        for one in columns:
            one.width = min(one.width, one.wrapped)
    for one in sorted(columns, key=lambda one: (one.column.name, -one.width)):
        if one.column.elastic or one.column.hanging:
            one.width -= min(excess(), max(0, one.width - one.column.least))
    while excess() and (widest := max(columns, key=lambda one: one.width)).width > 1:
        widest.width -= 1


def cut_all(sized: Sized, wraps: bool) -> list[str]:
    """Return the cells of a column within its width. Hanging ones are wrapped; if `wraps`, also
    names and inelastic prose. Of the rest, elastic texts lose their end, others their middle."""
    column, cells, width = sized.column, sized.cells, sized.width
    prose, hangs = any(" " in cell for cell in cells), column.hanging or (column.name and wraps)
    if hangs or (wraps and prose and not (column.elastic or column.right)):
        return [wrapped(cell, width, INDENT * hangs) for cell in cells]
    if column.elastic and not column.name:
        return [cut(cell, width) for cell in cells]
    return [middle_cut(cell, width) for cell in cells]


class Wrapper(TextWrapper):
    """Breaks a word that is longer than a line after a `/`, otherwise after a `(`, `_` or `,`."""

    def _split(self, text: str) -> list[str]:
        parts = super()._split(text)
        for part in PARTS:
            long = {word: part.findall(word) for word in parts if len(word) > self.width - INDENT}
            parts = [piece for word in parts for piece in long.get(word, [word])]
        return parts


def wrapped(text: str, width: int, hanging: int = INDENT) -> str:
    """Return a text in lines of this width; all but the first hang, and units stay with numbers."""
    wrapper = Wrapper(max(1, width), subsequent_indent=" " * hanging, break_on_hyphens=False)
    return wrapper.fill(UNIT.sub("\N{NO-BREAK SPACE}", text)).replace("\N{NO-BREAK SPACE}", " ")


def middle_cut(text: str, width: int) -> str:
    """Return a text that is shortened in its middle to fit a width."""
    if cell_len(text) <= width:
        return text
    before = (width - 1) // 2
    return head(text, before) + "…" + tail(text, width - 1 - before)


def cut(text: str, width: int) -> str:
    """Return a text that is shortened at its end to fit a width."""
    return text if cell_len(text) <= width else head(text, width - 1) + "…"


def head(text: str, width: int) -> str:
    return set_cell_size(text, max(0, width)) if cell_len(text) > width else text


def tail(text: str, width: int) -> str:
    return head(text[::-1], width)[::-1]
