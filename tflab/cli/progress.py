"""Progress on stderr, for whatever takes longer than a moment. Silent where nobody watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tflab.letters import visible

Item = TypeVar("Item")
PATIENCE_S = 1.0  # nothing is drawn for what is over sooner


def track(
    label: str,
    items: Iterable[Item],
    total: int,
    about: Callable[[Item], str] | None = None,
) -> Iterator[Item]:
    """Pass the items on, and draw a bar with the time left once it has taken a while.

    `about` says which item is worked on, where each of them takes long.
    """
    from rich.console import Console, RenderableType
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    start = time.monotonic()

    class Bar(Progress):
        """Its own thread asks what to draw, so that a long first item shows as well."""

        def get_renderables(self) -> Iterable[RenderableType]:
            if time.monotonic() - start > PATIENCE_S:
                yield from super().get_renderables()

    with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        for item in items:
            if about:
                bar.update(task, description=escape(f"{label}: {visible(about(item))}"))
            yield item
            bar.advance(task)
