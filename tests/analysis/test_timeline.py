"""Timeline: hand-made steps whose owners are known, and a real one."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records_by_hand import run
from tflab.analysis import step_times, timeline
from tflab.records.timed import OpRun, StepTime
from tflab.runtime import trace

# Who owned the wall time

STEP = StepTime(0, start_ns=1000, wall_ns=100)


def ledger(*runs: OpRun, steps: tuple[StepTime, ...] = (STEP,)) -> list[int]:
    """Before the first op, busy, gaps, after the last op."""
    return [owner.ns for owner in timeline.time_ledger(runs, steps)]


def test_the_owners_are_named_in_order_of_time():
    owners = [owner.owner for owner in timeline.time_ledger([], [STEP])]
    assert owners == [timeline.BEFORE, timeline.BUSY, timeline.GAPS, timeline.AFTER]


def test_a_step_is_before_busy_gap_and_after():
    assert ledger(run("a", 1010, 20), run("b", 1050, 30)) == [10, 50, 20, 20]


def test_runs_count_in_any_order():
    assert ledger(run("b", 1050, 30), run("a", 1010, 20)) == [10, 50, 20, 20]


def test_each_owner_is_added_up_over_all_steps():
    steps = [StepTime(step, 1000 * step, 100) for step in range(1, 5)]
    runs = [run("a", 3010, 10, 3), run("b", 3050, 10, 3), run("a", 4010, 10, 4)]
    assert ledger(*runs, run("b", 4050, 10, 4), steps=steps) == [220, 40, 60, 80]


def test_spans_that_touch_are_one():
    assert timeline.union([(5, 9), (0, 5), (10, 12)]) == [(0, 9), (10, 12)]


def test_what_overlaps_is_busy_once():
    assert ledger(run("a", 1010, 40), run("b", 1020, 10), run("c", 1040, 30)) == [10, 60, 0, 30]


def test_devices_that_work_at_once_are_busy_once():
    assert ledger(run("a", 1010, 40), run("b", 1010, 40, device="CPU:1")) == [10, 40, 0, 50]


def test_a_run_right_after_another_leaves_no_gap():
    assert ledger(run("a", 1000, 50), run("b", 1050, 50)) == [0, 100, 0, 0]


def test_a_run_that_reaches_out_of_its_step_is_cut_off_at_the_edge():
    assert ledger(run("a", 900, 150), run("b", 1080, 500)) == [0, 70, 30, 0]


def test_a_run_without_duration_still_ends_the_time_before():
    assert ledger(run("a", 1030, 0)) == [30, 0, 0, 70]


def test_a_step_without_runs_is_all_before_the_first_op():
    assert ledger() == [100, 0, 0, 0]


def test_steps_are_added_up_and_see_only_their_own_runs():
    steps = (STEP, StepTime(1, start_ns=2000, wall_ns=50))
    runs = (run("a", 1010, 20), run("a", 2010, 20, step=1), run("a", 1050, 9, step=7))
    assert ledger(*runs, steps=steps) == [20, 40, 0, 90]


def test_the_network_owns_what_is_on_its_way_while_no_op_runs():
    steps = (STEP, StepTime(1, start_ns=2000, wall_ns=50))
    runs = [run("a", 1010, 20), run("a", 2010, 20, 1)]
    wires = [run("w", 1020, 30), run("w", 1060, 10), run("w", 2030, 5, 1)]
    assert [(owner.owner, owner.ns) for owner in timeline.time_ledger(runs, steps, wires)] == [
        (timeline.BEFORE, 20),
        (timeline.BUSY, 40),
        (timeline.WIRE, 20 + 10 + 5),
        (timeline.GAPS, 10),
        (timeline.AFTER, 30 + 15),
    ]


def test_without_steps_nobody_owns_anything():
    assert ledger(run("a", 1010, 20), steps=()) == [0, 0, 0, 0]


TIMES = st.integers(0, 2**61)
RUNS = st.builds(run, st.just("a"), TIMES, TIMES, step=st.integers(0, 2))
NEAR_RUNS = st.builds(run, st.just("a"), st.integers(-20, 60), st.integers(0, 40))
STEPS = st.lists(
    st.builds(StepTime, st.integers(0, 2), TIMES, TIMES), unique_by=lambda step: step.step
)


@settings(max_examples=30)
@given(st.lists(RUNS), STEPS)
def test_the_owners_sum_to_the_wall_time_exactly(runs, steps):
    shares = ledger(*runs, steps=tuple(steps))
    assert sum(shares) == sum(step.wall_ns for step in steps)
    assert min(shares) >= 0


@settings(max_examples=30)
@given(st.lists(NEAR_RUNS))
def test_busy_is_every_nanosecond_that_some_run_covers(runs):
    covered = {ns for run in runs for ns in range(run.start_ns, run.start_ns + run.duration_ns)}
    spans = timeline.busy_spans(runs, StepTime(0, start_ns=0, wall_ns=50))
    assert {ns for start, end in spans for ns in range(start, end)} == covered & set(range(50))
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


def test_the_step_in_the_middle_is_that_with_the_median_wall_time():
    steps = [StepTime(index, 0, wall) for index, wall in enumerate((50, 10, 40, 20, 30))]
    assert step_times.median_step(steps) == steps[4]
    assert step_times.median_step(steps[:4]) == steps[3]  # of two in the middle, the shorter


# A real trace


@pytest.mark.tensorflow
def test_what_is_busy_agrees_with_numpy(walked):
    stage = walked("lenet")["execution"]
    busy = 0
    for step in stage.step_times:
        spans = [
            (run.start_ns, run.start_ns + run.duration_ns)
            for run in stage.runs
            if run.step == step.step and run.name != trace.EXECUTOR
        ]
        starts, ends = np.array(sorted(spans), np.int64).T
        covered_until = np.concatenate([starts[:1], np.maximum.accumulate(ends)[:-1]])
        busy += int(np.clip(ends - np.maximum(starts, covered_until), 0, None).sum())
    assert {owner.owner: owner.ns for owner in stage.time_ledger}[timeline.BUSY] == busy
    occupied = sum(device.busy_ns for step in stage.step_times for device in step.shape.devices)
    assert occupied == busy  # there is one device
