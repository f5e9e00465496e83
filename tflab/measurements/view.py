"""View of a contrast: first the differences, then the steps and the rows of several
measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflab.analysis.two_samples import DRIFT
from tflab.measurements.contrast import sentence
from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.measurements import Contrast, RowTimes
from tflab.units import percent, time
from tflab.views.abreast import BESIDE, chunks, ratio_text, steps_abreast
from tflab.views.op_table import NAMES

BRIEF = 10  # rows of each table

Key = str
Cells = dict[tuple[Key, str], RowTimes]


def blocks(contrast: Contrast, top: int = BRIEF) -> Iterable[Block]:
    """Everything that the command prints; `--top` gives the number of rows of a table."""
    for block in parts(contrast, top):
        yield replace(block, option="--top") if isinstance(block, Table) else block


def parts(contrast: Contrast, top: int) -> Iterator[Block]:
    first = contrast.measurements[0]
    yield f"{contrast.model}, {contrast.phase}: measurements compared with the first, '{first}'."
    yield made(contrast)
    yield from differing(contrast)
    yield from contrast.notes
    yield from steps_abreast(f"The untraced step (times as long as in {first})", contrast.steps)
    for size in dict.fromkeys(row.batch_size for row in contrast.rows):
        yield from rows(contrast, size, top)
    yield basis()
    if contrast.gate:
        yield sentence(contrast.gate, first)


def made(contrast: Contrast) -> Table:
    measurements = zip(contrast.measurements, contrast.when, contrast.processes, strict=True)
    return Table(
        "When it was measured, and in how many processes",
        (
            Column("measurement", lambda row: row[0], elastic=True, name=True),
            Column("when, in UTC", lambda row: row[1].replace("T", " ").rstrip("Z")),
            Column("processes", lambda row: str(row[2]), right=True),
        ),
        tuple(measurements),
    )


def differing(contrast: Contrast) -> Iterator[Block]:
    """What differs, with a column for each measurement, two per table; nothing for one
    measurement."""
    if len(contrast.measurements) < 2:
        return
    if not contrast.differences:
        yield "Machine, software, options, model and data are the same, as far as tflab checks."
        return

    def column(place: int) -> Column:
        name = contrast.measurements[place]
        return Column(name, lambda row: row.values[place], elastic=True, least=12)

    for part in chunks(range(1, len(contrast.measurements)), BESIDE):
        yield Table(
            "Differences",
            (Column("", lambda row: row.what), *map(column, (0, *part))),
            contrast.differences,
        )


def rows(contrast: Contrast, size: int, top: int) -> Iterator[Table]:
    """The time of each row in a step, the most expensive in any measurement first."""
    of_size = [row for row in contrast.rows if row.batch_size == size]
    cells: Cells = {(row.key, row.measurement): row for row in of_size}
    first, *others = contrast.measurements
    title = (
        f"Batch {size}: the time of a traced step by {contrast.by} (times as long as in {first})"
    )
    for part in chunks(others, BESIDE):
        columns = (key(contrast.by), *(column(name, cells) for name in (first, *part)))
        yield shortened(title, columns, in_order(of_size), top)


def key(by: str) -> Column:
    return Column(NAMES[by], str, elastic=True, least=16, name=True)


def column(measurement: str, cells: Cells) -> Column:
    def cell(key: Key) -> str:
        row = cells[key, measurement]
        if row.step_ns is None:
            return ""
        beside = ratio_text(row.verdict) if row.verdict else percent(row.share or 0)
        return f"{time(row.step_ns)} ({beside})"

    return Column(measurement, cell, right=True)


def in_order(rows: Sequence[RowTimes]) -> list[Key]:
    most: dict[Key, float] = {}
    for row in rows:
        most[row.key] = max(most.get(row.key, 0), row.step_ns or 0)
    return sorted(most, key=lambda key: -most[key])


def basis() -> str:
    """How the verdicts were computed."""
    return (
        "Each ratio compares two independent samples in which each process is one observation. "
        "Its interval contains the true ratio in 99 of 100 comparisons. It covers differences "
        "between processes, but not changes of the machine between the measurements. Therefore "
        f"only a proven difference of more than {percent(DRIFT - 1)} is called slower or faster. "
        "Alike means within that difference. Cannot tell means that there are too few processes, "
        "or that the machine is too noisy. With more comparisons each test is stricter, so an "
        "interval that barely excludes 1 may still be `cannot tell`. Where no ratio is shown, "
        "the percentage is the row's share of the time of all rows."
    )
