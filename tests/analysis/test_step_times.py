"""Step times: the spread of measured steps, against NumPy, and the step that stands for all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import step_times
from tflab.records.timed import Spread, StepTime


def test_a_spread_is_median_and_tenths():
    assert step_times.spread(range(1, 12)) == Spread(median=6, p10=2, p90=10)
    assert step_times.spread([7]) == Spread(7, 7, 7)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_a_spread_agrees_with_numpy(times):
    spread = step_times.spread(times)
    expected = np.percentile(times, [50, 10, 90])
    assert (spread.median, spread.p10, spread.p90) == pytest.approx(tuple(expected))


def test_the_step_in_the_middle_is_that_with_the_median_wall_time():
    steps = [StepTime(index, 0, wall) for index, wall in enumerate((50, 10, 40, 20, 30))]
    assert step_times.median_step(steps) == steps[4]
    assert step_times.median_step(steps[:4]) == steps[3]  # of two in the middle, the shorter
