"""Text for a terminal: as wide as the terminal, with colour only there."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable
from html import escape
from typing import Any, TextIO

from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from tflab.exporters import fitting, markdown
from tflab.records.blocks import HTML, Block, Table, readable

WIDTH = 100  # of prose, and of everything if the width of the output is unknown
LEAST_WIDTH = 20
CELL_WIDTH = 200
INDENT = 2  # of tables
# How a row is drawn that stands out; what it says has the same in words or by its place
TONES = {"": "", "less": "dim", "dearest": "bold yellow", "slower": "red", "faster": "green"}


class Terminal(Console):
    """A console that raises BrokenPipeError if the reader closed the pipe: the command decides."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print(self, *objects: object, **options: Any) -> None:
        """Print. What is not a terminal gets lines without spaces at their ends."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(re.sub(" +$", "", printed.get(), flags=re.MULTILINE))
        self.file.flush()  # a reader sees each part when it is known


def console(stream: TextIO | None = None) -> Console:
    # In a notebook, rich would otherwise show what it is to write to the stream
    out = Terminal(
        file=stream or sys.stdout, force_jupyter=False, highlight=False, markup=False, emoji=False
    )
    known = out.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    out.width = max(out.width if known else WIDTH, LEAST_WIDTH)
    return out


def show_section(
    out: Console, title: str, blocks: Iterable[Block], first: bool = False, apart: bool = True
) -> None:
    """Print blocks under a title, with an empty line between them if `apart`."""
    if not first:
        out.print()
    heading, width = Text(title, style="bold"), min(out.width, WIDTH)
    ruled = heading.cell_len + 4 <= width
    out.print(Rule(heading, align="left") if ruled else heading, width=width)
    for place, block in enumerate(blocks):
        show_block(out, block, apart=apart and place > 0)


def show_blocks(blocks: Iterable[Block], stream: TextIO | None = None, width: int = 0) -> None:
    """Print blocks, by default on standard output and as wide as that is."""
    out = console(stream)
    out.width = width or out.width
    for place, block in enumerate(blocks):
        show_block(out, block, apart=place > 0)


def as_text(blocks: Iterable[Block], width: int = 0) -> str:
    """Return as text what `show_blocks` prints of these blocks."""
    stream = io.StringIO()
    show_blocks(blocks, stream, width)
    return stream.getvalue()


def as_html(blocks: Iterable[Block]) -> str:
    """Return blocks for a cell of a notebook, where long lines are scrolled."""
    return f"<pre>{escape(as_text(blocks, CELL_WIDTH))}</pre>"


def show_as(record: type, blocks: Callable[[Any], Iterable[Block]]) -> None:
    """Let a notebook show records of this type as the blocks that `blocks` makes of them."""
    HTML[record] = lambda shown: as_html(blocks(shown))


show_as(Table, lambda table: [table])


def show_block(out: Console, block: Block, apart: bool = True) -> None:
    """Print a block, separated from the one above by an empty line."""
    if apart:
        out.print()
    block = readable(block)
    if isinstance(block, str):
        out.print(Text(fitting.wrapped(block, min(out.width, WIDTH), hanging=0)))
    else:
        show_table(out, block)


def show_table(out: Console, table: Table) -> None:
    if table.title:
        out.print(Text(table.title, style="bold"))
    gap = fitting.GAP
    grid = RichTable(
        box=None if table.drawing else box.SIMPLE_HEAD,
        header_style="dim" if table.drawing else "bold",
        padding=(0, gap if table.drawing else gap - 1, 0, 0),  # the box has a column of its own
        pad_edge=False,
        show_edge=False,
        show_header=any(column.header for column in table.columns),
    )
    columns, left_out = fitting.fit(table, list(table.cells()), out.width - INDENT)
    for fitted in columns:
        header = Text(fitted.column.header, overflow="fold")
        justify: JustifyMethod = "right" if fitted.column.right else "left"
        grid.add_column(header, justify=justify, width=fitted.width, overflow="fold")
    for row, *cells in zip(table.rows, *(fitted.cells for fitted in columns), strict=True):
        grid.add_row(*map(Text, cells), style=TONES[table.tone(row)])
    out.print(Padding(grid, (0, 0, 0, INDENT), expand=False))
    omitted = f"Columns omitted (terminal too narrow): {', '.join(left_out)}." if left_out else ""
    for line in filter(None, (table.rest(), omitted)):
        out.print(Padding(Text(line, style="dim"), (0, 0, 0, INDENT), expand=False))


def show_in_format(
    name: str,
    title: str,
    about: markdown.Environment,
    blocks: Iterable[Block],
    **others: Callable[[], str],
) -> None:
    """Print blocks as text or Markdown (with the machine `about`), or what `others[name]` makes."""
    if name in others:
        print(others[name]().removesuffix("\n"))
    elif name == "markdown":
        print(markdown.page(title, about, {"": blocks}), end="")
    else:
        show_blocks(blocks)
