"""The plot over time: every point, interval, tick and word, worked out by hand."""

from dataclasses import replace

import pytest

from tests.measurements_by_hand import measurement
from tests.pictures import caption, points, ticks, title, words
from tflab.compare.saved_measurements import lines
from tflab.exporters.plots import over_time
from tflab.measurements import contrast
from tflab.records.measurements import Point, TimeLine

BOTH = {"a": measurement(), "b": measurement(factor=1.5, when="2026-03-09T07:05:00Z")}
HELD = lines(BOTH, contrast.contrast(BOTH))
STEP = TimeLine("step, untraced", 4, (Point(100_000, 90_000, 110_000, 5), None), None)
CONV = TimeLine(
    "Conv2D", 4, (Point(50_000, 40_000, 60_000, 5), Point(70_000, 0, float("inf"), 2)), None
)
FOUND = replace(HELD, lines=(STEP, CONV))


def test_points_are_joined_where_there_are_any_and_have_their_intervals():
    (axes,) = over_time.draw(FOUND).axes
    assert [points(line) for line in axes.lines] == [
        [(0, 100_000)],
        [(0, 90_000), (0, 110_000)],
        [(0, 50_000), (1, 70_000)],
        [(0, 40_000), (0, 60_000)],  # of two processes there is no interval
    ]
    assert words(axes) == ["✖", "step, untraced", "●", "Conv2D"]
    assert ticks(axes.xaxis) == [(0, "2026-03-01\n12:00"), (1, "2026-03-09\n07:05")]
    assert axes.get_ylabel() == "a step at batch 4"
    assert axes.get_yscale() == "log"


def test_the_headline_says_what_became_of_the_step_at_each_batch_size():
    figure = over_time.draw(HELD)
    assert title(figure) == (
        "A step of lenet, 'b' against 'a': 1.50 x [1.47, 1.53] at batch 4; "
        "1.50 x [1.47, 1.53] at batch 16"
    )
    assert caption(figure).startswith(
        "lenet, inference. Step: untraced. Others: the time that a traced"
    )
    assert len(figure.axes) == 2


def test_the_headline_is_of_the_step_where_ops_became_slower_by_another_factor():
    def of_ops(line):
        if line.name == HELD.lines[0].name or not line.verdict:
            return line
        return replace(line, verdict=replace(line.verdict, ratio=3.0, low=2.5, high=3.5))

    changed = replace(HELD, lines=tuple(map(of_ops, HELD.lines)))
    assert title(over_time.draw(changed)) == title(over_time.draw(HELD))
    assert changed != HELD


def test_where_nothing_was_judged_the_headline_counts():
    assert title(over_time.draw(FOUND)) == "A step of lenet in 2 measurements"


@pytest.mark.parametrize(("count", "named"), [(8, 8), (9, 5), (50, 8)])
def test_of_many_measurements_only_some_are_named(count, named):
    when = ("2026-03-01T12:00:00Z",) * count
    line = TimeLine("step, untraced", 4, (Point(1e5, 9e4, 1.1e5, 5),) * count, None)
    (axes,) = over_time.draw(replace(FOUND, when=when, lines=(line,))).axes
    assert len(ticks(axes.xaxis)) == named
