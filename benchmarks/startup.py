"""How long a command takes to answer: whole processes, from start to end.

python -m benchmarks.startup
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks import report, turns
from tflab.records.blocks import Block, Column, Table

COMMANDS = {
    "import tensorflow": ("-c", "import tensorflow"),
    "tflab.lifecycle --help": ("-m", "tflab.lifecycle", "--help"),
    "tflab.lifecycle --stage frontend": ("-m", "tflab.lifecycle", "--stage", "frontend"),
}

Times = dict[str, list[float]]


def measure(quick: bool) -> Times:
    works = {name: partial(turns.seconds, partial(run, args)) for name, args in COMMANDS.items()}
    if not quick:
        turns.take(works, 1)  # files come into the system's cache
    return turns.take(works, 1 if quick else 5)


def run(args: Sequence[str]) -> None:
    subprocess.run([sys.executable, *args], check=True, capture_output=True)


def blocks(times: Times) -> Iterator[Block]:
    yield Table(
        "Start-up: whole processes, against the import of TensorFlow alone",
        (
            Column("python ...", lambda row: row[0]),
            Column("time", lambda row: turns.duration(row[1]), right=True),
            Column(
                "ratio",
                lambda row: turns.ratio(row[1], times["import tensorflow"]),
                right=True,
            ),
        ),
        tuple(times.items()),
    )


if __name__ == "__main__":
    report.show("startup")
