"""Step times: the spread of step times, and the step to show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflab.records.timed import Spread, StepTime


def spread(times: Sequence[int]) -> Spread:
    """Return median, 10th and 90th percentile, with linear interpolation."""
    return Spread(*np.percentile(times, (50, 10, 90)).tolist())


def median_step(steps: Sequence[StepTime]) -> StepTime:
    """Return the step that represents all: the one with the median wall time.

    For an even number of steps it is the lower median. Raises IndexError if there are no steps.
    """
    return sorted(steps, key=lambda step: step.wall_ns)[(len(steps) - 1) // 2]
