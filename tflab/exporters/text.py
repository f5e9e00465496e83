"""Text for a terminal: at most 100 columns, colour only where somebody looks at it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from tflab.records import Stage
from tflab.records.blocks import Block, Strip, Table
from tflab.views import stages

WIDTH = 100
INDENT = 2  # of tables
STRIP_LINES = 4  # of text, at most, for one line of a frame
GAP = 2  # between columns


class Terminal(Console):
    """A console that lets the command decide what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    stream = stream or sys.stdout
    probe = Console(file=stream, highlight=False)
    width = min(probe.width, WIDTH) if probe.is_terminal else WIDTH
    return Terminal(file=stream, width=width, highlight=False, markup=False, emoji=False)


def show(
    out: Console, number: int, stage: Stage, expanded: Sequence[str] = (), whole: bool = True
) -> None:
    """Print a stage: all of its blocks, or only its line."""
    if not whole:
        out.print(Text(f"{number}  {stages.title(stage)}: {stages.summary(stage)}.", style="dim"))
        return
    out.print()
    out.print(Rule(Text(f"{number}  {stages.title(stage)}", style="bold"), align="left"))
    for block in stages.blocks(stage, expanded):
        show_block(out, block)


def show_block(out: Console, block: Block) -> None:
    out.print()
    if isinstance(block, str):
        out.print(Text(printable(block)))
    elif isinstance(block, Strip):
        show_strip(out, block)
    else:
        show_table(out, block)


def show_strip(out: Console, strip: Strip) -> None:
    out.print(Text(printable(strip.title), style="bold cyan"))
    for frame in strip.frames:
        if frame.heading:
            heading = Text.assemble("  ", (printable(frame.heading), "bold"))
            heading.append("  " + cut(printable(frame.about), out.width - len(heading) - 2, True))
            out.print(heading)
        for line in frame.lines:
            whole = cut(printable(line), STRIP_LINES * (out.width - 8), at_end=True)
            for part in textwrap.wrap(
                whole, out.width, initial_indent=" " * 6, subsequent_indent=" " * 8
            ):
                out.print(Text(part))


def show_table(out: Console, table: Table) -> None:
    out.print(Text(printable(table.title), style="bold cyan"))
    grid = RichTable(
        box=None if table.drawing else box.SIMPLE_HEAD,
        header_style="dim" if table.drawing else "bold",
        padding=(0, GAP if table.drawing else GAP - 1, 0, 0),  # the box has a column of its own
        pad_edge=False,
        show_edge=False,
    )
    rows = [tuple(map(printable, cells)) for cells in table.cells()]
    widths = fit_widths(table, rows, out.width - INDENT)
    for column, width in zip(table.columns, widths, strict=True):
        grid.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            width=width,
            no_wrap=True,
        )
    for row, cells in zip(table.rows, rows, strict=True):
        grid.add_row(
            *(
                Text(cut(cell, width, at_end=column.elastic and not column.name))
                for cell, width, column in zip(cells, widths, table.columns, strict=True)
            ),
            style="dim" if table.dimmed(row) else None,
        )
    out.print(Padding(grid, (0, 0, 0, INDENT), expand=False))
    if table.more:
        out.print(Text(f"  {table.rest()}", style="dim"))


def fit_widths(table: Table, rows: Sequence[Sequence[str]], available: int) -> list[int]:
    """A width for each column. Where the line is too long the elastic columns give way first,
    then always the widest."""
    headers = [column.header for column in table.columns]
    widths = [max(map(cell_len, cells)) for cells in zip(headers, *rows, strict=True)]
    available -= GAP * (len(widths) - 1)
    for column in sorted(range(len(widths)), key=lambda index: -widths[index]):
        if table.columns[column].elastic:
            excess = max(0, sum(widths) - available)
            least = table.columns[column].least
            widths[column] -= min(excess, max(0, widths[column] - least))
    while sum(widths) > available and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def printable(text: str) -> str:
    """Without what would steer a terminal: names and code come from files of strangers."""
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


def cut(text: str, width: int, at_end: bool) -> str:
    """The text within a width: prose loses its end, a name its middle."""
    if cell_len(text) <= width:
        return text
    head = width - 1 if at_end else (width - 1) // 2
    tail = width - 1 - head
    return text[:head] + "…" + (text[-tail:] if tail else "")
