"""Progress on stderr, for whatever takes longer than a moment. Silent where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
PATIENCE_S = 1.0  # nothing is drawn for what is over sooner


def track(label: str, items: Iterable[Item], total: int) -> Iterator[Item]:
    """Pass the items on, and draw a bar with the time left once it has taken a while."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    start = time.monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = None
        for done, item in enumerate(items):
            if task is None and time.monotonic() - start > PATIENCE_S:
                task = bar.add_task(label, total=total, completed=done)
            yield item
            if task is not None:
                bar.advance(task)
