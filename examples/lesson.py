"""Lesson: what the examples share. A quiet TensorFlow, tables, and times that can be compared.

Import it before TensorFlow, because the runtime's dumps have to be switched on before that.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tflab need not be installed

from tflab.analysis import verdicts
from tflab.cli import command
from tflab.exporters import text
from tflab.records.blocks import Block, Column, Table
from tflab.records.options import Options, Program
from tflab.records.timed import OpRun
from tflab.runtime import dumps, tf_import
from tflab.units import time as duration

OBSERVATIONS = 10  # stretches of the times that are compared
WARMUP = 3  # calls of each way that are not counted: the first ones build kernels and buffers
NUMBER = re.compile(r"-?\d[\d,.]*(e[-+]\d+)?( (x|%|s|ms|us|ns|B|KiB|MiB|GiB))?")

dumps.prepare()
with command.chatter_kept():  # TensorFlow logs while it is imported
    tf_import.load()
    from tflab.runtime import measure, session, trace


def give(chapter: Callable[[], None]) -> None:
    """Run an example: print its docstring, then its results. Errors become an exit status."""

    def body() -> int:
        print(f"\n{str(sys.modules[chapter.__module__].__doc__).strip()}")
        chapter()
        return 0

    sys.exit(command.run(body))


def show(*blocks: Block) -> None:
    """Print sentences and tables."""
    out = text.console()
    for block in blocks:
        text.show_block(out, block)


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table of any rows. Columns of numbers, with or without a unit, are aligned right."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    columns = zip(headers, zip(*cells, strict=True), strict=True)
    return Table(
        title,
        tuple(
            Column(
                header,
                itemgetter(index),
                right=all(map(NUMBER.fullmatch, column)),
            )
            for index, (header, column) in enumerate(columns)
        ),
        tuple(cells),
    )


def in_turn(
    ways: Sequence[Callable[[], object]], rounds: int, warmup: int = WARMUP
) -> list[list[int]]:
    """The times in ns of several ways to do the same, which run in turn.

    So disturbances of the machine affect all of them alike. The order is reversed in every other
    round.
    """
    times: list[list[int]] = [[] for _ in ways]
    for _ in range(warmup):
        for way in ways:
            way()
    for index in range(rounds):
        order = range(len(ways)) if index % 2 else reversed(range(len(ways)))
        for which in order:
            start = time.perf_counter_ns()
            ways[which]()
            times[which].append(time.perf_counter_ns() - start)
    return times


def in_rotation(
    program: Program, step: session.Step, setups: Sequence[Options], rounds: int
) -> list[list[int]]:
    """The times of untraced steps under several setups, which take turns, in ns."""
    size = setups[0].batch_size
    columns = list(session.feed_columns(program, "train").values())
    jobs = [measure.job_of(program, step, each) for each in setups]
    turns = measure.untraced_here(jobs, columns, (size,), rounds, turns=1)
    with closing(turns):
        next(turns)  # everything is ready
        return [times[size] for times in next(turns)]


def traced(
    live: Any, step: session.Step, batches: Iterable[Sequence[Any]]
) -> Iterator[tuple[int, dict[str, OpRun]]]:
    """Run a step in a session, once for each batch: its wall time in ns, and its ops by name."""
    run = step.callable(live, trace_level=session.FULL_TRACE)
    for number, values in enumerate(batches):
        timed, recorded = session.timed_step(run, values, number)
        runs = trace.op_runs(number, recorded.parsed().step_stats, {})
        yield timed.wall_ns, {run.name: run for run in runs}


def spread(times: Sequence[int]) -> tuple[str, str, str]:
    """Median, 10th and 90th percentile: cells for the headers `median`, `p10` and `p90`."""
    summary = measure.spread(times)
    return duration(summary.median), duration(summary.p10), duration(summary.p90)


def against(usual_ns: Sequence[int], other_ns: Sequence[int]) -> str:
    """`0.31 x` the time, or that the two differ no more than the machine does by itself.

    The times are those of `in_turn` or `in_rotation`. Neighbours are alike, so that ten stretches
    of them are ten observations, and no more.
    """
    stretch = max(1, len(usual_ns) // OBSERVATIONS)
    starts = range(0, len(usual_ns) - stretch + 1, stretch)
    ratios, control = [], []
    for start in starts:
        usual = usual_ns[start : start + stretch]
        ratios.append(median(other_ns[start : start + stretch]) / median(usual))
        control.append(median(usual[1::2] or usual) / median(usual[::2]))  # the usual with itself
    (verdict,) = verdicts.of_race([(ratios, control)])
    return f"{verdict.ratio:.2f} x" if verdict.word in ("slower", "faster") else "within the noise"
