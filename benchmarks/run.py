"""The cost of watching a program: LeNet's training as a plain script, with and without tflab.run.

    PROFILERS_PYTHON=/path/to/python python -m benchmarks.run

PROFILERS_PYTHON names a Python that has TensorFlow with pyinstrument or py-spy; they are optional.
Processor time is shown beside the time that passed, because it depends less on what else runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import report, turns
from tflab import units
from tflab.records.blocks import Block, Column, Table

SCRIPT = Path(__file__).with_name("watched_program.py")
PLAIN, WATCHED = "python", "tflab.run"
IMPORT = "import tensorflow\n"
MEASURED = re.compile(r"^measured (\S+) (\S+) (\S+)$", re.M)
PEERS = Path(os.environ.get("PROFILERS_PYTHON", sys.executable))
# The profiler of TensorFlow, around all of the program
PROFILED = """
import runpy, sys, tempfile
import tensorflow as tf
sys.argv = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    tf.profiler.experimental.start(folder)
    runpy.run_path(sys.argv[0], run_name="__main__")
    tf.profiler.experimental.stop()
"""
MOST_RATIO, MOST_START_S, MOST_GROWTH = 1.05, 0.3, 16 * 2**20  # targets


class Plan(NamedTuple):
    """How much is measured."""

    steps: int  # of LeNet
    pairs: int
    rounds: int  # of the other profilers
    starts: int  # pairs of programs that only import TensorFlow
    sizes: tuple[int, int]  # steps of a small graph, for memory


WHOLE = Plan(steps=3_000, pairs=15, rounds=5, starts=11, sizes=(10_000, 100_000))
QUICK = Plan(steps=20, pairs=1, rounds=1, starts=1, sizes=(20, 40))


class Run(NamedTuple):
    """One run of the program."""

    loop_s: float  # seconds of its steps
    loop_cpu_s: float  # processor time of all threads in its steps
    whole_s: float  # seconds of the whole command
    bytes: int  # peak resident memory

    def rest_s(self) -> float:
        return self.whole_s - self.loop_s


class Results(NamedTuple):
    plan: Plan
    overhead: dict[str, list[Run]]
    peers: dict[str, list[Run]]
    starts: dict[str, list[float]]
    memory: dict[str, list[int]]  # way -> resident at most, by the number of steps


def measure(quick: bool) -> Results:
    plan = QUICK if quick else WHOLE
    with TemporaryDirectory(prefix="tflab-") as folder:
        ours = {PLAIN: (sys.executable,), WATCHED: (sys.executable, "-m", "tflab.run")}
        others = works({PLAIN: (str(PEERS),), **profilers(folder)}, "lenet", plan.steps)
        file = Path(folder, "imports.py")
        file.write_text(IMPORT)
        starts = {way: partial(turns.seconds, partial(run, ours[way], file)) for way in ours}
        if not quick:
            turns.take(starts, 1)  # files come into the system's cache
        return Results(
            plan,
            together(ours, plan),
            turns.take(others, plan.rounds),
            turns.take(starts, plan.starts),
            {way: [once(ours[way], "small", n).bytes for n in plan.sizes] for way in ours},
        )


def together(ways: Mapping[str, Sequence[str]], plan: Plan) -> dict[str, list[Run]]:
    """Both at once, each on a processor of its own, which they exchange every other time: so what
    else runs on the machine disturbs both of a pair."""
    results: dict[str, list[Run]] = {way: [] for way in ways}
    processors = sorted(os.sched_getaffinity(0))[:2]
    for index in range(plan.pairs):
        order = processors[::-1] if index % 2 else processors
        with ThreadPoolExecutor(len(ways)) as pool:
            runs = [
                pool.submit(once, ("taskset", "-c", str(number), *command), "lenet", plan.steps)
                for number, command in zip(cycle(order), ways.values(), strict=False)
            ]
            for way, run in zip(ways, runs, strict=True):
                results[way].append(run.result())
    return results


def profilers(folder: str) -> dict[str, Sequence[str]]:
    """The commands of those that are there, without the program."""
    spy, written = PEERS.with_name("py-spy"), os.path.join(folder, "profile")
    known: dict[str, Sequence[str]] = {"TensorFlow's profiler": (str(PEERS), "-c", PROFILED)}
    found = subprocess.run([PEERS, "-c", "import pyinstrument"], capture_output=True)
    if not found.returncode:
        known["pyinstrument"] = (str(PEERS), "-m", "pyinstrument", "-o", written)
    if spy.exists():
        known["py-spy"] = (str(spy), "record", "-o", written, "--", str(PEERS))
    return known


def works(
    ways: Mapping[str, Sequence[str]], network: str, steps: int
) -> dict[str, Callable[[], Run]]:
    return {way: partial(once, command, network, steps) for way, command in ways.items()}


def once(command: Sequence[str], network: str, steps: int) -> Run:
    start = time.perf_counter()
    printed = run(command, SCRIPT, network, str(steps))  # by the profiler, too
    ((loop_s, loop_cpu_s, resident),) = MEASURED.findall(printed)
    return Run(float(loop_s), float(loop_cpu_s), time.perf_counter() - start, int(resident))


def run(command: Sequence[str], *program: object) -> str:
    """What a program prints."""
    words = [*command, *map(str, program)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def blocks(results: Results) -> Iterator[Block]:
    plan, plain = results.plan, results.overhead[PLAIN]
    watched = results.overhead[WATCHED]
    of_lenet = f"Training LeNet in a plain script, {plan.steps:,} steps at batch 16"
    yield table(of_lenet, results.overhead)
    more = [after - before for before, after in zip(*results.starts.values(), strict=True)]
    grown = results.memory[WATCHED][1] - results.memory[WATCHED][0]
    yield Table(
        "tflab.run against its targets",
        (
            Column("", lambda row: row[0]),
            Column("measured", lambda row: row[1], right=True),
            Column("target", lambda row: row[2], right=True),
            Column("met", lambda row: row[3]),
        ),
        (
            target(
                "steps, time",
                ratios(watched, plain, lambda run: run.loop_s),
                units.three_digits,
                MOST_RATIO,
            ),
            target(
                "steps, processor time",
                ratios(watched, plain, lambda run: run.loop_cpu_s),
                units.three_digits,
                MOST_RATIO,
            ),
            target("start, more than an import of TensorFlow", more, seconds, MOST_START_S),
            target(
                f"memory, {plan.sizes[1]:,} steps more than {plan.sizes[0]:,}",
                [max(0, grown)],
                units.size,
                MOST_GROWTH,
            ),
        ),
    )
    sizes = " and ".join(f"{steps:,}" for steps in plan.sizes)
    yield f"Resident at most, in {sizes} steps of a small graph: " + "; ".join(
        f"{way} {' and '.join(map(units.size, sizes))}" for way, sizes in results.memory.items()
    )
    yield table(f"{of_lenet}, under other profilers", results.peers)


def target(
    what: str, values: Sequence[float], say: Callable[[float], str], most: float
) -> tuple[str, str, str, str]:
    met = "yes" if median(values) <= most else "no"
    return what, turns.spread(values, say), f"to {say(most)}", met


def seconds(value: float) -> str:
    return units.time(1e9 * value) if value >= 0 else f"-{units.time(-1e9 * value)}"


def size(values: Sequence[float]) -> str:
    return turns.spread(values, units.size)


def ratios(runs: Sequence[Run], plain: Sequence[Run], of: Callable[[Run], float]) -> list[float]:
    """Pair by pair."""
    return [of(run) / of(base) for run, base in zip(runs, plain, strict=True)]


def table(title: str, runs: Mapping[str, Sequence[Run]]) -> Table:
    plain = runs[PLAIN]

    def ratio(of: Callable[[Run], float]) -> Callable[[tuple[str, Sequence[Run]]], str]:
        return lambda row: turns.spread(ratios(row[1], plain, of), units.three_digits)

    def all_of(of: Callable[[Run], float], say: Callable[..., str]) -> Callable[..., str]:
        return lambda row: say([of(run) for run in row[1]])

    return Table(
        title,
        (
            Column("", lambda row: row[0]),
            Column("steps", all_of(lambda run: run.loop_s, turns.duration), right=True),
            Column("ratio", ratio(lambda run: run.loop_s), right=True),
            Column("of processor time", ratio(lambda run: run.loop_cpu_s), right=True),
            Column("all else", all_of(Run.rest_s, turns.duration), right=True),
            Column("memory", all_of(lambda run: run.bytes, size), right=True),
        ),
        tuple(runs.items()),
    )


if __name__ == "__main__":
    report.show("run")
