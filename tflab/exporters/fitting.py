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
DEPTHS = 2  # of scopes in which equally shortened names may differ: mul, add, and y/Read, z/Read
RAILS = "lines of the drawing"  # the first column of a drawing, which has no header
BESIDE = 36  # characters next to rails below which the rails are omitted
TOGETHER = 8  # columns that are equally spare, and at least so much, are omitted together
NAME = 24  # characters of a name for which columns are omitted; a longer one is shortened first


@dataclass(frozen=True)
class Fitted:
    """A table as it fits on a line."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]  # headers of omitted columns


def fit(table: Table, rows: Sequence[Sequence[str]], available: int) -> Fitted:
    """The table's rows, given as text, within this many characters."""
    natural = [
        max(map(cell_len, cells))
        for cells in zip((column.header for column in table.columns), *rows, strict=True)
    ]
    numbers = [max(map(cell_len, cells), default=0) for cells in zip(*rows, strict=True)] or natural
    rails = natural[0] + GAP if table.drawing and not table.columns[0].header else 0
    rail_columns = [0] if rails and rails + BESIDE <= available else []
    first = 1 if rails else 0
    room = available - (rails if rail_columns else 0)
    others = kept_columns(table.columns[first:], natural[first:], room, numbers[first:])
    kept = [place + first for place in others]
    columns = [table.columns[place] for place in (*rail_columns, *kept)]
    fitted = fit_widths(
        columns[len(rail_columns) :],
        [natural[place] for place in kept],
        room,
        [numbers[place] for place in kept],
    )
    widths = [*(natural[place] for place in rail_columns), *fitted]
    kept = [*rail_columns, *kept]
    cells = [
        cut_all([row[place] for row in rows], width, column, wraps=not table.drawing)
        for place, width, column in zip(kept, widths, columns, strict=True)
    ]
    left_out = [
        column.header or RAILS for place, column in enumerate(table.columns) if place not in kept
    ]
    return Fitted(
        tuple(columns),
        tuple(widths),
        tuple(zip(*cells, strict=True)) if rows else (),
        tuple(left_out),
    )


def kept_columns(
    columns: Sequence[Column],
    natural: Sequence[int],
    available: int,
    numbers: Sequence[int] | None = None,
) -> list[int]:
    """The indices of the columns that stay: the most spare one is omitted first, the last one if
    several are equal, unless these are omitted together.

    If that is not enough, the last numbers are omitted, because a cut number is worse than none.
    `numbers` are the widths of the cells without their headers, which may be wrapped.
    """
    kept = list(range(len(columns)))
    cells = numbers or natural
    wrapped = [
        max(cells[at], two_lines(column)) if column.right else natural[at]
        for at, column in enumerate(columns)
    ]
    least = list(map(max, least_widths(columns, wrapped, NAME), wanted_widths(columns, natural)))
    while total(least, kept) > available:
        spare = max(kept, key=lambda place: (columns[place].spare, place))
        if not (most := columns[spare].spare):
            break
        together = most >= TOGETHER
        kept = [at for at in kept if at != spare and not (together and columns[at].spare == most)]
    least = least_widths(columns, list(map(max, cells, map(longest_word, columns))), 0)
    while total(least, kept) > available:
        right = [place for place in kept if columns[place].right]
        if len(right) < 2:
            break
        kept.remove(right[-1])
    return kept


def longest_word(column: Column) -> int:
    """The least width of a column's header, which is wrapped between words and never cut."""
    return max(map(cell_len, column.header.split()), default=0)


def two_lines(column: Column) -> int:
    """The least width in which a column's header takes at most two lines."""
    words = column.header.split()
    firsts = (" ".join(words[:count]) for count in range(len(words) + 1))
    rests = (" ".join(words[count:]) for count in range(len(words) + 1))
    return min(
        max(cell_len(first), cell_len(rest)) for first, rest in zip(firsts, rests, strict=True)
    )


def wanted_widths(columns: Sequence[Column], natural: Sequence[int]) -> list[int]:
    """The width of each column for which others are omitted."""
    return [min(width, column.wanted) for column, width in zip(columns, natural, strict=True)]


def least_widths(columns: Sequence[Column], natural: Sequence[int], name: int) -> list[int]:
    """The least width of each column; of names, this many characters."""
    return [
        min(width, max(column.least, name) if column.name else column.least)
        if column.elastic or column.name
        else width
        for column, width in zip(columns, natural, strict=True)
    ]


def total(widths: Sequence[int], places: Sequence[int]) -> int:
    """The width of a line with these columns."""
    return sum(widths[place] for place in places) + GAP * (len(places) - 1)


def fit_widths(
    columns: Sequence[Column],
    natural: Sequence[int],
    available: int,
    numbers: Sequence[int] | None = None,
) -> list[int]:
    """A width for each column. If the line is too long, elastic columns shrink first, names
    after the others; then headers that are longer than their numbers are wrapped, all in
    the same way; then the widest column shrinks repeatedly."""
    widths = list(natural)
    available -= GAP * (len(widths) - 1)
    for place in sorted(range(len(widths)), key=lambda at: (columns[at].name, -widths[at])):
        if columns[place].elastic:
            excess = max(0, sum(widths) - available)
            widths[place] -= min(excess, max(0, widths[place] - columns[place].least))
    for headed in (two_lines, longest_word):
        wrapped = zip(columns, widths, numbers or natural, strict=True)
        if sum(widths) > available:
            widths = [
                min(width, max(cells, headed(column))) if column.right else width
                for column, width, cells in wrapped
            ]
    while sum(widths) > available and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def cut_all(cells: Sequence[str], width: int, column: Column, wraps: bool) -> list[str]:
    """The cells of a column within a width: prose loses its end, a name its first scopes. A
    column of sentences is wrapped instead."""
    prose = any(" " in cell for cell in cells)
    if wraps and prose and not (column.elastic or column.name or column.right):
        return list(cells)
    if column.elastic and not column.name:
        return [cut(cell, width, at_end=True) for cell in cells]
    names = short_names(cells, width)
    return [names[cell] for cell in cells]


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Whole name -> its shortened form; different names have different forms."""
    short = {name: short_name(name, width) for name in names}
    for _ in range(DEPTHS):
        for group in name_collisions(short):
            short |= {name: with_difference(name, group, width) for name in group}
    for group in name_collisions(short):
        for number, name in enumerate(group, 1):
            sign = f"#{number}"
            room = width - len(sign)
            shortened = "…" + tail(name, room - 1) if "/" in name else cut(name, room, at_end=True)
            short[name] = shortened + sign
    return short


def name_collisions(short: dict[str, str]) -> list[list[str]]:
    """The groups of names with the same shortened form."""
    groups: dict[str, list[str]] = {}
    for name, cut_to in short.items():
        groups.setdefault(cut_to, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def short_name(name: str, width: int) -> str:
    """A name in scopes keeps its last ones, any other name its beginning and end."""
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
    """A shortened name with the last of its scopes that distinguishes it from others."""
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
