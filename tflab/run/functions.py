"""Functions: the tracings of tf.functions, with what they took and why TensorFlow traced again."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from time import perf_counter_ns
from typing import Any

from tflab.run.sampler import Line, Sampler
from tflab.runtime import private

MOST_FUNCTIONS = 200  # that are kept: those that took longest to trace again
COMPARED = 50  # the last tracings of a function, with which the next one is compared
Parts = Mapping[str, private.Part]


class Functions:
    """What `private.watch_functions` reports of tracings. None of its methods raises an
    exception."""

    def __init__(self, sampler: Sampler, broke: Callable[[Exception], None]) -> None:
        self.sampler, self.broke = sampler, broke
        self.traced: dict[object, Traced] = {}  # the functions that exist now
        self.kept: list[Traced] = []
        self.count = 0  # functions that were traced
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
            key, is_new = private.traced_name(options), private.is_new(options)
            if is_new or key not in self.traced:
                self.traced[key] = Traced(key[1], private.traced_code(options))
                self.keep(self.traced[key])
            line = self.sampler.line_of(sys._getframe(2))
            function = self.traced[key]
            made = self.made_of(function.code, line, parts) if is_new else [0, 0]
            return Tracing(function, line, parts, private.makes_no_variables(options), made)
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
                tracing.end()
        except Exception as error:
            self.broke(error)

    def keep(self, function: Traced) -> None:
        self.count += 1
        self.kept.append(function)
        if len(self.kept) > MOST_FUNCTIONS:
            self.kept.remove(min(self.kept[:-1], key=lambda kept: kept.ns - kept.first_ns))

    def made_of(self, code: Line | None, line: Line | None, parts: Parts) -> list[int]:
        """Return the count of functions that the program makes of its own code and calls at this
        line, and the time of their tracings."""
        if code is None or line is None or not self.sampler.is_program(code[0]):
            return [0, 0]
        key = (code, line, tuple((name, part.text) for name, part in parts.items()))
        if key not in self.made and len(self.made) >= MOST_FUNCTIONS:
            return [0, 0]
        return self.made.setdefault(key, [0, 0])

    def segment(self) -> dict[str, object]:
        anew = [
            {"made": made, "line": line, "functions": count, "ns": ns}
            for (made, line, _), (count, ns) in list(self.made.items())
            if count > 1
        ]
        functions = [function.segment() for function in list(self.kept) if function.tracings]
        return {"traced": self.count, "functions": functions, "made_anew": anew}


class Traced:
    """A function that was traced: sums of all its tracings, and the arguments of the last ones."""

    def __init__(self, name: str, code: Line | None) -> None:
        # `Model.step` of a method; another wrapper may have another name
        self.name = code[2] if code and code[2].endswith(f".{name}") else name
        self.code = code  # its first line
        self.tracings = self.ns = self.first_ns = 0
        self.last: Tracing | None = None
        self.earlier: deque[Parts] = deque(maxlen=COMPARED)
        self.may_create = True  # whether each tracing so far was allowed to create variables

    def segment(self) -> dict[str, object]:
        assert self.last
        return {
            "name": self.name,
            "code": self.code,
            "tracings": self.tracings,
            "ns": self.ns,
            "first_ns": self.first_ns,
            "line": self.last.line,
            "changed": self.last.changed,
            "created": self.last.created,
        }


class Tracing:
    """One tracing of a function."""

    def __init__(
        self, of: Traced, line: Line | None, parts: Parts, no_variables: bool, made: list[int]
    ) -> None:
        self.of, self.line, self.made = of, line, made
        self.changed = nearest(parts, of.earlier)
        # TensorFlow traces a function that created variables twice, the second time without
        again = bool(of.earlier)
        self.created = no_variables and again and not self.changed and of.may_create
        of.may_create = of.may_create and not no_variables
        of.earlier.append(parts)
        self.start_ns = perf_counter_ns()

    def end(self) -> None:
        ns, of = perf_counter_ns() - self.start_ns, self.of
        self.made[0] += 1
        self.made[1] += ns
        of.first_ns = of.first_ns or ns
        of.tracings += 1
        of.ns += ns
        of.last = self


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
