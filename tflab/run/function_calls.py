"""Functions: the calls of tf.functions, with each concrete function as a group of runs, and their
tracings.

A function has no options to trace one of its runs. Instead, TensorFlow's profiler runs during some
of its calls, within the same budget.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import zip_longest
from time import perf_counter_ns
from types import CodeType
from typing import Any

from tflab.errors import TflabError
from tflab.run.groups import RunGroup, WatchedRun
from tflab.run.sampler import Line
from tflab.runtime import private

MOST_TRACINGS = 200  # tracings that are kept; later ones are only counted
ERROR = 2  # a log level: below it, the profiler logs its start and end


class Functions:
    """What `private.watch_functions` reports. None of its methods raises an exception."""

    def __init__(self, recorder: Any) -> None:
        self.recorder, self.watcher = recorder, recorder.watcher
        self.tracings: list[dict[str, Any]] = []
        self.more = 0  # further tracings
        # Function -> the arguments of each tracing
        self.traced: dict[Any, list[dict[str, str]]] = {}
        # Code, line of the call, arguments -> functions made of it and called there, and the ns
        self.made: dict[Any, list[int]] = {}
        self.depth: dict[int, int] = {}  # depth of nested tracings, by thread
        self.begun = 0  # calls
        self.profiled: WatchedRun | None = None  # the call that is profiled now
        self.profiled_ns = 0  # when it began, after the start of the profiler
        self.profiling: private.Profiling | None = None
        self.stop: Callable[[], None] = lambda: None

    def watch(self) -> None:
        watched = ExitStack()
        try:
            watched.enter_context(private.derivations(broke=self.watcher.broke))
            self.profiling = private.Profiling(self.watcher.folder)
        except TflabError as error:
            self.recorder.notes.append(str(error))
        watched.callback(private.watch_functions(self))
        self.stop = watched.close

    def begin_function(self, function: Any) -> WatchedRun | None:
        """A function is called, or becomes a node of another function's graph."""
        try:
            called = private.called(function)
            if called is None:
                return None
            self.begun += 1
            name, graph = called
            key = ("function", name)
            group = self.recorder.groups.get(key) or self.new_group(key, function, graph)
            step = self.recorder.new_step(group, key)
            if not step.first and step.owned and group.graph is not None:
                self.profile(step)
            return step
        except Exception as error:
            self.watcher.broke(error)
            return None

    def new_group(self, key: Any, function: Any, graph: Any) -> RunGroup:
        name = getattr(graph, "name", "") or key[1].decode()
        types = private.arguments(function.function_type)
        return self.recorder.add_group(key, graph, (name,), types, function=name)

    def profile(self, step: WatchedRun) -> None:
        """Start the profiler if the budget allows it and no other thread is in a call."""
        recorder, group = self.recorder, step.group
        if self.profiling is None or recorder.log is None or len(recorder.calls) > 1:
            return
        if len(recorder.waiting) < recorder.most_waiting and group.affords(recorder.share):
            recorder.log.quiet(ERROR)
            if self.profiling.start():
                self.profiled, step.timed, step.begun = step, False, self.begun
                self.profiled_ns = perf_counter_ns()
            else:
                recorder.log.usual()

    def end(self, step: WatchedRun | None) -> None:
        if step is None:
            return
        try:
            if step is self.profiled:
                self.take(step)
        except Exception as error:
            self.watcher.broke(error)
        if step.owned:
            self.recorder.leave(step.call)

    def take(self, step: WatchedRun) -> None:
        """Stop the profiler. Its trace counts only if no other call began meanwhile."""
        assert self.profiling and self.recorder.log
        self.profiled = None
        called_ns = perf_counter_ns() - self.profiled_ns
        content = self.profiling.stop()
        self.recorder.log.usual()
        took_ns = perf_counter_ns() - step.call.start_ns
        if self.begun == step.begun:
            number = step.group.calls + 1
            self.recorder.waiting.append((step.group, number, content, took_ns, called_ns))

    # Tracings

    def begin_tracing(self, function_type: Any, options: Any) -> dict[str, Any] | None:
        """A Python function is traced, which makes a graph of it."""
        try:
            thread = get_ident()
            self.depth[thread] = self.depth.get(thread, 0) + 1
            if self.depth[thread] > 1:
                return None  # its time is part of the outer tracing
            key, name = private.traced_name(options)
            types = private.arguments(function_type)
            if is_new := private.is_new(options):
                self.traced.pop((key, name), None)
            earlier = self.traced.setdefault((key, name), [])
            line = self.watcher.sampler.line_of(sys._getframe(2))
            noted = {
                "function": name,
                "line": line,
                "changed": nearest(types, earlier),
                "again": bool(earlier),
                "start_ns": perf_counter_ns(),
            }
            if is_new:
                noted["made"] = self.made_of(private.traced_code(options), line, types)
            if len(earlier) < MOST_TRACINGS:
                earlier.append(types)
            return noted
        except Exception as error:
            self.watcher.broke(error)
            return None

    def end_tracing(self, noted: dict[str, Any] | None) -> None:
        try:
            thread = get_ident()
            self.depth[thread] -= 1
            if not self.depth[thread]:
                del self.depth[thread]
            if noted:
                noted["ns"] = perf_counter_ns() - noted.pop("start_ns")
                if made := noted.pop("made", None):
                    made[0] += 1
                    made[1] += noted["ns"]
                if len(self.tracings) < MOST_TRACINGS:
                    self.tracings.append(noted)
                else:
                    self.more += 1
        except Exception as error:
            self.watcher.broke(error)

    def made_of(
        self, code: CodeType | None, line: Line | None, types: dict[str, str]
    ) -> list[int] | None:
        """The count of functions that the program makes of its own code and calls at this line, and
        the time of their tracings."""
        if code is None or line is None or not self.watcher.sampler.is_program(code.co_filename):
            return None
        key = ((code.co_filename, code.co_firstlineno, code.co_name), line, tuple(types.items()))
        if key not in self.made and len(self.made) >= MOST_TRACINGS:
            return None
        return self.made.setdefault(key, [0, 0])

    def segment(self) -> dict[str, object]:
        anew = [
            {"made": made, "line": line, "functions": count, "ns": ns}
            for (made, line, _), (count, ns) in list(self.made.items())
            if count > 1
        ]
        return {"tracings": list(self.tracings), "more_tracings": self.more, "made_anew": anew}


def nearest(types: dict[str, str], earlier: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    """The arguments that differ from the most similar earlier tracing, of several the last: name,
    then, now."""
    changes = [
        [
            (name, before.get(name, "nothing"), types.get(name, "nothing"))
            for name in {**before, **types}
            if before.get(name) != types.get(name)
        ]
        for before in reversed(earlier)
    ]
    return min(changes, key=lambda change: (len(change), differing_words(change)), default=[])


def differing_words(change: Iterable[tuple[str, str, str]]) -> int:
    """How many words of the types differ: 1 for `float32 (1, 3)` and `float64 (1, 3)`."""
    return sum(
        word != other
        for _, then, now in change
        for word, other in zip_longest(then.split(" ", 1), now.split(" ", 1))
    )
