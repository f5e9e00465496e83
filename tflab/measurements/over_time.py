"""Over time: the untraced step and the rows that cost most, from measurement to measurement."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from tflab.analysis import verdicts
from tflab.measurements import contrast, view
from tflab.measurements.comparable import Named
from tflab.records import Contrast, Line, OverTime, Point

STEP = "step, untraced"
LARGEST = 5  # rows that have a line


def lines(measurements: Named, held: Contrast) -> OverTime:
    """The lines of the measurements that `held` compares, in the order in which they were made."""
    ordered = dict(sorted(measurements.items(), key=lambda item: item[1].when))
    return OverTime(
        contrast=held,
        measurements=tuple(ordered),
        when=tuple(item.when for item in ordered.values()),
        lines=tuple(
            line
            for size in sorted({row.batch_size for row in held.steps})
            for line in of_size(ordered, held, size)
        ),
    )


def of_size(ordered: Named, held: Contrast, size: int) -> list[Line]:
    """First the untraced step, then the rows, what costs most in any measurement first."""
    last = list(ordered)[-1]
    processes = [item.observed.processes for item in ordered.values()]
    rows = [row for row in held.rows if row.batch_size == size]
    steps = {row.config: row.verdict for row in held.steps if row.batch_size == size}
    against = {row.key: row.verdict for row in rows if row.measurement == last}
    step = [contrast.observations(of_one, size) for of_one in processes]
    found = [Line(STEP, size, points(step), steps[last])]
    for key in view.in_order(rows)[:LARGEST]:
        times = [contrast.row_observations(of_one, size, key) for of_one in processes]
        found.append(Line(key, size, points(times), against[key]))
    return found


def points(samples: Sequence[Sequence[float]]) -> tuple[Point | None, ...]:
    """The geometric mean of each sample, with its interval; None for an empty sample."""
    return tuple(
        Point(exp(fmean(map(log, sample))), *verdicts.interval(sample), len(sample))
        if sample
        else None
        for sample in samples
    )
