"""Step times: how long steps took, and which of them to look at."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

from tflab.records import Spread, StepTime


def spread(times: Sequence[int]) -> Spread:
    """Median, 10th and 90th percentile, by linear interpolation between the times given."""
    if len(times) == 1:
        return Spread(times[0], times[0], times[0])
    tenths = quantiles(times, n=10, method="inclusive")
    return Spread(median=tenths[4], p10=tenths[0], p90=tenths[8])


def median_step(steps: Sequence[StepTime]) -> StepTime:
    """The step to look at when it has to be one: that with the median wall time.

    Of an even number it is the lower median. Raises IndexError where there are no steps.
    """
    return sorted(steps, key=lambda step: step.wall_ns)[(len(steps) - 1) // 2]
