"""Functions: the calls of tf.functions, with each concrete function as a group of runs, and their
tracings.

A function has no options to trace one of its runs. Instead, TensorFlow's profiler runs during some
of its calls, within the same budget.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import zip_longest
from time import perf_counter_ns
from types import FrameType
from typing import Any

from tflab.errors import TflabError
from tflab.run.groups import RunGroup, WatchedRun
from tflab.run.sampler import Line
from tflab.runtime import private

MOST_TRACINGS = 200  # tracings that are listed, and functions that were traced again
COMPARED = 50  # the last tracings of a function, with which the next one is compared
ERROR = 2  # a log level: below it, the profiler logs its start and end


class Functions:
    """What `private.watch_functions` reports. None of its methods raises an exception."""

    def __init__(self, recorder: Any) -> None:
        self.recorder, self.watcher = recorder, recorder.watcher
        self.tracings: list[dict[str, Any]] = []
        self.more = 0  # further tracings
        self.count = 0  # functions that were traced
        self.traced: dict[Any, Traced] = {}  # the functions that exist now
        # By number: the functions of the listed tracings, and the costliest that were traced again
        self.listed: dict[int, Traced] = {}
        self.retraced: dict[int, Traced] = {}
        # Name -> the code of functions with it -> how many were traced
        self.codes: dict[str, Counter[Line | None]] = {}
        self.ways: dict[int, int] = {}  # hash of lines of libraries -> its number
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
            self.recorder.waiting.append((step.group, content, took_ns, called_ns))

    # Tracings

    def begin_tracing(self, function_type: Any, options: Any) -> dict[str, Any] | None:
        """A Python function is traced, which makes a graph of it."""
        try:
            thread = get_ident()
            self.depth[thread] = self.depth.get(thread, 0) + 1
            if self.depth[thread] > 1:
                return None  # its time is part of the outer tracing
            parts = private.parts_of_arguments(function_type)
            function, is_new = self.function_of(options)
            frame = sys._getframe(2)
            line = self.watcher.sampler.line_of(frame)
            changed, twice = nearest(parts, function.earlier), private.makes_no_variables(options)
            noted = {
                "function": function,
                "line": line,
                "changed": changed,
                "again": bool(function.earlier),
                "created": twice and not changed and function.may_create and bool(function.earlier),
                "way": self.way_of(frame) if len(self.tracings) < MOST_TRACINGS else 0,
                "start_ns": perf_counter_ns(),
            }
            if is_new:
                noted["made"] = self.made_of(function.code, line, parts)
            function.may_create = function.may_create and not twice
            function.earlier.append(parts)
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
                function, made = noted.pop("function"), noted.pop("made", None)
                ns = perf_counter_ns() - noted.pop("start_ns")
                tracing = {"function": function.name, "number": function.number, **noted, "ns": ns}
                if made:
                    made[0] += 1
                    made[1] += ns
                function.add(tracing)
                self.keep(function, tracing)
        except Exception as error:
            self.watcher.broke(error)

    def keep(self, function: Traced, tracing: dict[str, Any]) -> None:
        """Keep what is listed: the first tracings, and the functions that took longest to trace
        again."""
        if len(self.tracings) < MOST_TRACINGS:
            self.tracings.append(tracing)
            self.listed[function.number] = function
        else:
            self.more += 1
        if function.tracings > 1:
            self.retraced[function.number] = function
        if len(self.retraced) > MOST_TRACINGS:
            del self.retraced[min(self.retraced, key=lambda n: self.retraced[n].again_ns())]

    def function_of(self, options: Any) -> tuple[Traced, bool]:
        """The function that is traced, and whether it is for the first time."""
        key = private.traced_name(options)
        is_new = private.is_new(options)
        if is_new or key not in self.traced:
            name, code = key[1], private.traced_code(options)
            alike = self.codes.setdefault(name, Counter())
            alike[code] += 1
            self.count += 1
            self.traced[key] = Traced(self.count, name, code, alike[code])
        return self.traced[key], is_new

    def way_of(self, frame: FrameType | None) -> int:
        """A number for the lines of libraries through which a line of the program led here."""
        lines = []
        while frame and not self.watcher.sampler.is_program(frame.f_code.co_filename):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back
        return self.ways.setdefault(hash(tuple(lines)), len(self.ways) + 1)

    def made_of(
        self, code: Line | None, line: Line | None, parts: dict[str, private.Part]
    ) -> list[int] | None:
        """The count of functions that the program makes of its own code and calls at this line, and
        the time of their tracings."""
        if code is None or line is None or not self.watcher.sampler.is_program(code[0]):
            return None
        key = (code, line, tuple((name, part.text) for name, part in parts.items()))
        if key not in self.made and len(self.made) >= MOST_TRACINGS:
            return None
        return self.made.setdefault(key, [0, 0])

    def segment(self) -> dict[str, object]:
        anew = [
            {"made": made, "line": line, "functions": count, "ns": ns}
            for (made, line, _), (count, ns) in list(self.made.items())
            if count > 1
        ]
        functions = {**self.listed, **self.retraced}.values()
        return {
            "tracings": list(self.tracings),
            "more_tracings": self.more,
            "functions": [function.segment(self.codes[function.name]) for function in functions],
            "made_anew": anew,
        }


class Traced:
    """A function that was traced: sums of all its tracings, and the arguments of the last ones."""

    def __init__(self, number: int, name: str, code: Line | None, ordinal: int) -> None:
        self.number, self.name = number, name
        self.code = code  # its first line
        self.ordinal = ordinal  # among the functions of this code
        self.tracings = self.ns = self.first_ns = 0
        self.last: dict[str, Any] = {}
        self.earlier: deque[dict[str, private.Part]] = deque(maxlen=COMPARED)
        self.may_create = True  # whether each tracing so far was allowed to create variables

    def add(self, tracing: dict[str, Any]) -> None:
        if not self.tracings:
            self.first_ns = tracing["ns"]
        self.tracings += 1
        self.ns += tracing["ns"]
        self.last = tracing

    def again_ns(self) -> int:
        return self.ns - self.first_ns

    def distinct_name(self, codes: list[Line | None]) -> str:
        """`step`, or `B.step` or `step at train.py:9` if other code with the name was traced."""
        if self.code is None or len(codes) == 1:
            return self.name
        file, line, name = self.code
        alike = sum(code is not None and code[2] == name for code in codes)
        return name if alike == 1 else f"{name} at {os.path.basename(file)}:{line}"

    def segment(self, codes: Counter[Line | None]) -> dict[str, object]:
        return {
            "number": self.number,
            "name": self.distinct_name([*codes]),
            "ordinal": self.ordinal,
            "alike": codes[self.code],
            "tracings": self.tracings,
            "ns": self.ns,
            "first_ns": self.first_ns,
            "last": self.last,
        }


def nearest(
    parts: dict[str, private.Part], earlier: Iterable[dict[str, private.Part]]
) -> list[tuple[str, str, str]]:
    """The arguments that differ from the most similar earlier tracing, of several the last: name,
    then, now."""
    changes = [
        [
            (name, *differing(before.get(name), parts.get(name)))
            for name in {**before, **parts}
            if before.get(name) != parts.get(name)
        ]
        for before in reversed([*earlier])
    ]
    return min(changes, key=lambda change: (len(change), differing_words(change)), default=[])


def differing(before: private.Part | None, now: private.Part | None) -> tuple[str, str]:
    """`float32 (8, 4)`, `float32 (7, 4)`, or `an object of Config`, `another object of Config`."""
    was, is_now = (part.text if part else "nothing" for part in (before, now))
    return was, f"another {is_now.removeprefix('an ')}" if was == is_now else is_now


def differing_words(change: Iterable[tuple[str, str, str]]) -> int:
    """How many words of the types differ: 1 for `float32 (1, 3)` and `float64 (1, 3)`."""
    return sum(
        word != other
        for _, then, now in change
        for word, other in zip_longest(then.split(" ", 1), now.split(" ", 1))
    )
