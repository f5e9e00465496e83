"""Findings: sentences about a comparison, each computed from its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tflab.analysis import verdicts
from tflab.records.measured import Compared, StepTimes
from tflab.units import percent
from tflab.views.words import ends_text

GREW = 0.05  # a smaller change of a share has no sentence
WIDE = 2  # times its lower end: an interval that ends there says nothing


def sentences(
    rows: Sequence[Compared], steps: Mapping[int, StepTimes], unit: str = "image"
) -> tuple[str, ...]:
    """Return the findings, in the order of a reader's questions."""
    sizes = sorted(steps)
    rows = sorted(rows, key=lambda row: -sum(cell.total_ns for cell in row.cells.values()))
    return (*growth(rows, sizes), *throughput(steps, sizes, unit))


def growth(rows: Sequence[Compared], sizes: Sequence[int]) -> Iterator[str]:
    """Yield the shares of the rows whose share grows and shrinks most with the batch."""
    everywhere = [row for row in rows if all(size in row.cells for size in sizes)]
    if len(sizes) < 2 or not everywhere:
        return

    def change(row: Compared) -> float:
        return row.cells[sizes[-1]].share - row.cells[sizes[0]].share

    grows, shrinks = max(everywhere, key=change), min(everywhere, key=change)
    for row, by in ((grows, change(grows)), (shrinks, -change(shrinks))):
        if by >= GREW:
            shares = ", ".join(percent(row.cells[size].share) for size in sizes)
            at = ", ".join(map(str, sizes))
            yield f"{row.key}: {shares} of the time of all ops at batch {at}."


def throughput(
    steps: Mapping[int, StepTimes], sizes: Sequence[int], unit: str = "image"
) -> Iterator[str]:
    """Yield the gain in images per second to the next batch size, if its interval is narrow."""
    for small, large in pairwise(sizes):
        gain = steps[large].mean_images_per_second / steps[small].mean_images_per_second
        rates = zip(steps[small].round_rates, steps[large].round_rates, strict=False)
        gains = [after / before for before, after in rates]
        if len(gains) < verdicts.LEAST:  # there is no interval
            continue
        low, high = verdicts.interval(gains)
        if low * WIDE > high:
            yield (
                f"Batch {large} processes {gain:.2f} times {ends_text(low, high)} as many {unit}s "
                f"per second as batch {small}."
            )
