"""Groups: runs of sessions that do the same, as sums and samples of constant size."""

from __future__ import annotations

import os
import re
import sys
import weakref
from _thread import get_ident
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from tflab.run.sampler import MODULE, Line, Sampler, outwards, place
from tflab.runtime.private import watched_functions

if TYPE_CHECKING:
    import numpy as np

    from tflab.runtime.session import tf

KEPT_TIMES = 1001  # times of a group, for its median
MOST_BEGUN = 100_000  # different runs of a later group whose first run is recognised
KEPT_COSTS = 5  # costs of the last traces, whose median is what the next one will cost
# Types of ops that wait for data begin so. In a function the first one represents all of them.
DATA_OPS = ("IteratorGetNext", "MultiDeviceIteratorGetNext", "QueueDequeue", "ReaderRead")
WAITS = 0.1  # the share of a profiled call that waits, if the function clearly waits for data
FEW = 3  # traced runs: none of so few is left out
# The assumed cost of a trace before the first one: a share of a step, but at most so many ns,
# because a step may be long because its ops are. (With 37 op runs in some seconds: 20 to 50 ms.)
FIRST_GUESS = 0.5
MOST_GUESSED_NS = 50_000_000
# Fields that are written as they are
WRITTEN = (
    *("number", "function", "later", "fetches", "feeds"),
    *("calls", "first_runs", "cold_ns", "total_ns"),
    *("main_ns", "in_other_threads", "traced", "traced_ns", "times", "types", "ops", "not_finite"),
)


@dataclass(eq=False)
class RunGroup:
    """Runs that do the same. The last group has the runs of all that have no group of their own."""

    number: int  # that of the first tracing for all tracings of a function
    graph: tf.Graph | None  # None if it is not kept
    fetches: tuple[str, ...]
    feeds: Mapping[str, str]  # tensor -> shape
    function: str = ""  # the name of a tf.function; "" for a graph of a session
    later: bool = False  # the last group, which has several first runs
    begun: set[int] = field(default_factory=set)  # of which the first run has begun, as hashes
    fed_bytes: int = 0
    results: Sequence[str] = ()  # names for the results of a function
    kept: Results = field(default_factory=lambda: Results())
    calls: int = 0
    first_runs: int = 0
    cold_ns: int = 0  # the first runs
    total_ns: int = 0  # all other runs
    # In the main thread: first runs, others
    main_ns: list[int] = field(default_factory=lambda: [0, 0])
    in_other_threads: int = 0  # runs
    traced: int = 0
    traced_ns: int = 0
    # Of the last traces: the longer step, and reading the trace
    costs: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT_COSTS))
    traced_at_ns: int = 0  # of total_ns, when the last trace began
    # A random sample of the untraced runs after the first
    times: list[int] = field(default_factory=list)
    chance: Random = field(default_factory=lambda: Random(1))  # not that of the program
    # Node -> op runs and ns in traced runs, the runs that had any, and the most ns in one of these
    ops: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    covered: tuple[int, int] = (0, 0)  # ns of the traced runs with an op, and the most in one
    # Of traced runs: ns from the first op to the last and outside, and the bytes of copied feeds
    spans: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    copied: deque[int] = field(default_factory=lambda: deque(maxlen=KEPT_TIMES))
    types: dict[str, str] = field(default_factory=dict)  # of the nodes that ran
    stages: Counter[str] = field(default_factory=Counter)  # of tf.data, ns in profiled calls
    asked: bool = False  # whether a run was asked for its graphs
    dumped: bool = False  # whether its step was built again for its dumps, or cannot be
    executed: bytes = b""  # a RunMetadata with the graphs that ran, after that run
    # Of the last traced runs: number, start (epoch), duration and trace
    samples: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    waited_ns: int = 0  # the part of traced_ns in which an op waited for data
    data_nodes: frozenset[str] | None = None  # which wait for data; None: not yet listed
    incomplete: bool = False  # whether a run has more op runs than the runtime records
    # Fetched tensor -> the first run in which it was not finite; None if no value was checked
    not_finite: dict[str, int] | None = None
    finite: set[str] = field(default_factory=set)  # fetched numbers that were finite

    def begin(self, key: Hashable) -> bool:
        """Return whether this is the first run of the graph, fetches and feeds that `key` names."""
        begun = hash(key) if self.later else 0
        if begun in self.begun or len(self.begun) >= MOST_BEGUN:
            return False
        self.begun.add(begun)
        return True

    def add(self, took_ns: int, run: Run, main: bool) -> None:
        """Add the time of a run. One that failed counts only if it is the first."""
        counts = run.first or not run.failed
        self.calls += counts
        if run.first:
            self.first_runs += 1
            self.cold_ns += took_ns
        else:
            self.total_ns += took_ns
            if run.timed and len(self.times) < KEPT_TIMES:
                self.times.append(took_ns)
            # Algorithm R of Vitter, "Random sampling with a reservoir" (1985)
            elif run.timed:
                at = self.chance.randrange(self.calls - 1 - self.traced)
                if at < KEPT_TIMES:
                    self.times[at] = took_ns
        self.main_ns[not run.first] += took_ns * main
        self.in_other_threads += counts and not main

    def add_trace(
        self, took_ns: int, names: Sequence[str], starts: Sequence[int], ns: Sequence[int]
    ) -> None:
        """Add a traced run: its time and its op runs."""
        rows = [*zip(names, starts, ns, strict=True)]
        counts, spent = Counter(names), Counter[str]()
        for name, _, op_ns in rows:
            spent[name] += op_ns
        for name, op_ns in spent.items():
            runs, all_ns, in_runs, most_ns = self.ops.get(name, (0, 0, 0, 0))
            sums = runs + counts[name], all_ns + op_ns
            self.ops[name] = *sums, in_runs + 1, max(most_ns, op_ns)
        span_ns = max((start + ns for _, start, ns in rows), default=0) - min(starts, default=0)
        self.spans.append((span_ns, took_ns - span_ns))
        covered_ns = union_ns((start, ns) for _, start, ns in rows)
        self.covered = self.covered[0] + covered_ns, max(self.covered[1], covered_ns)
        self.traced += 1
        self.traced_ns += took_ns
        if self.data_nodes is None:
            ops = self.graph.get_operations() if self.graph is not None else ()
            nodes = {op.name for op in ops if op.type.startswith(DATA_OPS)}
            self.data_nodes = frozenset({DATA_OPS[0]} if self.function else nodes)
        self.waited_ns += union_ns(row[1:] for row in rows if row[0] in self.data_nodes)

    def drop_traces(self) -> None:
        """Forget the traced runs, and trace no more: the runtime does not record all op runs."""
        self.incomplete = True
        self.traced = self.traced_ns = self.waited_ns = 0
        self.ops, self.covered, self.samples = {}, (0, 0), []

    def scale(self) -> float:
        """Return the time of the ops in all runs but the first, as a multiple of their time in the
        traced runs. It is limited, because the time with ops cannot exceed the time of the runs."""
        if not self.traced:
            return 0
        of_runs = (self.calls - 1) / self.traced
        covered_ns = without_longest(self.traced, *self.covered)
        return min(of_runs, self.total_ns / covered_ns) if covered_ns else of_runs

    def all_waited_ns(self) -> tuple[int, int]:
        """Estimate how many ns ops waited for data in all runs but the first; return that and a
        bound.

        While the profiler starts, data arrive, so a profiled call waits less than others. If it
        waits nevertheless, all time of other calls beyond its own computing counts as waiting. If
        it hardly waits, that time is only the bound.
        """
        if not self.waited_ns:
            return 0, 0
        like_traced_ns = min(int(self.waited_ns * self.scale()), self.total_ns)
        if not self.function:
            return like_traced_ns, like_traced_ns
        rest_ns = (self.traced_ns - self.waited_ns) * (self.calls - 1) // self.traced
        most_ns = max(like_traced_ns, self.total_ns - rest_ns)
        clearly = self.waited_ns >= WAITS * self.traced_ns
        return most_ns if clearly else like_traced_ns, most_ns

    def usual_ns(self) -> int:
        """Return the approximate time of an untraced run."""
        times = self.times[-9:]
        return sorted(times)[len(times) // 2] if times else self.cold_ns

    def segment(self, graphs: list[tf.Graph]) -> dict[str, object]:
        """Return the fields that the command reads, as copies: another thread may add runs."""
        return {
            **{name: copy(getattr(self, name)) for name in WRITTEN},
            "graph": graphs.index(self.graph) + 1 if self.graph is not None else 0,
            "scale": self.scale(),
            "waited_ns": self.all_waited_ns(),
            "stages": dict(self.stages),
        }

    def affords(self, share: float) -> bool:
        """Return whether a trace fits into this share of the group's time since the last trace."""
        cost_ns = min(int(FIRST_GUESS * self.usual_ns()), MOST_GUESSED_NS)
        if self.costs:
            cost_ns = sorted(self.costs)[len(self.costs) // 2]
        since_ns = self.total_ns - self.traced_at_ns
        return not self.incomplete and cost_ns <= share * since_ns


def union_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Return how many ns at least one of these spans (start, duration) lasted."""
    total = until = 0
    for start, end in sorted((start, start + ns) for start, ns in spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def without_longest(runs: int, ns: int, most_ns: int) -> float:
    """Return the ns of these runs as if the longest, perhaps disturbed, were like the others."""
    return ns if runs < FEW else (ns - most_ns) * runs / (runs - 1)


class Plan(NamedTuple):
    """What is fetched in addition in the run of a group whose values are wanted."""

    names: Sequence[str]  # `mul:0`
    own: int  # the number of the program's own fetches, which come first
    feeds: Mapping[str, np.ndarray]
    before: Mapping[str, np.ndarray]  # variables


class Run:
    """A call from Python, which leads to one run of a graph or none, and how that is traced."""

    group: RunGroup  # once there is a run
    has_group = False
    first = False  # of its group
    builds = False  # whether the runtime builds a step of a session in it
    timed = True  # whether its time counts as that of an untraced run
    failed = False  # whether it raised an exception
    number = 0  # of a call of a function, among those of this name
    own_ns = 0  # the part of its time that is tflab's
    trace: tuple[object, object] | None = None  # tflab's own options and metadata
    begun = began_ns = 0  # calls when its profile began, and when that was
    values: Plan | None = None  # whose tensors are fetched
    fetches: Sequence[object] = ()  # in place of the program's

    def __init__(self, start_ns: int, owned: bool) -> None:
        self.start_ns, self.owned = start_ns, owned  # whether the run is all of the call
        self.handled = sys.exc_info()[1]  # by the program, when the run begins

    def join(self, group: RunGroup, key: Hashable) -> None:
        self.group, self.has_group, self.first = group, True, group.begin(key)


# Functions

COMPARED = 50  # the last tracings of a function, with which the next one is compared
SUMS = ("functions", "tracings", "ns", "first_ns")
Parts = Mapping[str, str]  # part of an argument -> its type or value


class Functions:
    """The tracings of functions. Functions of the same name and code count as one."""

    def __init__(self, sampler: Sampler, broke: Callable[[Exception], None]) -> None:
        self.sampler, self.broke = sampler, broke
        self.traced: dict[object, dict[str, Any]] = {}  # the fields of `TracedFunction`
        self.earlier: dict[object, deque[Parts]] = {}  # the arguments of the last tracings
        self.tracing: set[int] = set()  # threads

    def begin_tracing(
        self, function_type: Any, options: Any, graph: Any
    ) -> tuple[object, int] | None:
        """Note that a Python function is traced, which makes this graph of it."""
        key = graph.tflab_function = name, code = watched_functions.traced_function(options)
        if get_ident() in self.tracing:
            return None  # the time of an inner tracing is part of the outer one
        self.tracing.add(get_ident())
        new = {"name": name, "made": place(*code[0], MODULE) if code else ""}
        function = self.traced.setdefault(key, {**new, **dict.fromkeys(SUMS, 0)})
        earlier = self.earlier.setdefault(key, deque(maxlen=COMPARED))
        is_new = not options.function_cache
        parts = watched_functions.arguments(function_type)
        function["functions"] += is_new
        line = self.sampler.line_of(outwards(sys._getframe(1)))
        function["place"] = place(*line) if line else ""
        # A new function is traced whatever others of the same code were traced for
        function["changed"] = () if is_new else nearest(parts, earlier)
        earlier.append(parts)
        return key, perf_counter_ns()

    def end_tracing(self, begun: tuple[object, int] | None) -> None:
        if begun:
            self.tracing.discard(get_ident())
            key, start_ns = begun
            function, ns = self.traced[key], perf_counter_ns() - start_ns
            function["first_ns"] = function["first_ns"] or ns
            function["tracings"] += 1
            function["ns"] += ns

    def segment(self) -> list[dict[str, Any]]:
        return [{**each} for each in [*self.traced.values()] if each["tracings"]]


def nearest(parts: Parts, earlier: Sequence[Parts]) -> tuple[tuple[str, str, str], ...]:
    """Return (name, then, now) of each argument that differs from the most similar tracing."""

    def changes(before: Parts) -> tuple[tuple[str, str, str], ...]:
        both = ((n, before.get(n, "nothing"), parts.get(n, "nothing")) for n in {**before, **parts})
        return tuple((name, then, now) for name, then, now in both if then != now)

    return min(map(changes, reversed(earlier)), key=len, default=())


# Results that the program keeps

MOST_RESULTS = 4  # of a call: the others are not counted
LEAST_KEPT_CALLS = 128
KEPT = 0.9  # of the results of calls since half as many


class Results:
    """Which results of the calls of a function are still alive."""

    def __init__(self) -> None:
        self.calls = self.tensors_before = 0
        self.alive: dict[int, weakref.ref[Any]] = {}
        self.found: dict[str, Any] | None = None  # the fields of `KeptResults`

    def add(self, tensors: Sequence[Any], line: Callable[[], Line | None]) -> None:
        """Count the results of a call; at each power of two calls, note how many are alive."""
        self.calls += 1
        counted = tensors[:MOST_RESULTS]
        for tensor in counted:
            reference = weakref.ref(tensor, self.forget)
            self.alive[id(reference)] = reference
        if self.calls & (self.calls - 1) == 0:
            new, alive = self.calls // 2 * len(counted), len(self.alive)
            self.found = None
            if self.calls >= LEAST_KEPT_CALLS and alive - self.tensors_before >= KEPT * new > 0:
                at = place(*made_at) if (made_at := line()) else ""
                self.found = {"calls": self.calls, "tensors": alive, "place": at}
            self.tensors_before = alive

    def forget(self, reference: weakref.ref[Any]) -> None:
        self.alive.pop(id(reference), None)


# Compilations
#
# A dump of XLA begins when TensorFlow has handed the code over, so a compilation took a little
# longer than its dump says.

FLAGS = "XLA_FLAGS"  # read by XLA when it first compiles
LEAST_NS = 10_000_000  # a call that took less compiled nothing
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
        """Record what XLA compiled since the last look. It happened in a call of this line."""
        if self.wanted and (files := {path.name: path for path in self.folder.iterdir()}):
            for match in filter(None, map(COMPILED.fullmatch, files)):
                with files[match[0]].open(encoding="utf-8", errors="replace") as file:
                    inputs = INPUTS.search(file.read(HEAD))
                shapes = ", ".join(SHAPE.findall(inputs[1])) if inputs else ""
                own = (path for file, path in files.items() if file.startswith(match[1]))
                written = [path.stat().st_mtime_ns for path in own]
                name = re.sub(r"^a_inference_(.+)_\d+$", r"\1", match[2])  # `a_inference_step_12`
                new = {"name": name, "place": place(*line) if line else "", "shapes": ()}
                made = self.made.setdefault((name, line), {**new, "compilations": 0, "ns": 0})
                made["compilations"] += 1
                made["ns"] += max(written) - min(written)
                made["shapes"] = (*dict.fromkeys((*made["shapes"], shapes)),)
            for path in files.values():
                path.unlink(missing_ok=True)
            # XLA has read the flags: no process that the program starts shall write dumps
            os.putenv(FLAGS, self.given) if self.given else os.unsetenv(FLAGS)
