"""Terminal: sentences, commands and help, no line of them wider than it is, and progress.

`exporters.text` fits tables and views.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from tflab.escaping import visible

LEAST_WIDTH = 20
Item = TypeVar("Item")
PATIENCE_S = 1.0  # shorter work shows no progress
LINES_S = 10.0  # before a line, and between two


def width(stream: TextIO | None = None) -> int:
    """Return the columns of a stream's terminal, 0 if unknown."""
    named = os.environ.get("COLUMNS", "")
    if named.isdigit():
        return max(int(named), LEAST_WIDTH)
    stream = stream or sys.stdout
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (AttributeError, OSError, ValueError):
        return 0
    return max(columns, LEAST_WIDTH) if columns else 0


def fold(text: str, columns: int) -> str:
    """Return a text with lines of at most this many columns; 0: no limit. Continuation lines are
    indented by two columns. A word that is longer than a line is cut."""
    lines = text.split("\n")
    return "\n".join(folded(line, columns) if 0 < columns < len(line) else line for line in lines)


def folded(line: str, columns: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    if len(indent) + 2 > columns // 2:  # a separate column, as in help
        indent = indent[: columns // 3]
    return textwrap.fill(
        line.strip(),
        columns,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a sentence."""
    print(fold(text, width(stream)), file=stream or sys.stdout)


def say_command(about: str, line: str, stream: TextIO | None = None) -> None:
    """Print a command to type, after its purpose; on a line of its own if both do not fit."""
    columns = width(stream)
    wide = columns and len(about) + 2 + len(line) > columns
    print(f"{fold(about, columns)}\n{line}" if wide else f"{about}  {line}", file=stream)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help whose paragraphs keep their lines, and whose options have a line each."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.ONE_OR_MORE:  # argparse repeats the name: `N [N ...]`
            return f"{action.metavar or default_metavar} ..."
        return super()._format_args(action, default_metavar)


# Progress on stderr for anything that takes longer than a moment: a bar on a terminal; in a file or
# a pipe, a line now and then


@dataclass
class Phase:
    """The current work, and how much of it is done."""

    label: str
    total: int = 0  # 0: unknown
    done: int = 0
    start: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        seconds = f"{time.monotonic() - self.start:.0f} s"
        counted = f"{self.done} of {self.total}, {seconds}" if self.total else seconds
        return f"tflab: {visible(self.label)}: {counted}"


phases: list[Phase] = []  # the innermost last


def track(
    label: str,
    items: Iterable[Item],
    total: int,
    about: Callable[[Item], str] | None = None,
) -> Iterator[Item]:
    """Pass the items on, and show how many are done, on a terminal also the time that is left.

    `about` describes the current item, if items take long.
    """
    from rich.console import Console, RenderableType
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    start = time.monotonic()

    class Bar(Progress):
        """Its own thread calls for what to draw, so that a long first item is shown, too."""

        def get_renderables(self) -> Iterable[RenderableType]:
            if time.monotonic() - start > PATIENCE_S:
                yield from super().get_renderables()

    with (
        phase(label, total) as current,
        Bar(console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task(label, total=total)
        for item in items:
            if about:
                current.label = f"{label}: {about(item)}"
                bar.update(task, description=escape(visible(current.label)))
            yield item
            current.done += 1
            bar.advance(task)


@contextmanager
def phase(label: str, total: int = 0) -> Iterator[Phase]:
    """While this is open, and stderr is no terminal, a line every LINES_S says what is done:
    this phase, or the latest phase inside it."""
    current = Phase(label, total)
    phases.append(current)
    try:
        with lines() if len(phases) == 1 and not sys.stderr.isatty() else nullcontext():
            yield current
    finally:
        phases.remove(current)


@contextmanager
def lines() -> Iterator[None]:
    """While this is open, a thread regularly writes a line about the innermost phase."""
    over = threading.Event()

    def write() -> None:
        while not over.wait(LINES_S):
            with suppress(OSError, ValueError):  # no reader is left
                say(phases[-1].line(), sys.stderr)
                sys.stderr.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
