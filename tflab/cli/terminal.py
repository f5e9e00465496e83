"""Terminal: sentences, commands and help with lines no wider than the terminal, and progress.

`exporters.text` fits tables and views.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from tflab.escaping import visible

LEAST_WIDTH = 20
Item = TypeVar("Item")
PATIENCE_S = 1.0  # shorter work shows no progress


def descriptor(stream: TextIO) -> int:
    """Return the file descriptor of a stream; -1 in a notebook and under a test runner."""
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):
        return -1


def width(stream: TextIO | None = None) -> int:
    """Return the width of a stream's terminal in columns; 0 if unknown."""
    named = os.environ.get("COLUMNS", "")
    if named.isdigit():
        return max(int(named), LEAST_WIDTH)
    try:
        columns = os.get_terminal_size(descriptor(stream or sys.stdout)).columns
    except OSError:
        return 0
    return max(columns, LEAST_WIDTH) if columns else 0


def fold(text: str, columns: int) -> str:
    """Return a text with lines of at most this many columns; 0 means no limit. Continuation lines
    are indented by two columns. A word that is longer than a line is cut."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if 0 < columns < len(line):
            indent = line[: len(line) - len(line.lstrip())]
            if len(indent) + 2 > columns // 2:  # a separate column, as in help
                indent = indent[: columns // 3]
            wrapper = textwrap.TextWrapper(columns, indent, f"{indent}  ", break_on_hyphens=False)
            lines[number] = wrapper.fill(line.strip())
    return "\n".join(lines)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a sentence."""
    print(fold(text, width(stream)), file=stream or sys.stdout)


def say_command(about: str, line: str, stream: TextIO | None = None) -> None:
    """Print a command to type, after its purpose; on a line of its own if both do not fit."""
    columns = width(stream)
    wide = columns and len(about) + 2 + len(line) > columns
    print(f"{fold(about, columns)}\n{line}" if wide else f"{about}  {line}", file=stream)


class HelpFormatter(argparse.HelpFormatter):
    """Help with paragraphs, of which the indented ones keep their lines."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = (
            part if part.startswith(" ") else textwrap.fill(part, width, break_on_hyphens=False)
            for part in text.strip().split("\n\n")
        )
        return "\n\n".join(filled)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.ONE_OR_MORE:  # argparse repeats the name: `N [N ...]`
            return f"{action.metavar or default_metavar} ..."
        return super()._format_args(action, default_metavar)


# Progress on stderr, if that is a terminal: one bar for a command


@dataclass
class Phase:
    """The current work, and how much of it is done."""

    label: str
    total: int = 0  # 0: unknown
    whole: bool = False  # of a command, which prints between the phases that it consists of
    budget_s: float = 0  # after which no part begins; 0: there is no limit
    done: int = 0
    start: float = field(default_factory=time.monotonic)

    def left(self) -> str:
        """Return `, about 40 s left`; empty if it is unknown, or the phase takes less than 5 s."""
        past = time.monotonic() - self.start
        whole = past * self.total / self.done if self.done else self.budget_s
        whole = min(whole, self.budget_s or whole)
        return f", about {whole - past:.0f} s left" if whole > max(past, 5) else ""


phases: list[Phase] = []  # the innermost last


def share_done() -> float | None:
    """Return the share done (0 to 1) of the outermost phase that counts its parts, or None."""
    share = None
    for current in reversed(tuple(phases)):
        if current.total:
            share = min(1.0, (current.done + (share or 0.0)) / current.total)
    return share


def track(
    label: str,
    items: Iterable[Item],
    total: int,
    about: Callable[[Item], str] | None = None,
    budget_s: float = 0,
) -> Iterator[Item]:
    """Yield the items, and show how many are done. If given, `about` describes the current one, and
    `budget_s` is the time after which no item starts."""
    with phase(label, total) as current:
        current.budget_s = budget_s
        for item in items:
            if about:
                current.label = f"{label}: {about(item)}"
            yield item
            current.done += 1


@contextmanager
def phase(label: str, total: int = 0, whole: bool = False) -> Iterator[Phase]:
    """Show what is done while this is open: this phase, or the latest phase inside it. A `whole`
    phase is that of a command: it counts the phases in it, and by itself draws nothing."""
    current = Phase(label, total, whole)
    phases.append(current)
    drawn = [each for each in phases if not each.whole]
    try:
        with bar() if drawn == [current] and sys.stderr.isatty() else nullcontext():
            yield current
    finally:
        phases.remove(current)
        if phases and phases[-1].whole:
            phases[-1].done += 1


@contextmanager
def bar() -> Iterator[None]:
    """Show a bar for the command if it counts its phases, otherwise for the current phase."""
    from rich.console import Console, RenderableType
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    class Bar(Progress):
        """Computes what to draw in its own thread, so that a long first item is shown, too."""

        def get_renderables(self) -> Iterable[RenderableType]:
            for task in self.tasks:  # none yet, or the only one
                task.start_time = phases[0].start
                said = visible(phases[-1].label + phases[-1].left())
                self.update(task.id, description=escape(said))
                if (share := share_done()) is not None:
                    self.update(task.id, total=1.0, completed=max(share, task.completed))
            if time.monotonic() - phases[0].start > PATIENCE_S:
                yield from super().get_renderables()

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    to_terminal = sys.stdout.isatty()  # results that go to a file must not go to the console
    with Bar(*columns, console=console, transient=True, redirect_stdout=to_terminal) as progress:
        progress.add_task("", total=None)
        yield
