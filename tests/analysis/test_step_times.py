"""Step times: the spread of measured steps, and the step that stands for all."""

from tflab.analysis import timeline
from tflab.records.timed import Spread, StepTime


def test_a_spread_is_median_and_tenths():
    assert timeline.spread(range(1, 12)) == Spread(median=6, p10=2, p90=10)
    assert timeline.spread([7]) == Spread(7, 7, 7)


def test_the_step_in_the_middle_is_that_with_the_median_wall_time():
    steps = [StepTime(index, 0, wall) for index, wall in enumerate((50, 10, 40, 20, 30))]
    assert timeline.median_step(steps) == steps[4]
    assert timeline.median_step(steps[:4]) == steps[3]  # of two in the middle, the shorter
