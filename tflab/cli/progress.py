"""Progress on stderr for anything that takes longer than a moment: a bar on a terminal; in a
file or a pipe, a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TypeVar

from tflab.cli import folding
from tflab.escaping import visible

Item = TypeVar("Item")
PATIENCE_S = 1.0  # shorter work shows no progress
LINES_S = 10.0  # before a line, and between two


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
            with suppress(OSError, ValueError):  # nobody reads it any more
                folding.say(phases[-1].line(), sys.stderr)
                sys.stderr.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
