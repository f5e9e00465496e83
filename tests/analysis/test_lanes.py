"""Lanes: hand-made runs in rows, where nothing partly overlaps, and levels of ops and bytes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.runs import runs
from tests.records_by_hand import run
from tflab.analysis import lanes
from tflab.records.timed import OpRun, StepTime

# Overlapping groups: of five runs, of six after a pause, and of three
GROUPS = (
    "a 0 9; b 1 2; c 2 3; d 4 6; e 5 1; f 20 9; g 21 9; h 22 9; i 23 9; j 24 9; k 25 9; l 29 1;"
    "m 40 5; n 41 1; o 42 1"
)


@pytest.mark.parametrize(
    ("recorded", "names"),  # of each lane
    [
        ("b 10 5; a 0 10; c 20 5", "abc"),
        ("a 0 10; b 5 10; c 10 10", "ac b"),  # partly overlapping
        ("a 0 10; b 2 5; c 3 2; d 8 2", "a bd c"),  # one within another
        (GROUPS, "aflm bdgno ceh i j k"),  # the first lane that is free
        ("a 5 0; b 5 0", "ab"),  # a run of no duration opens no lane
        ("s 100 0; x 100 10", "sx"),
        ("x 100 10; s 100 0", "sx"),
        ("", ""),
    ],
)
def test_the_runs_in_each_lane(recorded, names):
    packed = ["".join(run.name for run in lane) for lane in lanes.pack(runs(recorded))]
    assert packed == names.split()


# Levels


def points(level):
    return [*zip(*(column.tolist() for column in level), strict=True)]


@pytest.mark.parametrize(
    ("recorded", "level"),
    [
        ("a 10 5; a 0 30; a 15 5", [(0, 1), (10, 2), (20, 1), (30, 0)]),
        (
            "a 20 1; a 5 10; a 8 4; a 9 0; a 15 2",
            [(5, 1), (8, 2), (12, 1), (17, 0), (20, 1), (21, 0)],
        ),
        ("a 7 0; a 9 1", [(7, 0), (9, 1), (10, 0)]),
        ("", []),
    ],
)
def test_the_number_of_ops_at_once_at_each_change(recorded, level):
    assert points(lanes.ops_at_once(runs(recorded))) == level


def test_the_last_nanosecond_of_64_bits_has_a_level():
    level = lanes.ops_at_once([run("a", 2**62 - 1, 1)])
    assert points(level) == [(2**62 - 1, 1), (2**62, 0)]


def test_bytes_are_counted_for_each_allocator():
    events = (((1, 64, "cpu"), (3, -64, "cpu")), ((2, 8, "gpu"),))
    recorded = [OpRun(0, "a", "Op", "CPU:0", 0, 1, 0, allocations) for allocations in events]
    levels = lanes.bytes_alive(recorded, [StepTime(0, 0, 9_000)])
    assert {name: points(level) for name, level in levels.items()} == {
        "cpu": [(1_000, 64), (3_000, 0)],
        "gpu": [(2_000, 8), (9_000, 0)],
    }


@pytest.mark.parametrize(
    ("recorded", "steps", "level"),
    [
        # What is left goes with its step, or with its last event if no step is known of it
        (
            "a 0 +64/1 -4/4; a 0 #1 +8/12",
            [StepTime(0, 0, 2_000), StepTime(1, 10_000, 5_000)],
            [(1_000, 64), (4_000, 0), (12_000, 8), (15_000, 0)],
        ),
        ("a 0 +8/0 +4/0", [], [(0, 0)]),
        ("a 0 +8/0 +4/3", [], [(0, 8), (3_000, 0)]),
    ],
)
def test_bytes_that_are_left(recorded, steps, level):
    assert points(lanes.bytes_alive(runs(recorded), steps)["cpu"]) == level


def test_changes_at_one_time_make_one_point():
    moments, changes = np.array([5, 5, 5, 7]), np.array([3, -2, 1, -2])
    assert points(lanes.cumulated(moments, changes)) == [(5, 2), (7, 0)]


# What holds for all runs

RUNS = st.lists(st.builds(run, st.just("a"), st.integers(0, 60), st.integers(1, 30)))


def end(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


@settings(max_examples=30)
@given(RUNS)
def test_lanes_and_levels_are_those_of_every_nanosecond(runs):
    counts = [sum(run.start_ns <= ns < end(run) for run in runs) for ns in range(91)]
    packed = lanes.pack([run._replace(step=number) for number, run in enumerate(runs)])
    assert sorted(run.step for lane in packed for run in lane) == list(range(len(runs)))
    assert len(packed) == max(counts)
    assert all(end(a) <= b.start_ns for lane in packed for a, b in combinations(lane, 2))
    changes, now = dict(points(lanes.ops_at_once(runs))), 0
    for ns, count in enumerate(counts):
        now = changes.get(ns, now)
        assert now == count
