"""First run: what the first run of a step consists of, by the runtime's log.

The log says when each pass of the runtime began, how long each of Grappler's took, when kernels
were made, and what XLA compiled. Every nanosecond gets one owner: a step of the runtime that the
log marks at both ends, the run of the ops, or the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tflab.records.placed import ON_FUNCTIONS, FirstPart, FirstRun

REST = "not broken down"
RUN = "first run of the ops"
KERNELS = "kernels"
XLA = "XLA"

# The files of the runtime's source that write these lines, and the level at which they do:
# tensorflow/core/common_runtime (optimization_registry.cc, graph_execution_state.cc,
# constant_folding.cc), core/framework/op_kernel.cc, core/grappler/optimizers/meta_optimizer.cc,
# compiler/jit (device_compiler.h, device_compilation_profiler.cc); TensorFlow 2.21.0.
LEVELS = {
    "optimization_registry": 1,
    "graph_execution_state": 1,
    "meta_optimizer": 1,
    "constant_folding": 1,
    "op_kernel": 2,
    "device_compiler": 3,
    "device_compilation_profiler": 1,
}
# The prefix of Abseil's log: `I0000 00:00:1795731491.801366 23987 placer.cc:172] `
LINE = re.compile(r"[IWE]\d{4} \d\d:\d\d:(\d+)\.(\d{6}) +(\d+) ([\w.]+):\d+\] (.*)")
PASS = re.compile(r"Running optimization pass: (\S+)")
GROUP_ENDS = re.compile(r"Finished optimization of a group (\d)")
# What the runtime does after each group of passes; `Grouping` in optimization_registry.h
AFTER = {"0": "placer", "1": REST, "2": "partitioner", "3": "graph_optimizer"}
GRAPPLER = re.compile(r"(\w+)(?:\{.*)?: Graph size after: .*, time = ([\d.]+)ms\.")
SIGNATURE = re.compile(r"Instantly compiling for signature: ([^\[;]+)[^;]*; ?(.*)")
COMPILED = re.compile(r"Compiled (\S+) \d+ times, compile time: (\d+) us")
SHAPE = re.compile(r"\w+ \[[\d,]*\]")


@dataclass(frozen=True)
class Entry:
    """A line of the log."""

    ns: int  # since the epoch
    thread: str
    file: str
    text: str


def entries(log: str) -> Iterator[Entry]:
    for match in map(LINE.match, log.splitlines()):
        if match:
            seconds, micros, thread, file, text = match.groups()
            yield Entry(1_000 * int(seconds + micros), thread, file, text)


def broken_down(log: str, build: tuple[int, int], run: tuple[int, int]) -> FirstRun:
    """Return the parts of a first run, in the order in which they began.

    `build` is when the runtime prepared the step, `run` when the step ran, both from start to end
    in ns since the epoch.
    """
    read = list(entries(log))
    building = [entry for entry in read if build[0] <= entry.ns <= build[1]]
    threads = [entry.thread for entry in building if PASS.match(entry.text)]
    own = [entry for entry in building if entry.thread in threads[:1]]
    spans = [*marked(own, build[1]), *compilations(read)]
    taken: dict[tuple[str, int | None], int] = {}
    for (start, end), owner in ((build, REST), (run, RUN)):
        at = start
        for begins, ends, name, iteration in sorted(spans):
            begins, ends = max(begins, at), min(ends, end)
            if begins < ends:
                add(taken, (owner, None), begins - at)
                add(taken, (name, iteration), ends - begins)
                at = ends
        add(taken, (owner, None), end - at)
    parts = (FirstPart(name, iteration, ns) for (name, iteration), ns in taken.items() if ns)
    return FirstRun(build[1] - build[0] + run[1] - run[0], tuple(parts))


def add(taken: dict[tuple[str, int | None], int], key: tuple[str, int | None], ns: int) -> None:
    taken[key] = taken.get(key, 0) + ns


Span = tuple[int, int, str, int | None]  # start and end in ns, owner, iteration


def marked(read: Sequence[Entry], end: int) -> Iterator[Span]:
    """Yield what the thread that prepared the step did: each line ends what the one before began,
    and lines of Grappler say how long its passes took."""
    owner, since = REST, 0
    iteration, seen, folds = 0, set[str](), False
    for entry in read:
        begins = began(entry, owner, folds)
        if passed := GRAPPLER.match(entry.text):
            iteration += passed[1] in seen
            seen = {passed[1]} if passed[1] in seen else seen | {passed[1]}
            start = entry.ns - round(float(passed[2]) * 1e6)
            of_graph = owner == "grappler"
            name = passed[1] if of_graph else f"{passed[1]}{ON_FUNCTIONS}"
            yield max(since, start), entry.ns, name, iteration if of_graph else None
            if since < start:
                yield since, start, owner, None
            since = entry.ns
        elif begins:
            yield since, entry.ns, owner, None
            owner, since = begins, entry.ns
            if owner == "grappler":
                iteration, seen = 0, set()
        folds = entry.file == "constant_folding.cc" or (folds and "_SOURCE" not in entry.text)
    yield since, end, owner, None


def began(entry: Entry, owner: str, folds: bool) -> str:
    """Return what the runtime does from this line on; empty if it goes on with what it did."""
    if match := PASS.match(entry.text):
        return match[1]
    if match := GROUP_ENDS.match(entry.text):
        return AFTER.get(match[1], REST)
    if entry.text.startswith("Starting optimization for grappler item"):
        return "grappler"
    if entry.file == "graph_execution_state.cc" or entry.text.startswith("Optimized "):
        return REST
    # The executor's first kernel; before it the last clean-up makes some, to fold constants
    is_source = "{{node _SOURCE}}" in entry.text
    return KERNELS if is_source and owner == "graph_optimizer" and not folds else ""


def compilations(read: Iterable[Entry]) -> Iterator[Span]:
    """Yield what XLA compiled: `XLA: step for float [16], float []`. Clusters have no name, because
    it numbers them anew in every session."""
    signatures: dict[tuple[str, str], str] = {}
    for entry in read:
        if match := SIGNATURE.match(entry.text):
            signatures[entry.thread, match[1]] = ", ".join(SHAPE.findall(match[2]))
        elif match := COMPILED.match(entry.text):
            shapes = signatures.get((entry.thread, match[1]), "")
            name = XLA if match[1].startswith("cluster_") else f"{XLA}: {match[1]}"
            name = f"{name} for {shapes}" if shapes else name
            yield entry.ns - 1_000 * int(match[2]), entry.ns, name, None
