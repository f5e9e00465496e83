"""Within: a part of a program is watched, from the program itself.

    with tflab.watch() as seen:
        train()
    print(seen)

A hook for MonitoredSession and a callback for Keras do the same around a training.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from tflab import atomic
from tflab.records.blocks import Block
from tflab.records.watched import Watched
from tflab.run import graph as graphs
from tflab.run import recorder, sampler, summary
from tflab.run.watcher import Watcher
from tflab.runtime import private

ELSEWHERE = "This process is watched already, so nothing is shown here."
NOT_YET = "What is watched has not ended."


class Seen:
    """What was seen of a part of a program, once it has ended. `print` shows it."""

    def __init__(self) -> None:
        self.run: Watched | None = None
        self.why = NOT_YET  # there is no run

    def blocks(self) -> tuple[Block, ...]:
        from tflab.run import view

        if self.run is None:
            return (self.why,)
        _, *others = view.blocks(self.run, lines=True)
        return (*view.outside(self.run), *others)

    def __repr__(self) -> str:
        from tflab.exporters import text

        written = io.StringIO()
        text.show_blocks(self.blocks(), written)
        return written.getvalue().strip("\n")

    def _repr_html_(self) -> str:
        from tflab.exporters import notebook

        return notebook.render(self.blocks())


@contextmanager
def watch(overhead: float = 5.0) -> Iterator[Seen]:
    """Watch what the body of a `with` runs in this thread and in its sessions and functions.

    It may take `overhead` percent longer. Where the process is watched already, by tflab.run or by
    another `watch`, that goes on and nothing is seen here.
    """
    seen = Seen()
    if private.is_watched():
        seen.why = ELSEWHERE
        yield seen
        return
    turn_s = sys.getswitchinterval()
    with atomic.temporary("run") as folder:
        watcher = begin(str(folder), overhead)
        try:
            yield seen
        finally:
            sys.setswitchinterval(turn_s)
            seen.run = end(watcher)


def begin(folder: str, overhead: float) -> Watcher:
    given = {"FOLDER": folder, "OVERHEAD": str(overhead), "STEPS": "0", "KEEP": "1"}
    watcher = Watcher({**given, "START": str(perf_counter_ns())})
    watcher.recorder = recorder.begin(watcher)
    watcher.recorder.functions.watch()
    sys.setswitchinterval(sampler.TURN_S)
    watcher.resume()
    return watcher


def end(watcher: Watcher) -> Watched:
    """Stop watching, and read what was seen."""
    watcher.stop()
    watcher.sampler.sample()
    watcher.recorder.stop()
    segment: dict[str, Any] = {**watcher.segment(final=True), "own_ns": 0}
    wall_ns = sum(segment["owners"].values())
    wall_ns += sum(sum(group["main_ns"]) for group in segment["groups"])
    graph, _ = graphs.read(Path(watcher.folder))
    return summary.watched(("a part of a program",), segment, wall_ns, 0, graph)


class Hook:
    """A SessionRunHook that watches a MonitoredSession from its beginning to its end, and prints
    what was seen. After a training that failed, call `end`."""

    def __init__(self, overhead: float = 5.0) -> None:
        self.watching = watch(overhead)
        self.seen: Seen | None = None

    def begin(self) -> None:
        self.seen = self.watching.__enter__()

    def after_create_session(self, session: Any, coord: Any) -> None:
        pass

    def before_run(self, run_context: Any) -> None:
        pass

    def after_run(self, run_context: Any, run_values: Any) -> None:
        pass

    def end(self, session: Any = None) -> None:
        self.watching.__exit__(None, None, None)
        print(self.seen)


def callback(overhead: float = 5.0) -> Any:
    """A Keras callback that watches a training, and prints what was seen; its `seen` has it."""
    import keras

    class Watching(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.watching = watch(overhead)
            self.seen = self.watching.__enter__()

        def on_train_end(self, logs: Any = None) -> None:
            self.watching.__exit__(None, None, None)
            print(self.seen)

    return Watching()
