"""Verdicts, tested: how often equal steps are called different, and how often a slowdown of a tenth
is found.

A training step of LeNet is raced, as by `compare --configs`, against itself, and against itself
with products of small matrices at its end, as many as take a tenth of the step. One race has all
variants in one process, as for graph passes and threads; another has processes for each, as oneDNN
needs.

    python -m benchmarks.verdicts --seconds 1800
    python -m benchmarks.verdicts --seconds 1800 --load 2
    python -m benchmarks.verdicts --seconds 6000 --programs 10

With --load, busy processes run beside it. With --programs, it compares so many pairs of identical
programs, and as many in which the second one's step has a tenth more products, as `compare A.py
B.py` does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice
from statistics import fmean, median
from typing import Any

from tflab.analysis import verdicts
from tflab.cli import command, terminal
from tflab.errors import TflabError
from tflab.exporters import json, text
from tflab.records.blocks import Block, Column, Table
from tflab.records.measured import Verdict
from tflab.runtime import processes

SIZES = (1, 16, 64)
TENTH = 0.1
SECONDS = 1_800
SAME, SLOWER = "same", "slower"
EQUALS = (SAME, f"{SAME} 2", f"{SAME} 3")  # of a race in one process
PREPARING = 0.3  # share of the time after which no further batch size is prepared
SIDE = 48  # of the matrices
PRODUCTS, MOST_PRODUCTS = 16, 2_000  # how many are tried first, and at most
SCALINGS = 6  # of that number, at most, each by what the products added
CLOSE = 0.01  # to a tenth: no further one
OBSERVATIONS, ROUNDS = 6, 20  # to measure what they add
Observed = Mapping[Any, Any]  # the times of every step, by batch size
KINDS = ("in one process", "in their own")


@dataclass(frozen=True)
class Trial:
    """One comparison, and the true answer."""

    kind: str
    way: str  # SAME or SLOWER
    batch_size: int
    verdict: Verdict


@dataclass(frozen=True)
class Tried:
    data: str
    slowdowns: dict[int, float]  # batch size -> by which share the slower step is longer
    trials: list[Trial]

    def of(self, way: str, kind: str = "", batch_size: int = 0) -> list[Trial]:
        return [
            trial
            for trial in self.trials
            if trial.way == way and kind in ("", trial.kind) and batch_size in (0, trial.batch_size)
        ]


def measure(seconds: float, start: float) -> Tried:
    """Prepare and race until this number of seconds after `start`, by the monotonic clock; at least
    one race in one process, at one batch size."""
    from benchmarks import lenet
    from tflab import datasets
    from tflab.compare import RACE_S, configurations
    from tflab.runtime import measure as engine
    from tflab.runtime import session

    end = start + seconds
    program = lenet.lenet()
    columns = list(session.feed_columns(program, "train").values())
    jobs, slowdowns = prepared(start + PREPARING * seconds)
    sizes = tuple(slowdowns)
    rows = [datasets.first_rows(column, configurations.ROUNDS * max(sizes)) for column in columns]
    slower = [name for name in jobs if name.startswith(SLOWER)]
    alone = [
        configurations.Process({"TFLAB_BENCHMARK": name}, [name])
        for name in (configurations.DEFAULT, configurations.CONTROL, SAME)
    ]
    alone.append(configurations.Process({"TFLAB_BENCHMARK": SLOWER}, slower))
    processes = {KINDS[0]: [configurations.Process({}, list(jobs))], KINDS[1]: alone}
    trials: list[Trial] = []
    for number in count():
        left_s = end - time.monotonic()
        if trials and left_s < RACE_S:  # a shorter race would say less than `compare` does
            break
        kind, budget_s = KINDS[number % len(KINDS)], max(0.0, min(RACE_S, left_s))
        numbers = engine.observations(verdicts.LEAST, budget_s, configurations.OBSERVATIONS)
        plan = terminal.track(f"race {number + 1}, {kind}", numbers, configurations.OBSERVATIONS)
        most_s = min(configurations.OBSERVATION_S, budget_s / configurations.OBSERVATIONS)
        observed = configurations.observations(jobs, processes[kind], rows, sizes, plan, most_s)
        trials += judged(kind, sizes, [*observed], processes[kind])
    data = f"a training step of LeNet, on {program.dataset('train').name}"
    return Tried(data, slowdowns, trials)


def prepared(end: float) -> tuple[dict[str, Any], dict[int, float]]:
    """The step, the same step under another name, and for each batch size a slower one; and by
    which share that is slower.

    After `end`, by the monotonic clock, no further batch size begins.
    """
    from tflab import lifecycle
    from tflab.lifecycle import placement
    from tflab.records.options import Options
    from tflab.runtime import measure as engine
    from tflab.runtime import session

    *_, backward = lifecycle.walk("lenet", stop="backward")
    jobs: dict[str, Any] = {}
    slowdowns: dict[int, float] = {}
    for size in terminal.track("steps, preparing", SIZES, len(SIZES)):
        if slowdowns and time.monotonic() > end:
            break
        options = Options(batch_size=size, values=False)
        placed = placement.place(backward, options)
        step = session.step_of(placed.program, placed.fetches)
        usual = engine.job_of(placed.program, step, options)
        jobs |= dict.fromkeys(("default", "control", *EQUALS), usual)
        count = PRODUCTS
        for _ in range(SCALINGS):
            slower = with_products(usual, count)
            share = slowdown(placed.program, usual, slower)
            jobs[f"{SLOWER} {size}"], slowdowns[size] = slower, share
            if abs(share - TENTH) <= CLOSE:
                break
            count = max(1, min(MOST_PRODUCTS, round(count * TENTH / max(share, TENTH / 10))))
    return jobs, slowdowns


def with_products(job: Any, count: int) -> Any:
    """The job, whose step then computes so many products of small matrices, one after the other."""
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(job.graph.as_graph_def(), name="")
        ends = [graph.get_operation_by_name(name) for name in job.step.targets]
        with tf.control_dependencies(ends):
            # No pass computes it beforehand: it might be fed. The product is the matrix again.
            product = tf1.placeholder_with_default(tf.fill([SIDE, SIDE], 1 / SIDE), [SIDE, SIDE])
        for _ in range(count):
            product = tf.matmul(product, product)
    step = replace(job.step, targets=(*job.step.targets, product.op.name))
    return replace(job, graph=graph, step=step)


def slowdown(program: Any, usual: Any, slower: Any) -> float:
    """By which share the second job's step is longer, measured in turn."""
    from tflab.runtime import measure as engine
    from tflab.runtime import session

    size = usual.options.batch_size
    columns = [*session.feed_columns(program, "train").values()]
    observed = engine.untraced_here([usual, slower], columns, (size,), ROUNDS, turns=1)
    ratios = []
    for times, slower_times in islice(observed, 1, OBSERVATIONS + 1):
        steps = zip(slower_times[size], times[size], strict=True)
        ratios += [after / before for after, before in steps]
    return median(ratios) - 1


def judged(
    kind: str, sizes: Sequence[int], observed: Sequence[Observed], processes: Sequence[Any]
) -> Iterator[Trial]:
    """The verdicts of one race: for each variant those at all batch sizes together, as in a
    `compare` with one configuration."""
    from tflab.compare import configurations

    against = configurations.opponents(processes)
    slower, itself = (SLOWER, SLOWER), {}
    for size in sizes:  # at each batch size the step that was slowed for it
        itself[size] = against.pop(f"{SLOWER} {size}")
    rows = [
        {**times, slower: {size: times[itself[size].itself][size] for size in sizes}}
        for times in observed
    ]
    against[SLOWER] = itself[sizes[0]]._replace(itself=slower)
    for name, places in against.items():
        for row in configurations.judged(rows, {name: places}, sizes):
            if row.verdict:
                way, *_ = name.split()
                yield Trial(kind, way, row.batch_size, row.verdict)


def summary(tried: Tried) -> dict[str, dict[str, int]]:
    """The contract of `--format json`."""
    same, slower = tried.of(SAME), tried.of(SLOWER)
    return {
        "same": {"tests": len(same), "called_different": sum(map(different, same))},
        "slower_by_a_tenth": {"tests": len(slower), "found": sum(map(is_slower, slower))},
    }


def different(trial: Trial) -> bool:
    return trial.verdict.word in ("slower", "faster")


def is_slower(trial: Trial) -> bool:
    return trial.verdict.word == "slower"


def blocks(tried: Tried) -> Iterator[Block]:
    kinds = dict.fromkeys(trial.kind for trial in tried.trials)
    rows = [(kind, size) for kind in kinds for size in tried.slowdowns]

    def count_of(way: str, right: Callable[[Trial], bool]) -> Callable[[tuple[str, int]], str]:
        def cell(row: tuple[str, int]) -> str:
            trials = tried.of(way, *row)
            return f"{sum(map(right, trials))} of {len(trials)}"

        return cell

    def mean_ratio(row: tuple[str, int]) -> str:
        ratios = [trial.verdict.ratio for trial in tried.of(SLOWER, *row)]
        return f"{fmean(ratios):.3f}" if ratios else ""

    yield Table(
        f"Verdicts on {tried.data}",
        (
            Column("processes", lambda row: row[0]),
            Column("batch", lambda row: str(row[1]), right=True),
            Column("equals differ", count_of(SAME, different), right=True),
            Column("slower found", count_of(SLOWER, is_slower), right=True),
            Column("ratio", mean_ratio, right=True),
            Column("expected", lambda row: f"{1 + tried.slowdowns[row[1]]:.3f}", right=True),
        ),
        tuple(rows),
    )


# Two programs in turns

PROGRAM = f"""
import sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
start = product = tf.Variable(tf.fill([{SIDE}, {SIDE}], 1 / {SIDE}))
for _ in range(int(sys.argv[1])):
    product = tf.matmul(product, start)
with tf.Session() as session:
    session.run(start.initializer)
    for _ in range(200):
        session.run(product.op)
"""
OF_A_PROGRAM = 300  # products


def in_turns(pairs: int, seconds: float) -> Tried:
    """Compare pairs of equal programs, and pairs of which the second is slower, alternately."""
    from tflab.cli import temporary
    from tflab.compare import RACE_S
    from tflab.run import turns

    counts = {SAME: OF_A_PROGRAM, SLOWER: round(OF_A_PROGRAM * (1 + TENTH))}
    tried = Tried("programs in turns", {0: TENTH}, [])
    with temporary.folder("programs") as folder:
        script = folder / "program.py"
        script.write_text(PROGRAM)
        for number in range(2 * pairs):
            way = (SAME, SLOWER)[number % 2]
            programs = [
                turns.Program(name, (str(script), str(counts[name]))) for name in (SAME, way)
            ]
            result = turns.compared(programs, 0, min(RACE_S, seconds / pairs / 2))
            if result.failure or result.interrupted:
                raise TflabError(result.failure or "Interrupted.")
            for change in result.whole:
                terminal.say(f"{way}: {change} {result.least_slower[change.key]}", sys.stderr)
                if change.verdict and (way == SAME or change.key == turns.STEP):
                    tried.trials.append(Trial(change.key, way, 0, change.verdict))
    return tried


@contextmanager
def load(count: int) -> Iterator[None]:
    """Keep so many processors busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.verdicts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--seconds",
        type=command.count("number of seconds"),
        default=SECONDS,
        metavar="N",
        help="for which it prepares and races (default: %(default)s)",
    )
    parser.add_argument(
        "--load",
        type=command.count("number of processes"),
        default=0,
        metavar="N",
        help="busy processes to run beside it (default: none)",
    )
    parser.add_argument(
        "--programs",
        type=command.count("number of pairs"),
        metavar="N",
        help="compare N pairs of equal programs, and N pairs that differ, instead",
    )
    args = parser.parse_args()
    with load(args.load):
        if args.programs:
            tried = in_turns(args.programs, args.seconds)
        else:
            tried = processes.call("benchmarks.verdicts:measure", args.seconds, time.monotonic())
    for trial in tried.trials:
        told = f"{trial.kind}, {trial.way}, batch {trial.batch_size}: {trial.verdict}"
        terminal.say(told, sys.stderr)
    if args.format == "json":
        print(json.document(**summary(tried)))
        return 0
    text.show_blocks(blocks(tried))
    return 0


if __name__ == "__main__":
    sys.exit(command.run(main))
