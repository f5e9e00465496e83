"""Fitting: which columns of a table fit on a line, and how its cells are shortened.

Spare columns are omitted first, then prose is shortened, names last; a shortened name stays
different from those in the rows around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from textwrap import TextWrapper

from rich.cells import cell_len, set_cell_size

from tflab.records.blocks import Column, Table
from tflab.records.graph import grouped

GAP = 2  # between columns
INDENT = 2  # of all lines of a wrapped cell but the first
PART = re.compile(r"[^/(_,]+[/(_,]*|[/(_,]+")  # of a word, up to where a line can break
UNIT = re.compile(r"(?<=\d) (?=%|(?:[num]?s|[KMG]iB|B|x)\b)")  # the space before a unit
RAILS = "lines of the drawing"  # the first column of a drawing, which has no header
BESIDE = 36  # characters next to rails below which the rails are omitted
NAME = 24  # characters of a name for which columns are omitted; a longer one is shortened first


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
    """Return the columns that stay. The most spare ones go first, then the last of numbers."""
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
    """Reduce the widths until all columns fit: first wrap headers, then shrink elastic columns
    (names last), then always the widest column."""

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
    """Return the cells of a column within its width: prose loses its end, a name its first scopes.
    A column of sentences is wrapped instead."""
    column, cells, width = sized.column, sized.cells, sized.width
    prose = any(" " in cell for cell in cells)
    if column.hanging or (wraps and prose and not (column.elastic or column.name or column.right)):
        return [wrapped(cell, width, INDENT * column.hanging) for cell in cells]
    if column.elastic and not column.name:
        return [cut(cell, width) for cell in cells]
    names = short_names(cells, width)
    return [names[cell] for cell in cells]


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Return the shortened form of each name. Different names have different forms."""
    short = {name: short_name(name, width) for name in names}
    for group in alike(short):
        short |= {name: with_difference(name, group, width) for name in group}
    for group in alike(short):  # nothing short tells them apart
        short |= {name: wrapped(name, width) for name in group}
    return short


class Wrapper(TextWrapper):
    """Breaks a word that is longer than a line after a `/`, `(`, `_` or `,`, if it has one."""

    def _split(self, text: str) -> list[str]:
        long = [word for word in super()._split(text) if len(word) > self.width - INDENT]
        parts = {word: PART.findall(word) for word in long}
        return [part for word in super()._split(text) for part in parts.get(word, [word])]


def wrapped(text: str, width: int, hanging: int = INDENT) -> str:
    """Return a text in lines of at most this width, of which all but the first hang. A number and
    its unit stay on one line."""
    wrapper = Wrapper(max(1, width), subsequent_indent=" " * hanging, break_on_hyphens=False)
    return wrapper.fill(UNIT.sub("\N{NO-BREAK SPACE}", text)).replace("\N{NO-BREAK SPACE}", " ")


def alike(short: dict[str, str]) -> list[list[str]]:
    """Return the groups of names with the same shortened form."""
    groups = grouped((form, name) for name, form in short.items())
    return [group for group in groups.values() if len(group) > 1]


def short_name(name: str, width: int) -> str:
    """Return a name cut to a width: one with scopes at its beginning, another one in its middle."""
    if cell_len(name) <= width:
        return name
    scopes = name.split("/")
    for first in range(1, len(scopes)):
        rest = "…/" + "/".join(scopes[first:])
        if cell_len(rest) <= width:
            return rest
    return "…" + tail(scopes[-1], width - 1) if len(scopes) > 1 else middle_cut(name, width)


def with_difference(name: str, group: Sequence[str], width: int) -> str:
    """Return a name shortened to its end and the scope that distinguishes it: `…conv1/…/Filter`."""
    ends = zip(*(one.split("/")[::-1] for one in group), strict=False)
    depth = next((at for at, parts in enumerate(ends) if len({*parts}) > 1), 0)
    if not depth:
        return middle_cut(name, width)
    own = name.split("/")[::-1]
    scope = tail(own[depth], (width - 3) // 2)
    between = "/" if depth == 1 else "/…/"
    room = width - cell_len(scope + between) - 1
    if cell_len(own[0]) > room:
        between, room = "/…", width - cell_len(scope) - 3
    return f"…{scope}{between}{tail(own[0], room)}"


def middle_cut(text: str, width: int) -> str:
    """Return a text that is shortened in its middle to fit a width."""
    before = (width - 1) // 2
    return head(text, before) + "…" + tail(text, width - 1 - before)


def cut(text: str, width: int) -> str:
    """Return a text that is shortened at its end to fit a width."""
    return text if cell_len(text) <= width else head(text, width - 1) + "…"


def head(text: str, width: int) -> str:
    return set_cell_size(text, max(0, width)) if cell_len(text) > width else text


def tail(text: str, width: int) -> str:
    return head(text[::-1], width)[::-1]
