"""Blocks: facts, sentences and tables, independent of their layout.

A column is a header, a function of a record and an alignment (after dm-haiku's `summarise.py`).
Exporters decide how it looks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, TypeAlias

from tflab.escaping import visible

LONGEST = 40  # rows of a table; JSON has the rest

Row: TypeAlias = Any  # of a table: a record, of which each column shows something

# filled by the commands, which know the record and its view
HTML: dict[type, Callable[[Row], str]] = {}


class Shown:
    """A result that a notebook shows as sentences and tables, if `HTML` says how."""

    def _repr_html_(self) -> str | None:
        html = HTML.get(type(self))
        return html(self) if html else None


@dataclass(frozen=True)
class Column:
    header: str
    cell: Callable[[Row], str]
    right: bool = False  # align right, as for numbers
    elastic: bool = False  # shortened first if the line gets too long
    name: bool = False  # its end matters most, and no two rows may be shortened to the same text
    least: int = 16  # characters of an elastic column for which spare columns are omitted
    hanging: bool = False  # all but the first line of a wrapped cell begin further in
    spare: int = 0  # omitted if the line is too short, with its equals, the highest first; 0: never


def numbers(header: str, cell: Callable[[Row], str], spare: int = 0) -> Column:
    """Return a column of numbers."""
    return Column(header, cell, right=True, spare=spare)


def no_tone(row: Row) -> str:
    return ""


@dataclass(frozen=True)
class Table(Shown):
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    drawing: bool = False  # rows belong together: use a fixed-width font, without rules
    more: int = 0  # number of rows that were omitted
    option: str = ""  # the option of the command that shows more, and how much: `--full shows all`
    # all rows, if `rows` are fewer or folded
    everything: Callable[[], Iterable[Row]] | None = field(default=None, compare=False, repr=False)
    # What a row is among the others: dearest, slower, faster, or less: it matters less
    tone: Callable[[Row], str] = no_tone

    def cells(self) -> Iterable[tuple[str, ...]]:
        return (tuple(column.cell(row) for column in self.columns) for row in self.rows)

    def rest(self) -> str:
        """Return `... and 37 more (--top shows more)`; empty if all rows are shown."""
        more = f"... and {self.more:,} more" if self.more else ""
        option = f"({self.option})" if self.option and (self.more or self.everything) else ""
        return " ".join(filter(None, (more, option)))


Block = str | Table


@dataclass(frozen=True)
class Fact:
    """One result: a label, a value with its unit, and what the value is."""

    label: str
    value: str
    note: str = ""
    detail: bool = False  # left out on the one screen of all stages
    brief: bool = False  # only there, instead of details or a table

    @property
    def text(self) -> str:
        return ", ".join(filter(None, (self.value, self.note)))


def fact_table(facts: Iterable[Fact]) -> Table:
    """Return a table of one fact per line, without a title or headers."""
    return table("", facts, Column("", lambda fact: fact.label), Column("", lambda fact: fact.text))


def sentences(title: str, said: Iterable[str]) -> Table:
    """Return a table of sentences, without headers."""
    return Table(title, (Column("", str),), tuple(said))


def listing(
    title: str, parts: Iterable[tuple[str, Sequence[str]]], most: int = sys.maxsize
) -> Table:
    """Return a table without headers: each heading, and beside it the lines of its part. Of a part
    with more than `most` lines, it has the first ones, and the number of the others."""
    rows: list[tuple[str, str]] = []
    for heading, lines in parts:
        rest = [f"... and {len(lines) - most:,} more"] * (len(lines) > most)
        rows += zip(chain([heading], repeat("")), (*lines[:most], *rest), strict=False)
    columns = Column("", itemgetter(0)), Column("", itemgetter(1), hanging=True)
    return Table(title, columns, tuple(rows))


def dearest(rows: Iterable[Row], cost: Callable[[Row], float]) -> Callable[[Row], str]:
    """Return a function that gives the row with the highest cost a tone, and other rows none."""
    most = max(rows, key=cost, default=None)
    return lambda row: "dearest" if row is most else ""


def table(
    title: str,
    rows: Iterable[Row],
    *columns: Column,
    most: int = LONGEST,
    drawing: bool = False,
    tone: Callable[[Row], str] = no_tone,
) -> Table:
    """Return a table of the first rows, with the number of rows that it omits."""
    every = tuple(rows)
    shown = Table(title, columns, every[:most], drawing, tone=tone)
    if len(every) <= most:
        return shown
    return replace(shown, more=len(every) - most, everything=lambda: every)


def in_full(block: Block) -> Block:
    """Return the block with all that it omits and folds, for `--full`."""
    if isinstance(block, Table) and block.everything:
        return replace(block, rows=tuple(block.everything()), everything=None, more=0, option="")
    return block


def offered(block: Block, option: str) -> Block:
    """Return the block. If it omits or folds rows, it names the option that shows them."""
    if isinstance(block, Table) and block.everything:
        return replace(block, option=option)
    return block


def readable(block: Block) -> Block:
    """Return the block with all of its text made visible: exporters pass all through this."""
    if isinstance(block, str):
        return visible(block)
    columns = tuple(map(readable_column, block.columns))
    return replace(block, title=visible(block.title), columns=columns)


def readable_column(column: Column) -> Column:
    return replace(
        column, header=visible(column.header), cell=lambda row: visible(column.cell(row))
    )
