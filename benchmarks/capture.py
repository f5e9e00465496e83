"""What tracing costs: 10,000 images through LeNet, and single steps at batch 1, 16 and 64.

The traced pass ends with a finished table.

python -m benchmarks.capture
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks import report, resident, turns
from tflab.records.blocks import Block, Column, Table
from tflab.units import size

PHASES = ("inference", "training")
TRACED, MOST_RATIO = "every step traced", 1.15  # target relative to untraced
WHOLE = 5  # steps; more than those with kept op runs
STEPS = {1: 100, 16: 50, 64: 25}  # batch size -> steps in a round: about a tenth of a second


@dataclass(frozen=True)
class Overhead:
    phase: str
    batch: int
    untraced: list[float]  # seconds a step, round by round
    traced: list[float]


@dataclass(frozen=True)
class Folding:
    """Traced steps whose traces are folded, and steps whose traces are never read."""

    phase: str
    batch: int
    unread: list[float]  # seconds a step, round by round
    folded: list[float]


@dataclass(frozen=True)
class Captured:
    data: str  # the name of the data set
    images: int
    passes: dict[str, list[float]]  # seconds, round by round
    grown: int  # bytes, from the first traced pass to its table
    peak: int  # bytes, the peak of that pass
    untraced_grown: int  # bytes, in the untraced pass before it
    overheads: list[Overhead]
    foldings: list[Folding]


def measure(quick: bool) -> Captured:
    from benchmarks import lenet

    images, rounds = (50, 2) if quick else (10_000, 5)
    with lenet.steps("inference") as steps:
        before = resident.now()
        steps.run(1, images)
        between = resident.now()
        resident.forget_peak()
        measured = steps.fold(images)
        steps.table(measured)
        grown, peak = resident.now() - between, resident.peak() - between
        works = {
            "untraced": partial(steps.run, 1, images),
            TRACED: lambda: steps.table(steps.fold(images)),
        }
        timed = {name: partial(turns.seconds, work) for name, work in works.items()}
        passes = turns.take(timed, rounds)
    overheads = [record for phase in PHASES for record in overhead(phase, quick)]
    data = lenet.lenet().dataset("test").name
    foldings = [record for phase in PHASES for record in folding(phase, quick)]
    return Captured(data, images, passes, grown, peak, between - before, overheads, foldings)


def folding(phase: str, quick: bool) -> Iterator[Folding]:
    from benchmarks import lenet

    with lenet.steps(phase) as steps:
        for batch, usual in STEPS.items():
            count, rounds = (2, 2) if quick else (usual // 2, 100)
            measured = steps.fold(WHOLE, batch=batch)  # op runs are kept for the first steps only
            fold = partial(steps.fold, count, into=measured, batch=batch)
            works = {
                "unread": partial(turns.seconds, partial(steps.run_traced, batch, count)),
                "folded": partial(turns.seconds, fold),
            }
            turns.take(works, 1)
            times = turns.take(works, rounds)
            yield Folding(phase, batch, *([s / count for s in times[name]] for name in works))


def overhead(phase: str, quick: bool) -> Iterator[Overhead]:
    from benchmarks import lenet

    with lenet.steps(phase) as steps:
        for batch, usual in STEPS.items():
            count, rounds = (2, 2) if quick else (usual, 15)
            works = {
                "untraced": partial(turns.seconds, partial(steps.run, batch, count)),
                "traced": partial(turns.seconds, partial(steps.run_traced, batch, count)),
            }
            turns.take(works, 1)  # a new batch size: kernels choose their algorithms again
            times_of_work = turns.take(works, rounds)
            per_step = {name: [s / count for s in times] for name, times in times_of_work.items()}
            yield Overhead(phase, batch, per_step["untraced"], per_step["traced"])


def blocks(record: Captured) -> Iterator[Block]:
    targets = {TRACED: f"to {MOST_RATIO:.2f}"}
    yield Table(
        f"{record.images:,} images of {record.data} through LeNet, one by one, to a finished table",
        (
            Column("pass", lambda row: row[0]),
            Column("time", lambda row: turns.duration(row[1]), right=True),
            Column("ratio", lambda row: turns.ratio(row[1], record.passes["untraced"]), right=True),
            Column("asked for", lambda row: targets.get(row[0], ""), right=True),
        ),
        tuple(record.passes.items()),
    )
    yield (
        f"Resident memory grew by {size(record.grown)} from before the traced pass to its finished "
        f"table, and by at most {size(record.peak)} in between; the untraced pass before it grew "
        f"by {size(record.untraced_grown)}. Target: under 16 MiB."
    )
    yield Table(
        "A LeNet step, traced and untraced (asked for: to 1.10)",
        (
            Column("step", lambda row: row.phase),
            Column("batch", lambda row: str(row.batch), right=True),
            Column("untraced", lambda row: turns.duration(row.untraced), right=True),
            Column("traced", lambda row: turns.duration(row.traced), right=True),
            Column("ratio", lambda row: turns.ratio(row.traced, row.untraced), right=True),
        ),
        tuple(record.overheads),
    )
    yield Table(
        "Reading a trace and adding it up (asked for: to 1.10)",
        (
            Column("step", lambda row: row.phase),
            Column("batch", lambda row: str(row.batch), right=True),
            Column("traced, never read", lambda row: turns.duration(row.unread), right=True),
            Column("traced and folded", lambda row: turns.duration(row.folded), right=True),
            Column("ratio", lambda row: turns.ratio(row.folded, row.unread), right=True),
        ),
        tuple(record.foldings),
    )


if __name__ == "__main__":
    report.show("capture")
