"""The time in which a command answers: whole processes, from start to end.

python -m benchmarks.startup
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import report, turns
from tflab.records.blocks import Block, Column, Table

COMMANDS = {
    "import tensorflow": ("-c", "import tensorflow"),
    "tflab.lifecycle --help": ("-m", "tflab.lifecycle", "--help"),
    "tflab.lifecycle --stage frontend": ("-m", "tflab.lifecycle", "--stage", "frontend"),
}

PAIRS = 10  # runs on a graph from a file, with and without confinement
GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
"""
CONFINED, FREE = "tflab.lifecycle --model FILE --stage frontend", "the same, not confined"
UNCONFINED = """
import sys
from tflab.cli import confined
from tflab.lifecycle.__main__ import main
confined.ENABLED = False
sys.exit(main(sys.argv[1:]))
"""

Times = dict[str, list[float]]


def measure(quick: bool) -> Times:
    works = {name: partial(turns.seconds, partial(run, args)) for name, args in COMMANDS.items()}
    if not quick:
        turns.take(works, 1)  # fills the system's file cache
    return turns.take(works, 1 if quick else 5) | of_file(1 if quick else PAIRS)


def of_file(pairs: int) -> Times:
    """The cost of confinement for a graph from a file."""
    with TemporaryDirectory() as folder:
        graph = Path(folder, "graph.pbtxt")
        graph.write_text(GRAPH)
        options = ("--model", str(graph), "--stage", "frontend")
        lines = {CONFINED: ("-m", "tflab.lifecycle", *options), FREE: ("-c", UNCONFINED, *options)}
        works = {name: partial(turns.seconds, partial(run, line)) for name, line in lines.items()}
        return turns.take(works, pairs)


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
        tuple((name, times[name]) for name in COMMANDS),
    )
    more = [then - now for then, now in zip(times[CONFINED], times[FREE], strict=True)]
    yield (
        f"A graph from a file is shown by a confined process: {CONFINED} takes "
        f"{turns.duration(times[CONFINED])}, {FREE} {turns.duration(times[FREE])}. In pairs, the "
        f"difference is {turns.duration(more)}."
    )


if __name__ == "__main__":
    report.show("startup")
