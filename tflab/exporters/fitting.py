"""Fitting: which columns of a table fit on a line, and how its cells are shortened.

Spare columns are omitted first, then prose is shortened, names last; a shortened name stays
different from those in the rows around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from tflab.records.blocks import Column, Table

GAP = 2  # between columns
RAILS = "lines of the drawing"  # the first column of a drawing, which has no header
BESIDE = 36  # characters next to rails below which the rails are omitted
NAME = 24  # characters of a name for which columns are omitted; a longer one is shortened first


@dataclass(frozen=True)
class Fitted:
    """A table as it fits on a line."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]  # headers of omitted columns


def fit(table: Table, rows: Sequence[Sequence[str]], available: int) -> Fitted:
    """Return the table's rows, given as text, within this many characters."""
    columns = table.columns
    cells = [max(map(cell_len, texts), default=0) for texts in zip(*rows, strict=True)]
    cells = cells or [0] * len(columns)
    natural = [max(width, cell_len(c.header)) for width, c in zip(cells, columns, strict=True)]
    # Headers of numbers are wrapped between words, into two lines or so, and never cut
    wrapped = [
        max(width, (whole + 1) // 2, *map(cell_len, column.header.split() or [""]))
        if column.right and whole > width
        else whole
        for width, whole, column in zip(cells, natural, columns, strict=True)
    ]
    drawn = table.drawing and not columns[0].header
    omitted = {0} if drawn and natural[0] + GAP + BESIDE > available else set[int]()
    least = [least_width(*pair) for pair in zip(columns, wrapped, strict=True)]
    if drawn:
        least[0] = natural[0]
    kept = kept_columns(columns, least, available, omitted)
    widths = fit_widths(
        [columns[at] for at in kept],
        [natural[at] for at in kept],
        [wrapped[at] for at in kept],
        available - GAP * (len(kept) - 1),
    )
    shown = [
        cut_all([row[at] for row in rows], width, columns[at], wraps=not table.drawing)
        for at, width in zip(kept, widths, strict=True)
    ]
    return Fitted(
        tuple(columns[at] for at in kept),
        tuple(widths),
        tuple(zip(*shown, strict=True)) if rows else (),
        tuple(c.header or RAILS for at, c in enumerate(columns) if at not in kept),
    )


def least_width(column: Column, natural: int) -> int:
    """Return the characters of a column for which others are omitted."""
    if column.name:
        return min(natural, max(column.least, NAME))
    return min(natural, column.least) if column.elastic else natural


def kept_columns(
    columns: Sequence[Column], least: Sequence[int], available: int, omitted: Iterable[int] = ()
) -> list[int]:
    """Return the indices of the columns that stay: the most spare ones are omitted first, those
    that are equally spare together; then the last numbers but one, because a cut number is worse
    than none."""
    kept = [at for at in range(len(columns)) if at not in omitted]
    while sum(least[at] for at in kept) + GAP * (len(kept) - 1) > available:
        numbers = [at for at in kept if columns[at].right]
        if spare := max(columns[at].spare for at in kept):
            kept = [at for at in kept if columns[at].spare != spare]
        elif len(numbers) > 1:
            kept.remove(numbers[-1])
        else:
            break
    return kept


def fit_widths(
    columns: Sequence[Column], natural: Sequence[int], wrapped: Sequence[int], available: int
) -> list[int]:
    """Return a width for each column. If the line is too long, elastic columns shrink first, the
    widest and names last; then headers of numbers are wrapped; then the widest column shrinks."""
    widths = list(natural)
    for at in sorted(range(len(widths)), key=lambda at: (columns[at].name, -widths[at])):
        if columns[at].elastic:
            excess = max(0, sum(widths) - available)
            widths[at] -= min(excess, max(0, widths[at] - columns[at].least))
    if sum(widths) > available:
        widths = list(map(min, widths, wrapped))
    while sum(widths) > available and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def cut_all(cells: Sequence[str], width: int, column: Column, wraps: bool) -> list[str]:
    """Return the cells of a column within a width: prose loses its end, a name its first scopes. A
    column of sentences is wrapped instead."""
    prose = any(" " in cell for cell in cells)
    if wraps and prose and not (column.elastic or column.name or column.right):
        return list(cells)
    if column.elastic and not column.name:
        return [cut(cell, width) for cell in cells]
    names = short_names(cells, width)
    return [names[cell] for cell in cells]


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Return the shortened form of each name; different names have different forms: the scope in
    which they differ, or a number."""
    short = {name: short_name(name, width) for name in names}
    for group in alike(short):
        short |= {name: with_difference(name, group, width) for name in group}
    for group in alike(short):
        for number, name in enumerate(group, 1):
            sign = f"#{number}"
            short[name] = cut(short[name], width - len(sign)) + sign
    return short


def alike(short: dict[str, str]) -> list[list[str]]:
    """Return the groups of names with the same shortened form."""
    groups: dict[str, list[str]] = {}
    for name, form in short.items():
        groups.setdefault(form, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def short_name(name: str, width: int) -> str:
    """Return a name within a width: in scopes the last ones, any other its beginning and end."""
    if cell_len(name) <= width:
        return name
    scopes = name.split("/")
    for first in range(1, len(scopes)):
        rest = "…/" + "/".join(scopes[first:])
        if cell_len(rest) <= width:
            return rest
    return "…" + tail(scopes[-1], width - 1) if len(scopes) > 1 else middle_cut(name, width)


def with_difference(name: str, group: Sequence[str], width: int) -> str:
    """Return a shortened name with the last of its scopes that distinguishes it from others:
    `…conv1/…/Filter`."""
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
    """Return a text within a width, without its middle."""
    before = (width - 1) // 2
    return head(text, before) + "…" + tail(text, width - 1 - before)


def cut(text: str, width: int) -> str:
    """Return a text within a width, without its end."""
    return text if cell_len(text) <= width else head(text, width - 1) + "…"


def head(text: str, width: int) -> str:
    return set_cell_size(text, max(0, width)) if cell_len(text) > width else text


def tail(text: str, width: int) -> str:
    return head(text[::-1], width)[::-1]
