"""Functions: the tracings of tf.functions, with what they took and why TensorFlow traced again."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter_ns
from typing import Any

from tflab.run.sampler import MODULE, Sampler, outwards, place
from tflab.runtime import private

MOST_FUNCTIONS = 1_000  # that are kept
COMPARED = 50  # the last tracings of a function, with which the next one is compared
Parts = Mapping[str, str]  # part of an argument -> its type or value


class Functions:
    """What `private.watch_functions` reports of tracings. A function is its name and code, so those
    that the program makes of the same code count as one."""

    def __init__(self, sampler: Sampler, broke: Callable[[Exception], None]) -> None:
        self.sampler, self.broke = sampler, broke
        self.traced: dict[object, Traced] = {}
        self.depth: Counter[int] = Counter()  # depth of nested tracings, by thread

    def begin_tracing(self, function_type: Any, options: Any) -> tuple[Traced, int] | None:
        """A Python function is traced, which makes a graph of it."""
        thread = get_ident()
        self.depth[thread] += 1
        key = name, code = private.traced_function(options)
        known = key in self.traced or len(self.traced) < MOST_FUNCTIONS
        if self.depth[thread] > 1 or not known:
            return None  # the time of an inner tracing is part of the outer one
        function = self.traced.setdefault(key, Traced(name, code))
        is_new = private.is_new(options)
        function.functions += is_new
        parts = private.arguments(function_type)
        line = self.sampler.line_of(outwards(sys._getframe(1)))
        function.place = place(*line) if line else ""
        # A new function is traced whatever others of the same code were traced for
        function.changed = () if is_new else nearest(parts, function.earlier)
        function.earlier.append(parts)
        return function, perf_counter_ns()

    def end_tracing(self, begun: tuple[Traced, int] | None) -> None:
        thread = get_ident()
        self.depth[thread] -= 1
        if not self.depth[thread]:
            del self.depth[thread]
        if begun:
            function, start_ns = begun
            function.add(perf_counter_ns() - start_ns)

    def segment(self) -> list[dict[str, object]]:
        """Return the fields of `TracedFunction`."""
        functions = [function for function in [*self.traced.values()] if function.tracings]
        return [{name: getattr(each, name) for name in FIELDS} for each in functions]


FIELDS = ("name", "made", "functions", "tracings", "ns", "first_ns", "place", "changed")


class Traced:
    """A function that was traced: sums of all its tracings, and the arguments of the last ones."""

    def __init__(self, name: str, code: tuple[str, int] | None) -> None:
        self.name = name
        self.made = place(*code, MODULE) if code else ""
        self.functions = self.tracings = self.ns = self.first_ns = 0
        self.place = ""  # of the last tracing
        self.changed: tuple[tuple[str, str, str], ...] = ()  # at the last tracing
        self.earlier: deque[Parts] = deque(maxlen=COMPARED)

    def add(self, ns: int) -> None:
        """Add the time of a tracing."""
        self.first_ns = self.first_ns or ns
        self.tracings += 1
        self.ns += ns


def nearest(parts: Parts, earlier: Iterable[Parts]) -> tuple[tuple[str, str, str], ...]:
    """Return the arguments that differ from the most similar earlier tracing, of several the last:
    name, then, now."""
    changes = [
        tuple(
            (name, before.get(name, "nothing"), parts.get(name, "nothing"))
            for name in {**before, **parts}
            if before.get(name) != parts.get(name)
        )
        for before in reversed([*earlier])
    ]
    return min(changes, key=len, default=())
