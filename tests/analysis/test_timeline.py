"""Timeline: hand-made steps whose owners are known, and runs in lanes where nothing overlaps."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.runs import runs
from tests.records_by_hand import run
from tflab.analysis import timeline
from tflab.records.timed import StepTime

STEPS = (StepTime(0, start_ns=1000, wall_ns=100), StepTime(1, start_ns=2000, wall_ns=50))
OWNERS = [timeline.BEFORE, timeline.BUSY, timeline.GAPS, timeline.AFTER]


@pytest.mark.parametrize(
    ("recorded", "steps", "owned"),  # before the first op, busy, gaps, after the last op
    [
        ("a 1010 20; b 1050 30", 1, [10, 50, 20, 20]),
        ("b 1050 30; a 1010 20", 1, [10, 50, 20, 20]),
        # What overlaps is busy once, also on several devices
        ("a 1010 40; b 1020 10; c 1040 30", 1, [10, 60, 0, 30]),
        ("a 1010 40; b 1010 40 @CPU:1", 1, [10, 40, 0, 50]),
        ("a 1000 50; b 1050 50", 1, [0, 100, 0, 0]),
        ("a 900 150; b 1080 500", 1, [0, 70, 30, 0]),  # cut off at the edges of the step
        ("a 1030 0", 1, [30, 0, 0, 70]),
        ("", 1, [100, 0, 0, 0]),
        # Steps are added up and see only their own runs
        ("a 1010 20; a 2010 20 #1; a 1050 9 #7", 2, [20, 40, 0, 90]),
        ("a 1010 10; b 1050 10; a 2010 10 #1; b 2030 10 #1", 2, [20, 40, 40, 50]),
        ("b 2030 10 #1", 2, [130, 10, 0, 10]),
        ("a 1010 20", 0, [0, 0, 0, 0]),
    ],
)
def test_who_owned_the_wall_time(recorded, steps, owned):
    owners = timeline.time_ledger(runs(recorded), STEPS[:steps])
    assert [(owner.owner, owner.ns) for owner in owners] == list(zip(OWNERS, owned, strict=True))


def test_the_network_owns_what_is_on_its_way_while_no_op_runs():
    wires = runs("w 1020 30; w 1060 10; w 2030 5 #1")
    owners = timeline.time_ledger(runs("a 1010 20; a 2010 20 #1"), STEPS, wires)
    assert [(owner.owner, owner.ns) for owner in owners] == [
        (timeline.BEFORE, 20),
        (timeline.BUSY, 40),
        (timeline.WIRE, 20 + 10 + 5),
        (timeline.GAPS, 10),
        (timeline.AFTER, 30 + 15),
    ]


TIMES = st.integers(0, 2**61)
FAR = st.lists(st.builds(run, st.just("a"), TIMES, TIMES, step=st.integers(0, 2)))
NEAR = st.lists(st.builds(run, st.just("a"), st.integers(-20, 60), st.integers(0, 40)))
ANY_STEPS = st.lists(
    st.builds(StepTime, st.integers(0, 2), TIMES, TIMES), unique_by=lambda step: step.step
)


@settings(max_examples=30)
@given(FAR, ANY_STEPS)
def test_the_owners_sum_to_the_wall_time_exactly(runs, steps):
    shares = [owner.ns for owner in timeline.time_ledger(runs, steps)]
    assert sum(shares) == sum(step.wall_ns for step in steps)
    assert min(shares) >= 0


@settings(max_examples=30)
@given(NEAR)
def test_busy_is_every_nanosecond_that_some_run_covers(runs):
    covered = {ns for run in runs for ns in range(run.start_ns, run.start_ns + run.duration_ns)}
    spans = timeline.busy_spans(runs, StepTime(0, start_ns=0, wall_ns=50))
    assert {ns for start, end in spans for ns in range(start, end)} == covered & set(range(50))
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


# Lanes

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
    packed = ["".join(run.name for run in lane) for lane in timeline.pack(runs(recorded))]
    assert packed == names.split()


# The step that stands for all


def test_the_step_in_the_middle_is_that_with_the_median_wall_time():
    steps = [StepTime(index, 0, wall) for index, wall in enumerate((50, 10, 40, 20, 30))]
    assert timeline.median_step(steps) == steps[4]
    assert timeline.median_step(steps[:4]) == steps[3]  # of two in the middle, the shorter
