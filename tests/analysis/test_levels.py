"""Levels: of runs made by hand, and against a count of every nanosecond."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import lanes
from tflab.records.timed import OpRun, StepTime


def run(start: int, duration: int, *allocations: tuple[int, int, str], step: int = 0) -> OpRun:
    return OpRun(step, "a", "Op", "CPU:0", start, duration, 0, allocations)


def points(level: lanes.Level) -> list[tuple[int, int]]:
    return [*zip(*(column.tolist() for column in level), strict=True)]


def test_a_run_raises_the_level_while_it_lasts():
    level = lanes.ops_at_once([run(10, 5), run(0, 30), run(15, 5)])
    assert points(level) == [(0, 1), (10, 2), (20, 1), (30, 0)]


def test_bytes_are_counted_for_each_allocator():
    steps = [StepTime(0, 0, 9_000)]
    runs = [run(0, 1, (1, 64, "cpu"), (3, -64, "cpu")), run(0, 1, (2, 8, "gpu"))]
    levels_of_allocator = lanes.bytes_alive(runs, steps)
    assert {name: points(level) for name, level in levels_of_allocator.items()} == {
        "cpu": [(1_000, 64), (3_000, 0)],
        "gpu": [(2_000, 8), (9_000, 0)],
    }


def test_what_is_left_goes_with_its_step_or_with_its_last_event():
    steps = [StepTime(0, 0, 2_000), StepTime(1, 10_000, 5_000)]
    runs = [run(0, 1, (1, 64, "cpu"), (4, -4, "cpu")), run(0, 1, (12, 8, "cpu"), step=1)]
    assert points(lanes.bytes_alive(runs, steps)["cpu"]) == [
        (1_000, 64),
        (4_000, 0),
        (12_000, 8),
        (15_000, 0),
    ]


def test_what_no_step_is_known_of_goes_with_its_last_event():
    for until in (0, 3):
        levels_of_allocator = lanes.bytes_alive([run(0, 1, (0, 8, "cpu"), (until, 4, "cpu"))], [])
        assert points(levels_of_allocator["cpu"])[-1] == (1_000 * until, 0)


def test_changes_at_one_time_make_one_point():
    moments, changes = np.array([5, 5, 5, 7]), np.array([3, -2, 1, -2])
    assert points(lanes.cumulated(moments, changes)) == [(5, 2), (7, 0)]


@settings(max_examples=30)
@given(st.lists(st.builds(run, st.integers(0, 40), st.integers(0, 20)), min_size=1))
def test_the_level_is_the_number_of_runs_at_every_nanosecond(runs):
    counted = [sum(r.start_ns <= ns < r.start_ns + r.duration_ns for r in runs) for ns in range(61)]
    level_at = dict(points(lanes.ops_at_once(runs)))
    drawn, now = [], 0
    for ns in range(61):
        now = level_at.get(ns, now)
        drawn.append(now)
    assert drawn == counted
