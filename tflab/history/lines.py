"""Lines: the step and the rows that cost most, over measurements in the order of their time. No
TensorFlow in here."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from tflab.analysis import verdicts
from tflab.errors import UsageError
from tflab.exporters import notebook
from tflab.history import view
from tflab.measurements import contrast
from tflab.measurements import view as contrasted
from tflab.measurements.comparable import Named
from tflab.records import Contrast, Line, OverTime, Point, Verdict

STEP = "step, untraced"

notebook.show_as(OverTime, view.blocks)


def over_time(
    measurements: Named, batch_sizes: Sequence[int] = (), top: int = 5, other_graph: bool = False
) -> OverTime:
    """Raises UsageError for measurements that cannot be compared, or lack a batch size."""
    ordered = dict(sorted(measurements.items(), key=lambda item: item[1].when))
    held = contrast.contrast(ordered, other_graph)
    sizes = sorted({row.batch_size for row in held.steps})
    missing = sorted({*batch_sizes} - {*sizes})
    if missing:
        raise UsageError(
            f"Batch {', '.join(map(str, missing))} was not measured in all files; they have "
            f"{', '.join(map(str, sizes))} in common."
        )
    chosen = sorted({*batch_sizes}) or sizes
    lines = [line for size in chosen for line in of_size(ordered, held, size, top)]
    return OverTime(held, tuple(lines))


def of_size(measurements: Named, held: Contrast, size: int, top: int) -> list[Line]:
    """First the untraced step, then the rows, what costs most anywhere first."""
    last = held.measurements[-1]
    processes = [item.observed.processes for item in measurements.values()]
    steps = [contrast.observations(of_one, size) for of_one in processes]
    rows = [row for row in held.rows if row.batch_size == size]
    against = {row.key: row.verdict for row in rows if row.measurement == last}
    of_step = next(
        row.verdict for row in held.steps if (row.batch_size, row.config) == (size, last)
    )
    lines = [line(STEP, size, steps, of_step)]
    for key in contrasted.in_order(rows)[:top]:
        times = [contrast.row_observations(of_one, size, key) for of_one in processes]
        lines.append(line(key, size, times, against[key]))
    return lines


def line(name: str, size: int, samples: Sequence[Sequence[float]], verdict: Verdict | None) -> Line:
    return Line(name, size, tuple(map(point, samples)), verdict)


def point(sample: Sequence[float]) -> Point | None:
    if not sample:
        return None
    low, high = verdicts.interval(sample)
    return Point(exp(fmean(map(log, sample))), low, high, len(sample))
