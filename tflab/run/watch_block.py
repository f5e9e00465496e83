"""Watch block: a program watches a part of itself.

with tflab.watch() as seen:
    train()
print(seen)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

from tflab.cli import temporary
from tflab.records.blocks import Block
from tflab.records.watched import Watched
from tflab.run import Settings, program_graph, summary
from tflab.run.watcher import Watcher
from tflab.runtime.private import sessions


class Seen:
    """The results for a part of a program, complete when that has ended. `print` shows them."""

    run: Watched | None = None
    why = "The watched part of the program has not ended."  # why there are no results

    def blocks(self) -> tuple[Block, ...]:
        from tflab.run import view

        if self.run is None:
            return (self.why,)
        _, *others = view.blocks(self.run, with_lines=True)
        return (*view.in_short(self.run), *others)

    def __repr__(self) -> str:
        from tflab.exporters import text

        return text.as_text(self.blocks()).strip("\n")

    def _repr_html_(self) -> str:
        from tflab.exporters import text

        return text.as_html(self.blocks())


@contextmanager
def watch(overhead: float = 5.0) -> Iterator[Seen]:
    """Watch the body of a `with`: its runs in this thread, and in its sessions and functions. It
    may take `overhead` percent longer. In a process that is already watched, it has no results."""
    seen = Seen()
    if sessions.is_watched():
        seen.why = "This process is already being watched, so nothing is shown here."
        yield seen
        return
    turn_s = sys.getswitchinterval()
    with temporary.folder("run") as folder:
        given = {"FOLDER": str(folder), "START": str(perf_counter_ns()), "KEEP": "1"}
        watcher = Watcher(Settings({**given, "OVERHEAD": str(overhead), "STEPS": "0"}))
        recorder = watcher.record()
        recorder.watch_functions()
        watcher.resume()
        try:
            yield seen
        finally:
            sys.setswitchinterval(turn_s)
            watcher.stop()
            watcher.sampler.sample()
            recorder.stop()
            segment: summary.Segment = {**watcher.segment(final=True), "own_ns": recorder.own_ns}
            wall_ns = segment["own_ns"] + sum(segment["owners"].values())
            wall_ns += sum(sum(group["main_ns"]) for group in segment["groups"])
            graph, _ = program_graph.read(folder)
            seen.run = summary.watched(("a part of a program",), segment, wall_ns, 0, graph)
