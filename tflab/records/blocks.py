"""Blocks: sentences, tables and strips, before anybody thinks of spaces.

A column is a header, a function of a record and an alignment (the idea is dm-haiku's
`summarise.py`). Exporters decide how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tflab.escaping import visible

HTML: dict[type, Callable[[Any], str]] = {}  # filled by the commands, which know record and view


class Shown:
    """A result that a notebook shows as sentences and tables, once a command has said how."""

    def _repr_html_(self) -> str | None:
        html = HTML.get(type(self))
        return html(self) if html else None


@dataclass(frozen=True)
class Column:
    header: str
    cell: Callable[[Any], str]
    right: bool = False  # numbers stand on the right
    elastic: bool = False  # the first to be cut where the line gets too long
    name: bool = False  # its end says most, and no two rows are to be cut alike
    least: int = 16  # characters of an elastic column, before the others are cut too
    wanted: int = 0  # characters of an elastic column for which spare ones are left out
    spare: int = 0  # left out where the line is short, the highest first; 0: never


@dataclass(frozen=True)
class Table(Shown):
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Any, ...]
    drawing: bool = False  # rows hang together: keep them in a fixed-width face, without rules
    more: int = 0  # rows that were left out
    option: str = ""  # of the command, that chooses how many are shown
    dimmed: Callable[[Any], bool] = lambda row: False  # rows that matter less than the others

    def cells(self) -> Iterable[tuple[str, ...]]:
        return (tuple(column.cell(row) for column in self.columns) for row in self.rows)

    def dicts(self) -> list[dict[str, str]]:
        """A dict of header and text for each row, as a DataFrame takes them."""
        headers = [column.header for column in self.columns]
        return [dict(zip(headers, cells, strict=True)) for cells in self.cells()]

    def rest(self) -> str:
        """`... and 37 more (--top shows more)`; nothing where all rows are there."""
        if not self.more:
            return ""
        return f"... and {self.more:,} more{f' ({self.option} shows more)' if self.option else ''}"


@dataclass(frozen=True)
class Frame:
    """One part of a strip: a heading, what it is about, and what happened."""

    heading: str
    about: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Strip(Shown):
    """Frames to be read from top to bottom."""

    title: str
    frames: tuple[Frame, ...]


Block = str | Table | Strip


def shortened(title: str, columns: Sequence[Column], rows: Sequence[Any], most: int) -> Table:
    """A table of the first rows, which remembers how many there were."""
    return Table(title, tuple(columns), tuple(rows[:most]), more=max(0, len(rows) - most))


def readable(block: Block) -> Block:
    """The block with every text in it visible: exporters take all blocks through this."""
    if isinstance(block, str):
        return visible(block)
    if isinstance(block, Strip):
        frames = (
            Frame(visible(frame.heading), visible(frame.about), tuple(map(visible, frame.lines)))
            for frame in block.frames
        )
        return Strip(visible(block.title), tuple(frames))
    columns = tuple(map(readable_column, block.columns))
    return replace(block, title=visible(block.title), columns=columns)


def readable_column(column: Column) -> Column:
    return replace(
        column, header=visible(column.header), cell=lambda row: visible(column.cell(row))
    )
