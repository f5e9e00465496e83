"""Functions: the tracings of tf.functions, with what they took and why TensorFlow traced again, and
what XLA compiled.

A dump of XLA begins when TensorFlow has handed the code over, so a compilation took a little longer
than its dump says.
"""

from __future__ import annotations

import os
import re
import sys
from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from tflab.run.sampler import MODULE, Line, Sampler, outwards, place
from tflab.runtime import private

MOST_FUNCTIONS = 1_000  # that are kept
COMPARED = 50  # the last tracings of a function, with which the next one is compared
SUMS = ("functions", "tracings", "ns", "first_ns")
Parts = Mapping[str, str]  # part of an argument -> its type or value


class Functions:
    """What `private.watch_functions` reports of tracings. A function is its name and code, so those
    that the program makes of the same code count as one."""

    def __init__(self, sampler: Sampler, broke: Callable[[Exception], None]) -> None:
        self.sampler, self.broke = sampler, broke
        self.traced: dict[object, dict[str, Any]] = {}  # the fields of `TracedFunction`
        self.earlier: dict[object, deque[Parts]] = {}  # the arguments of the last tracings
        self.depth: Counter[int] = Counter()  # depth of nested tracings, by thread

    def begin_tracing(self, function_type: Any, options: Any) -> tuple[object, int] | None:
        """Note that a Python function is traced, which makes a graph of it."""
        thread = get_ident()
        self.depth[thread] += 1
        key = name, code = private.traced_function(options)
        known = key in self.traced or len(self.traced) < MOST_FUNCTIONS
        if self.depth[thread] > 1 or not known:
            return None  # the time of an inner tracing is part of the outer one
        new = {"name": name, "made": place(*code, MODULE) if code else ""}
        function = self.traced.setdefault(key, {**new, **dict.fromkeys(SUMS, 0)})
        earlier = self.earlier.setdefault(key, deque(maxlen=COMPARED))
        is_new, parts = private.is_new(options), private.arguments(function_type)
        function["functions"] += is_new
        line = self.sampler.line_of(outwards(sys._getframe(1)))
        function["place"] = place(*line) if line else ""
        # A new function is traced whatever others of the same code were traced for
        function["changed"] = () if is_new else nearest(parts, earlier)
        earlier.append(parts)
        return key, perf_counter_ns()

    def end_tracing(self, begun: tuple[object, int] | None) -> None:
        thread = get_ident()
        self.depth[thread] -= 1
        if not self.depth[thread]:
            del self.depth[thread]
        if begun:
            key, start_ns = begun
            function, ns = self.traced[key], perf_counter_ns() - start_ns
            function["first_ns"] = function["first_ns"] or ns
            function["tracings"] += 1
            function["ns"] += ns

    def segment(self) -> list[dict[str, Any]]:
        return [{**each} for each in [*self.traced.values()] if each["tracings"]]


def nearest(parts: Parts, earlier: Iterable[Parts]) -> tuple[tuple[str, str, str], ...]:
    """Return the arguments that differ from the most similar earlier tracing, or the last of
    several such: name, then, now."""
    changes = [
        tuple(
            (name, before.get(name, "nothing"), parts.get(name, "nothing"))
            for name in {**before, **parts}
            if before.get(name) != parts.get(name)
        )
        for before in reversed([*earlier])
    ]
    return min(changes, key=len, default=())


# Compilations

FLAGS = "XLA_FLAGS"  # read by XLA when it first compiles
LEAST_NS = 10_000_000  # a call that took less compiled nothing
MOST_SHAPES = 1_000  # combinations of shapes that are kept
# The files and the head of a module; xla/service/dump.cc, TensorFlow 2.21.0
COMPILED = re.compile(r"(module_\d+\.)(.+?)(?:__.*)?\.\d+\.before_optimizations\.txt")
INPUTS = re.compile(r"entry_computation_layout=\{\((.*?)\)->")
SHAPE = re.compile(r"\w+\[[\d,]*\]")
HEAD = 100_000  # bytes of a module that name its inputs


class Compilations:
    """The compilations so far, by the line of the call in which they happened."""

    def __init__(self, folder: str, wanted: bool = True) -> None:
        self.folder = Path(folder, "xla")
        # By function and line, the fields of `Compiled`
        self.made: dict[tuple[str, Line | None], dict[str, Any]] = {}
        self.given = os.environ.get(FLAGS)
        # Dumps that the user of the program requested are left alone.
        self.wanted = wanted and "xla_dump_to" not in (self.given or "")
        if self.wanted:
            self.folder.mkdir()
            os.putenv(FLAGS, f'{self.given or ""} --xla_dump_to="{self.folder}"'.strip())

    def look(self, line: Line | None) -> None:
        """Take in what was compiled since the last look, in a call of this line."""
        if self.wanted and (files := {path.name: path for path in self.folder.iterdir()}):
            for name, shapes, ns in modules(files):
                new = {"name": name, "place": place(*line) if line else "", "shapes": ()}
                made = self.made.setdefault((name, line), {**new, "compilations": 0, "ns": 0})
                made["compilations"] += 1
                made["ns"] += ns
                made["shapes"] = (*dict.fromkeys((*made["shapes"], shapes)),)[:MOST_SHAPES]
            for path in files.values():
                path.unlink(missing_ok=True)
            # XLA has read the flags: no process that the program starts shall write dumps
            os.putenv(FLAGS, self.given) if self.given else os.unsetenv(FLAGS)


def modules(files: dict[str, Path]) -> Iterator[tuple[str, str, int]]:
    """Yield function, shapes of the inputs, and the ns from the first file to the last."""
    for match in filter(None, map(COMPILED.fullmatch, files)):
        with files[match[0]].open(encoding="utf-8", errors="replace") as file:
            inputs = INPUTS.search(file.read(HEAD))
        own = (path for name, path in files.items() if name.startswith(match[1]))
        written = [path.stat().st_mtime_ns for path in own]
        shapes = ", ".join(SHAPE.findall(inputs[1])) if inputs else ""
        name = re.sub(r"^a_inference_(.+)_\d+$", r"\1", match[2])  # `a_inference_step_12` is `step`
        yield name, shapes, max(written) - min(written)
