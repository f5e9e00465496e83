"""Batch fit: how the time of a row depends on the batch size."""

from __future__ import annotations

from collections.abc import Mapping

from tflab.analysis.row_labels import STEPWISE
from tflab.records.measured import Fit, OpStats, StepTimes

LINE = 3  # least number of points: a line through two points always fits
LEVEL_NS = 0.5  # per image; a line that rises less would be shown as `+ 0 ns`


def fit(cells: Mapping[int, OpStats], steps: Mapping[int, StepTimes], by: str = "op") -> Fit | None:
    """Return the line through the mean time of a `unit` of a row at each batch size.

    None if it falls, because no image costs less than nothing, or is almost level.
    """
    found = line({size: unit_ns(row, steps[size], by) for size, row in cells.items()})
    return found if found and found.per_image_ns >= LEVEL_NS else None


def line(times: Mapping[int, float]) -> Fit | None:
    """Least squares for `time = fixed + per image * batch size`. Relative errors are weighted
    equally, so that small batches count as much as large ones. None for fewer than LINE sizes."""
    import numpy as np  # here, because the --help of every command would import it

    measured = {size: ns for size, ns in times.items() if ns > 0}
    if len(measured) < LINE:
        return None
    sizes, ns = np.array([*measured.items()], float).T
    # polyfit squares the weights, so this minimises relative errors.
    slope, fixed = np.polyfit(sizes, ns, 1, w=ns.min() / ns)
    error = np.abs(fixed + slope * sizes - ns) / ns
    return Fit(float(fixed), float(slope), float(error.max()))


def step_ns(row: OpStats, steps: StepTimes) -> float:
    """Return the time that a step spends in a row."""
    return row.total_ns / steps.steps


def unit(by: str) -> str:
    """Return what the time of a row refers to: a call, or a step if the row has ops of many
    kinds."""
    return "step" if by in STEPWISE else "call"


def unit_ns(row: OpStats, steps: StepTimes, by: str) -> float:
    """Return the mean time of a `unit`."""
    return step_ns(row, steps) if unit(by) == "step" else row.mean_ns
