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
