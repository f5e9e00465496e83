"""View of a history: time goes down, and the step and each op have a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from tflab.measurements import view
from tflab.records import Line, OverTime, Point
from tflab.records.blocks import Block, Column, Table
from tflab.units import time
from tflab.views.abreast import against, chunks

BESIDE = 3  # lines that fit beside the time of a measurement
LAST = "last / first"

Row = tuple[str, Sequence[str]]  # a measurement, or LAST, and the text of each line


def blocks(found: OverTime) -> Iterable[Block]:
    held = found.contrast
    yield (
        f"{held.model}, {held.phase}: the untraced step and, by {held.by}, what a traced step "
        "spends in what costs most, over time."
    )
    yield view.made(held)
    yield from view.differing(held)
    yield from held.notes
    for size in dict.fromkeys(line.batch_size for line in found.lines):
        yield from of_size(found, size)
    yield basis(several=len(held.measurements) > 1)


def basis(several: bool) -> str:
    """What the times and the verdicts were told from."""
    times = (
        "Each time is the mean of several processes, with the interval that holds the true one in "
        "99 of 100 measurements, as far as processes differ; of fewer than three processes there "
        "is none."
    )
    against = (
        " Last / first: how many times as long, by `python -m tflab.compare` of all these files, "
        "in this order."
    )
    return times + against * several


def of_size(found: OverTime, size: int) -> Iterator[Table]:
    lines = [line for line in found.lines if line.batch_size == size]
    names = found.contrast.measurements
    for part in chunks(lines, BESIDE):
        rows: list[Row] = [
            (name, [text(line.points[place]) for line in part]) for place, name in enumerate(names)
        ]
        if any(line.verdict for line in part):
            rows.append((LAST, [against(line.verdict) if line.verdict else "" for line in part]))
        yield Table(f"Batch {size}: a step, over time", columns(part), tuple(rows))


def columns(lines: Sequence[Line]) -> tuple[Column, ...]:
    def column(place: int) -> Column:
        return Column(lines[place].name, lambda row: row[1][place], right=True)

    first = Column("measurement", lambda row: row[0], elastic=True, name=True)
    return (first, *map(column, range(len(lines))))


def text(point: Point | None) -> str:
    """`157 us [150 us, 165 us]`, or the time alone where there is no interval."""
    if point is None:
        return ""
    if not isfinite(point.high_ns):
        return time(point.ns)
    return f"{time(point.ns)} [{time(point.low_ns)}, {time(point.high_ns)}]"
