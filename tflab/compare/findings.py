"""Findings: sentences about a comparison, each computed from its tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tflab.analysis import verdicts
from tflab.analysis.row_labels import NO_LINE
from tflab.records.measured import Compared, StepTimes
from tflab.units import percent, three_digits
from tflab.views.words import ends_text

GREW = 0.05  # a smaller change of a share has no sentence
WIDE = 2  # times its lower end: an interval from below 1 to there says nothing


def sentences(
    rows: Sequence[Compared], steps: Mapping[int, StepTimes], unit: str = "image", by: str = "op"
) -> tuple[str, ...]:
    """Return the findings, in the order of a reader's questions."""
    sizes = sorted(steps)
    gains = throughput(steps, sizes, unit) if len(sizes) > 2 else ()  # the headline has one gain
    return (*gains, *shares(rows, sizes, by))


def largest_share(row: Compared) -> float:
    return max(cell.share for cell in row.cells.values())


def fused_lines(row: Compared) -> list[str]:
    """Return the other lines whose ops were fused into a row by line."""
    return [line for line in row.fused_from if line != NO_LINE]


def shares(rows: Sequence[Compared], sizes: Sequence[int], by: str = "op") -> Iterator[str]:
    """Yield the largest share, if not of the next row, and the shares that rise and fall most."""

    def change(row: Compared) -> float:
        return row.cells[sizes[-1]].share - row.cells[sizes[0]].share

    if not rows:
        return
    largest, at, key = max((row.cells[at].share, at, row.key) for row in rows for at in row.cells)
    names = {row.key: row.key for row in rows}
    for each in filter(fused_lines, rows if by == "line" else ()):
        names[each.key] += f" (with ops of {', '.join(fused_lines(each))} fused into it)"
    changed: dict[str, str] = {}
    everywhere = [row for row in rows if all(size in row.cells for size in sizes)]
    for verb, sign in (("grows", 1), ("falls", -1)):
        row = max(everywhere, key=lambda row: sign * change(row), default=None)
        if not row or sign * change(row) < GREW:
            continue
        known = [sign * round(row.cells[size].share, 3) for size in sizes]
        if all(small < large for small, large in pairwise(known)):
            said = (f"{percent(row.cells[size].share)} at {size}" for size in sizes)
            every = ", ".join(said).replace(" at ", " at batch size ", 1)
            changed[row.key] = f"The share of {names[row.key]} {verb} most: {every}."
    if key not in changed:
        most = f"{names[key]}, {percent(largest)} at batch size {at}"
        yield f"Largest share of the time of all ops: {most}."
    yield from changed.values()


def throughput(
    steps: Mapping[int, StepTimes], sizes: Sequence[int], unit: str = "image"
) -> Iterator[str]:
    """Yield the gain in images per second to the next batch size, as far as it is known."""
    for small, large in pairwise(sizes):
        times, low, high = gain(steps[small], steps[large])
        if low > 1 or high < WIDE * low:
            yield f"Batch size {large}: {times} as many {unit}s a second as batch size {small}."


def gain(before: StepTimes, after: StepTimes) -> tuple[str, float, float]:
    """Return the ratio of images per second with its interval over the rounds, as text; and the
    ends of the interval, 0 and infinity for too few rounds."""
    rates = zip(before.round_rates, after.round_rates, strict=False)
    low, high = verdicts.interval([second / first for first, second in rates])
    ratio = after.mean_images_per_second / before.mean_images_per_second
    return f"{three_digits(ratio)} x {ends_text(low, high)}", low, high
