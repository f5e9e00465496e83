"""Lanes: hand-made runs in rows, where nothing partly overlaps."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.runs import runs
from tests.records_by_hand import run
from tflab.analysis import lanes
from tflab.records.timed import OpRun

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


# What holds for all runs

RUNS = st.lists(st.builds(run, st.just("a"), st.integers(0, 60), st.integers(1, 30)))


def end(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


@settings(max_examples=30)
@given(RUNS)
def test_there_are_as_many_lanes_as_runs_at_once(runs):
    counts = [sum(run.start_ns <= ns < end(run) for run in runs) for ns in range(91)]
    packed = lanes.pack([run._replace(step=number) for number, run in enumerate(runs)])
    assert sorted(run.step for lane in packed for run in lane) == list(range(len(runs)))
    assert len(packed) == max(counts)
    assert all(end(a) <= b.start_ns for lane in packed for a, b in combinations(lane, 2))
