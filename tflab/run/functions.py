"""Functions: the tracings of tf.functions, with what they took and why TensorFlow traced again."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from time import perf_counter_ns
from typing import Any

from tflab.run.sampler import Line, Sampler
from tflab.runtime import private

MOST_TRACINGS = 200  # tracings that are listed, and functions that were traced again
COMPARED = 50  # the last tracings of a function, with which the next one is compared
Parts = Mapping[str, private.Part]


class Functions:
    """What `private.watch_functions` reports of tracings. None of its methods raises an
    exception."""

    def __init__(self, sampler: Sampler, broke: Callable[[Exception], None]) -> None:
        self.sampler, self.broke = sampler, broke
        self.tracings: list[Tracing] = []
        self.more = 0  # further tracings
        self.count = 0  # functions that were traced
        self.traced: dict[object, Traced] = {}  # the functions that exist now
        # By number: the functions of the listed tracings, and the costliest that were traced again
        self.listed: dict[int, Traced] = {}
        self.retraced: dict[int, Traced] = {}
        # Name -> the code of functions with it -> how many were traced
        self.codes: dict[str, Counter[Line | None]] = {}
        # Code, line of the call, arguments -> functions made of it and called there, and the ns
        self.made: dict[tuple[Line, Line, object], list[int]] = {}
        self.depth: Counter[int] = Counter()  # depth of nested tracings, by thread

    def begin_tracing(self, function_type: Any, options: Any) -> Tracing | None:
        """A Python function is traced, which makes a graph of it."""
        try:
            thread = get_ident()
            self.depth[thread] += 1
            if self.depth[thread] > 1:
                return None  # its time is part of the outer tracing
            parts = private.parts_of_arguments(function_type)
            function, is_new = self.function_of(options)
            line = self.sampler.line_of(sys._getframe(2))
            tracing = Tracing(function, line, parts, private.makes_no_variables(options))
            if is_new:
                tracing.made = self.made_of(function.code, line, parts)
            return tracing
        except Exception as error:
            self.broke(error)
            return None

    def end_tracing(self, tracing: Tracing | None) -> None:
        try:
            thread = get_ident()
            self.depth[thread] -= 1
            if not self.depth[thread]:
                del self.depth[thread]
            if tracing:
                tracing.ns = perf_counter_ns() - tracing.start_ns
                tracing.made[0] += 1
                tracing.made[1] += tracing.ns
                tracing.of.add(tracing)
                self.keep(tracing)
        except Exception as error:
            self.broke(error)

    def keep(self, tracing: Tracing) -> None:
        """Keep what is listed: the first tracings, and the functions that took longest to trace
        again."""
        function = tracing.of
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
        """Return the function that is traced, and whether it is for the first time."""
        key = private.traced_name(options)
        is_new = private.is_new(options)
        if is_new or key not in self.traced:
            name, code = key[1], private.traced_code(options)
            alike = self.codes.setdefault(name, Counter())
            alike[code] += 1
            self.count += 1
            self.traced[key] = Traced(self.count, name, code, alike[code])
        return self.traced[key], is_new

    def made_of(self, code: Line | None, line: Line | None, parts: Parts) -> list[int]:
        """Return the count of functions that the program makes of its own code and calls at this
        line, and the time of their tracings."""
        if code is None or line is None or not self.sampler.is_program(code[0]):
            return [0, 0]
        key = (code, line, tuple((name, part.text) for name, part in parts.items()))
        if key not in self.made and len(self.made) >= MOST_TRACINGS:
            return [0, 0]
        return self.made.setdefault(key, [0, 0])

    def segment(self) -> dict[str, object]:
        anew = [
            {"made": made, "line": line, "functions": count, "ns": ns}
            for (made, line, _), (count, ns) in list(self.made.items())
            if count > 1
        ]
        functions = {**self.listed, **self.retraced}.values()
        return {
            "tracings": [tracing.segment() for tracing in self.tracings],
            "more_tracings": self.more,
            "functions": [function.segment(self.codes[function.name]) for function in functions],
            "made_anew": anew,
        }


class Tracing:
    """One tracing of a function."""

    def __init__(self, of: Traced, line: Line | None, parts: Parts, no_variables: bool) -> None:
        self.of, self.line = of, line
        self.again = bool(of.earlier)
        self.changed = nearest(parts, of.earlier)
        # TensorFlow traces a function that created variables twice, the second time without
        self.created = no_variables and self.again and not self.changed and of.may_create
        self.made = [0, 0]  # where it counts as a function that was made anew
        self.ns = 0
        of.may_create = of.may_create and not no_variables
        of.earlier.append(parts)
        self.start_ns = perf_counter_ns()

    def segment(self) -> dict[str, object]:
        return {
            "function": self.of.name,
            "number": self.of.number,
            "line": self.line,
            "again": self.again,
            "changed": self.changed,
            "created": self.created,
            "ns": self.ns,
        }


class Traced:
    """A function that was traced: sums of all its tracings, and the arguments of the last ones."""

    def __init__(self, number: int, name: str, code: Line | None, ordinal: int) -> None:
        self.number, self.name = number, name
        self.code = code  # its first line
        self.ordinal = ordinal  # among the functions of this code
        self.tracings = self.ns = self.first_ns = 0
        self.last: Tracing | None = None
        self.earlier: deque[Parts] = deque(maxlen=COMPARED)
        self.may_create = True  # whether each tracing so far was allowed to create variables

    def add(self, tracing: Tracing) -> None:
        if not self.tracings:
            self.first_ns = tracing.ns
        self.tracings += 1
        self.ns += tracing.ns
        self.last = tracing

    def again_ns(self) -> int:
        return self.ns - self.first_ns

    def distinct_name(self, codes: Iterable[Line | None]) -> str:
        """Return `step`, or `B.step` or `step at train.py:9` if other code has that name."""
        others = [code for code in codes if code != self.code]
        if self.code is None or not others:
            return self.name
        file, line, name = self.code
        unique = all(code is None or code[2] != name for code in others)
        return name if unique else f"{name} at {os.path.basename(file)}:{line}"

    def segment(self, codes: Counter[Line | None]) -> dict[str, object]:
        assert self.last
        return {
            "number": self.number,
            "name": self.distinct_name(codes),
            "ordinal": self.ordinal,
            "alike": codes[self.code],
            "tracings": self.tracings,
            "ns": self.ns,
            "first_ns": self.first_ns,
            "last": self.last.segment(),
        }


def nearest(parts: Parts, earlier: Iterable[Parts]) -> list[tuple[str, str, str]]:
    """Return the arguments that differ from the most similar earlier tracing, of several the last:
    name, then, now."""
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
    """Return `float32 (8, 4)`, `float32 (7, 4)`, or `an object of Config`, `another object of
    Config`."""
    was, is_now = (part.text if part else "nothing" for part in (before, now))
    return was, f"another {is_now.removeprefix('an ')}" if was == is_now else is_now


def differing_words(change: Iterable[tuple[str, str, str]]) -> int:
    """Return how many words of the types differ: 1 for `float32 (1, 3)` and `float64 (1, 3)`."""
    return sum(
        word != other
        for _, then, now in change
        for word, other in zip_longest(then.split(" ", 1), now.split(" ", 1))
    )
