"""Findings: sentences about a comparison, each computed from its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite

from tflab.analysis import batch_fit, verdicts
from tflab.records.measured import Compared, ConfigTimes, StepTimes
from tflab.units import percent, time

TOP = 3  # rows that have sentences of their own
GREW = 0.05  # a smaller change of a share has no sentence
FIXED = 0.5  # a larger share of fixed cost has a sentence
# A line that misses a measured time by more than a tenth does not describe these times, and its
# value at batch 0, which was not measured, means nothing.
FITS = 0.1
HELPS = 1.1  # a batch size has to increase images per second by this factor


def sentences(
    rows: Sequence[Compared],
    steps: Mapping[int, StepTimes],
    by: str = "op",
    configs: Sequence[ConfigTimes] = (),
    unit: str = "image",
) -> tuple[str, ...]:
    """Return the findings, in the order of a reader's questions."""
    sizes = sorted(steps)
    rows = sorted(rows, key=lambda row: -sum(cell.total_ns for cell in row.cells.values()))
    return (
        *growth(rows, sizes),
        *longer(rows, steps, sizes, by, unit),
        *fixed_costs(rows, sizes, by, unit),
        *throughput(steps, sizes, unit),
        *overhead(steps, sizes),
        *configurations(configs),
    )


def growth(rows: Sequence[Compared], sizes: Sequence[int]) -> Iterator[str]:
    """The rows whose share grows or shrinks most from the smallest batch to the largest."""
    everywhere = [row for row in rows if all(size in row.cells for size in sizes)]
    if len(sizes) < 2 or not everywhere:
        return
    first, last = sizes[0], sizes[-1]

    def change(row: Compared) -> float:
        return row.cells[last].share - row.cells[first].share

    for row, verb, by in (
        (max(everywhere, key=change), "rises", 1),
        (min(everywhere, key=change), "falls", -1),
    ):
        if by * change(row) >= GREW:
            between = (f"{percent(row.cells[n].share)} at {n}" for n in sizes[1:-1])
            way = f", via {', '.join(between)}" if len(sizes) > 2 else ""
            yield (
                f"The share of {row.key} {verb} from {percent(row.cells[first].share)} at batch "
                f"{first} to {percent(row.cells[last].share)} at {last}{way}."
            )


def longer(
    rows: Sequence[Compared],
    steps: Mapping[int, StepTimes],
    sizes: Sequence[int],
    by: str,
    unit: str = "image",
) -> Iterator[str]:
    """`X: from 1 to 16 a call takes 2.30 x as long for 16 x the images.`"""
    for row in rows[:TOP]:
        times = {size: batch_fit.unit_ns(cell, steps[size], by) for size, cell in row.cells.items()}
        parts = [
            f"from {small} to {large} a {batch_fit.unit(by)} takes "
            f"{times[large] / times[small]:.2f} x as long for {large / small:g} x the {unit}s"
            for small, large in pairwise(sizes)
            if large in times and times.get(small)
        ]
        if parts:
            yield f"{row.key}: {'; '.join(parts)}."


def fixed_costs(
    rows: Sequence[Compared], sizes: Sequence[int], by: str, unit: str = "image"
) -> Iterator[str]:
    """The rows whose time at the smallest batch is mostly fixed cost, by the fit of the table."""
    size = sizes[0]
    for row in rows[:TOP]:
        if row.fit and row.fit.error <= FITS and size in row.cells:
            at_size = row.fit.fixed_ns + row.fit.per_image_ns * size
            share = row.fit.fixed_ns / at_size if at_size > 0 else 0
            if share > FIXED and row.fit.per_image_ns > 0:
                yield (
                    f"{row.key}: the time of a {batch_fit.unit(by)} fits {time(row.fit.fixed_ns)} "
                    f"+ {time(row.fit.per_image_ns)} per {unit} within "
                    f"{percent(row.fit.error)}, so at batch {size} about "
                    f"{100 * min(share, 1):.0f} % of it is fixed cost."
                )


def throughput(
    steps: Mapping[int, StepTimes], sizes: Sequence[int], unit: str = "image"
) -> Iterator[str]:
    """How images per second grow, and from which size on a larger batch no longer helps, or is
    slower; the latter only if the rounds of the sweep prove it, also against their control."""
    for small, large in pairwise(sizes):
        gain = steps[large].mean_images_per_second / steps[small].mean_images_per_second
        if gain >= HELPS:
            yield (
                f"Batch {large} processes {gain:.2f} x as many {unit}s per second as batch {small}."
            )
            continue
        gains = by_round(steps[small], steps[large])
        low, high = verdicts.interval(gains) if gains else (0.0, inf)
        text = f"{gain:.2f} x"
        if isfinite(high):
            text += f" [{low:.2f}, {high:.2f}] in {len(gains)} rounds"
        drifts = [*from_round_to_round(steps[small]), *from_round_to_round(steps[large])]
        if high < min(1, verdicts.interval(drifts)[0] if drifts else 1):
            sentence = f"fall to {text}: a larger batch is slower here"
        elif high < HELPS:
            sentence = f"grow only to {text}: a larger batch no longer helps here"
        else:
            sentence = (
                f"change to {text}: the measurement does not show whether a larger batch helps here"
            )
        yield f"From batch {small} to {large}, {unit}s per second {sentence}."


def by_round(small: StepTimes, large: StepTimes) -> list[float]:
    """The ratio of the larger batch's images per second to the smaller one's, in each round."""
    rates = zip(small.round_rates, large.round_rates, strict=False)
    return [after / before for before, after in rates]


def from_round_to_round(steps: StepTimes) -> Iterator[float]:
    """Yield the ratio of each round's images per second to the round before: the control of a
    comparison of batch sizes, which should be 1."""
    return (after / before for before, after in pairwise(steps.round_rates))


def overhead(steps: Mapping[int, StepTimes], sizes: Sequence[int]) -> Iterator[str]:
    """The batch sizes at which a step takes much longer than all of its ops together."""
    for size in sizes:
        wall, ops = steps[size].untraced_ns.median, steps[size].ops_ns
        if wall > 2 * ops:
            yield (
                f"At batch {size} an untraced step takes {time(wall)}, but its ops take only "
                f"{time(ops)}: no op runs for more than half of the step."
            )


def configurations(configs: Sequence[ConfigTimes]) -> Iterator[str]:
    """The configurations under which a step takes more or less time, by their verdicts and by a
    factor of at least HELPS."""
    parts_of: dict[str, list[str]] = {}
    for row in configs:
        verdict = row.verdict
        if verdict is None or verdict.word not in ("slower", "faster"):
            continue
        if max(verdict.ratio, 1 / verdict.ratio) >= HELPS:
            parts_of.setdefault(row.config, []).append(
                f"{verdict.ratio:.2f} x as long [{verdict.low:.2f}, {verdict.high:.2f}] at batch "
                f"{row.batch_size}"
            )
    for config, parts in parts_of.items():
        yield f"Compared with default, an untraced step under {config} takes {', '.join(parts)}."
