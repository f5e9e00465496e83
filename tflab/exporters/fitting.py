"""Fitting: which columns of a table a line has room for, and what its cells are cut to.

Columns that can be spared go first, then prose is cut, names last of all; and a name that is cut
stays another one than those in the rows around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from tflab.records.blocks import Column, Table

GAP = 2  # between columns
NAME = 24  # characters of a name for which columns are spared; a longer one is cut before them


@dataclass(frozen=True)
class Fitted:
    """A table as a line has room for it."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]  # headers


def fit(table: Table, rows: Sequence[Sequence[str]], available: int) -> Fitted:
    """The table's rows, given as text, within so many characters."""
    natural = [
        max(map(cell_len, cells))
        for cells in zip((column.header for column in table.columns), *rows, strict=True)
    ]
    kept = kept_columns(table.columns, natural, available)
    columns = [table.columns[place] for place in kept]
    widths = fit_widths(columns, [natural[place] for place in kept], available)
    cells = [
        cut_all([row[place] for row in rows], width, column)
        for place, width, column in zip(kept, widths, columns, strict=True)
    ]
    left_out = [column.header for place, column in enumerate(table.columns) if place not in kept]
    return Fitted(
        tuple(columns),
        tuple(widths),
        tuple(zip(*cells, strict=True)) if rows else (),
        tuple(left_out),
    )


def kept_columns(columns: Sequence[Column], natural: Sequence[int], available: int) -> list[int]:
    """The places of the columns that stay: the most spare one goes first, the last of its like."""
    least = [
        min(width, max(column.least, NAME) if column.name else column.least)
        if column.elastic or column.name
        else width
        for column, width in zip(columns, natural, strict=True)
    ]
    kept = list(range(len(columns)))
    while sum(least[place] for place in kept) + GAP * (len(kept) - 1) > available:
        spare = max(kept, key=lambda place: (columns[place].spare, place))
        if not columns[spare].spare:
            break
        kept.remove(spare)
    return kept


def fit_widths(columns: Sequence[Column], natural: Sequence[int], available: int) -> list[int]:
    """A width for each column. Where the line is too long the elastic columns give way first,
    names after the others, then always the widest."""
    widths = list(natural)
    available -= GAP * (len(widths) - 1)
    for place in sorted(range(len(widths)), key=lambda at: (columns[at].name, -widths[at])):
        if columns[place].elastic:
            excess = max(0, sum(widths) - available)
            widths[place] -= min(excess, max(0, widths[place] - columns[place].least))
    while sum(widths) > available and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def cut_all(cells: Sequence[str], width: int, column: Column) -> list[str]:
    """The cells of a column within a width: prose loses its end, a name its first scopes."""
    if column.elastic and not column.name:
        return [cut(cell, width, at_end=True) for cell in cells]
    names = short_names(cells, width)
    return [names[cell] for cell in cells]


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """By its whole name what each one is cut to; two that differ are not cut alike."""
    short = {name: short_name(name, width) for name in names}
    for group in alike(short):
        short |= {name: with_difference(name, group, width) for name in group}
    for group in alike(short):
        for number, name in enumerate(group, 1):
            sign = f"#{number}"
            short[name] = cut(name, width - len(sign), at_end=True) + sign
    return short


def alike(short: dict[str, str]) -> list[list[str]]:
    """The groups of names that are cut to the same."""
    groups: dict[str, list[str]] = {}
    for name, cut_to in short.items():
        groups.setdefault(cut_to, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def short_name(name: str, width: int) -> str:
    """A name in scopes keeps its last ones, and any other its beginning and end."""
    if cell_len(name) <= width:
        return name
    if "/" not in name:
        return cut(name, width, at_end=False)
    scopes = name.split("/")
    for first in range(1, len(scopes)):
        rest = "…/" + "/".join(scopes[first:])
        if cell_len(rest) <= width:
            return rest
    return "…" + tail(scopes[-1], width - 1)


def with_difference(name: str, group: Sequence[str], width: int) -> str:
    """A name that is cut like others, with the last of its scopes in which they differ."""
    scopes = [one.split("/")[::-1] for one in group]
    depth = next(
        (at for at, parts in enumerate(zip(*scopes, strict=False)) if len({*parts}) > 1), 0
    )
    own = name.split("/")[::-1]
    if not depth or depth >= len(own):
        return cut(name, width, at_end=False)
    scope = tail(own[depth], (width - 3) // 2)
    between = "/" if depth == 1 else "/…/"
    room = width - cell_len(scope + between) - 1
    if cell_len(own[0]) > room:
        between, room = "/…", width - cell_len(scope) - 3
    return f"…{scope}{between}{tail(own[0], room)}"


def cut(text: str, width: int, at_end: bool) -> str:
    """The text within a width, without its end or without its middle."""
    if cell_len(text) <= width:
        return text
    before = width - 1 if at_end else (width - 1) // 2
    return head(text, before) + "…" + tail(text, width - 1 - before)


def head(text: str, width: int) -> str:
    return set_cell_size(text, max(0, width)) if cell_len(text) > width else text


def tail(text: str, width: int) -> str:
    return head(text[::-1], width)[::-1]
