"""The cost of watching a program: LeNet's training as a plain script, with and without tflab.run.

python -m benchmarks.run
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import report, turns
from tflab import units
from tflab.records.blocks import Block, Column, Table

SCRIPT = Path(__file__).with_name("watched_program.py")
WAYS = {"python": (), "tflab.run": ("-m", "tflab.run")}
STEPS = (2_000, 10_000)


class Run(NamedTuple):
    """One run of the program."""

    loop_s: float  # seconds of its steps
    whole_s: float  # seconds of the whole command
    bytes: int  # peak resident memory

    def start_s(self) -> float:
        return self.whole_s - self.loop_s


def measure(quick: bool) -> dict[int, dict[str, list[Run]]]:
    """The runs of each way, by the number of steps."""
    rounds = {20: 1} if quick else {STEPS[0]: 5, STEPS[1]: 1}
    return {
        steps: turns.take({way: partial(run, way, steps) for way in WAYS}, count)
        for steps, count in rounds.items()
    }


def run(way: str, steps: int) -> Run:
    start = time.perf_counter()
    command = [sys.executable, *WAYS[way], str(SCRIPT), str(steps)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    loop_s, resident = done.stdout.split()
    return Run(float(loop_s), time.perf_counter() - start, int(resident))


def blocks(results: dict[int, dict[str, list[Run]]]) -> Iterator[Block]:
    for steps, runs in results.items():
        plain = runs["python"]
        yield Table(
            f"Training LeNet in a plain script, {steps:,} steps at batch 16",
            (
                Column("", lambda row: row[0]),
                Column("steps", lambda row: turns.duration([r.loop_s for r in row[1]]), right=True),
                Column("ratio", partial(ratio, plain), right=True),
                Column(
                    "all else",
                    lambda row: turns.duration([r.start_s() for r in row[1]]),
                    right=True,
                ),
                Column("memory", memory, right=True),
            ),
            tuple(runs.items()),
        )


def ratio(plain: list[Run], row: tuple[str, list[Run]]) -> str:
    return turns.ratio([run.loop_s for run in row[1]], [run.loop_s for run in plain])


def memory(row: tuple[str, list[Run]]) -> str:
    return turns.spread([run.bytes for run in row[1]], units.size)


if __name__ == "__main__":
    report.show("run")
