"""Lanes: hand-made runs in rows, where nothing partly overlaps."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records_by_hand import run
from tflab.analysis import lanes
from tflab.records.timed import Occupancy, OpRun, StepShape, StepTime


def packed(*runs: OpRun) -> list[str]:
    """The names in each lane."""
    return ["".join(run.name for run in lane) for lane in lanes.pack(runs)]


def test_runs_one_after_another_share_a_lane():
    assert packed(run("b", 10, 5), run("a", 0, 10), run("c", 20, 5)) == ["abc"]


def test_runs_that_partly_overlap_need_two_lanes():
    runs = (run("a", 0, 10), run("b", 5, 10), run("c", 10, 10))
    assert packed(*runs) == ["ac", "b"]


def test_a_step_without_runs_has_no_lanes():
    assert lanes.steps_with_shape([], [StepTime(0, 0, 10)]) == (
        StepTime(0, 0, 10, StepShape(most_at_once=0, mean_at_once=0, devices=())),
    )


def test_a_run_within_another_has_a_lane_of_its_own():
    runs = (run("a", 0, 10), run("b", 2, 5), run("c", 3, 2), run("d", 8, 2))
    assert packed(*runs) == ["a", "bd", "c"]


def test_a_run_has_the_first_lane_that_is_free():
    first = (run("a", 0, 9), run("b", 1, 2), run("c", 2, 3), run("d", 4, 6), run("e", 5, 1))
    # After a pause, and a group of more and one of fewer runs than the first
    second = (run("f", 20, 9), run("g", 21, 9), run("h", 22, 9), run("i", 23, 9), run("j", 24, 9))
    second += (run("k", 25, 9), run("l", 29, 1), run("m", 40, 5), run("n", 41, 1), run("o", 42, 1))
    assert packed(*first, *second) == ["aflm", "bdgno", "ceh", "i", "j", "k"]


def test_a_group_of_many_runs_is_packed_alone():
    count = lanes.SMALL + 2
    longer = [run(chr(97 + n), n, 40) for n in range(count)]
    last = run("Z", 41, 5)  # where the second one had ended
    assert packed(*longer, last) == ["aZ", *(chr(97 + n) for n in range(1, count))]


def test_a_run_of_no_duration_opens_no_lane():
    assert packed(run("a", 5, 0), run("b", 5, 0)) == ["ab"]


def test_a_run_of_no_duration_shares_a_lane_with_one_that_starts_together_with_it():
    source, const = run("s", 100, 0), run("x", 100, 10)
    assert packed(source, const) == packed(const, source) == ["sx"]
    assert lanes.step_shape([source, const], STEP).most_at_once == 1


def test_without_runs_there_are_no_lanes():
    assert lanes.pack([]) == ()


# Shape

STEP = StepTime(0, start_ns=1000, wall_ns=100)


def test_the_shape_of_a_step_with_two_devices():
    runs = [run("a", 1010, 40), run("b", 1020, 10), run("c", 1020, 50, device="CPU:1")]
    assert lanes.step_shape(runs, STEP) == StepShape(
        most_at_once=3,
        mean_at_once=100 / 100,
        devices=(
            Occupancy("CPU:0", busy_ns=40, idle_share=0.6),
            Occupancy("CPU:1", busy_ns=50, idle_share=0.5),
        ),
    )


def test_what_reaches_out_of_its_step_is_cut_off_at_the_edge():
    shape = lanes.step_shape([run("a", 900, 150), run("b", 1080, 500)], STEP)
    assert (shape.mean_at_once, shape.devices) == (0.7, (Occupancy("CPU:0", 70, 0.3),))


def test_a_step_without_runs_is_idle():
    assert lanes.step_shape([], STEP) == StepShape(0, 0, ())


def test_a_step_without_time_has_no_mean():
    shape = lanes.step_shape([run("a", 0, 0)], StepTime(0, 0, 0))
    assert shape == StepShape(1, 0, (Occupancy("CPU:0", 0, 0),))


def test_every_step_sees_its_own_runs_and_all_devices():
    steps = (STEP, StepTime(1, start_ns=2000, wall_ns=50))
    runs = [run("a", 1010, 20), run("a", 2010, 25, 1, "CPU:1"), run("a", 0, 9, step=7)]
    first, second = lanes.steps_with_shape(runs, steps)
    assert [(device.device, device.busy_ns) for device in first.shape.devices] == [
        ("CPU:0", 20),
        ("CPU:1", 0),
    ]
    assert [(device.device, device.idle_share) for device in second.shape.devices] == [
        ("CPU:0", 1),
        ("CPU:1", 0.5),
    ]
    assert (second.step, second.start_ns, second.wall_ns) == (1, 2000, 50)


def test_without_steps_there_are_no_shapes():
    assert lanes.steps_with_shape([run("a", 0, 1)], []) == ()


# What holds for all runs

RUNS = st.lists(st.builds(run, st.just("a"), st.integers(0, 60), st.integers(1, 30)))


def end(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


def at_once(runs: list[OpRun]) -> int:
    """The most runs that cover one nanosecond, counted."""
    return max((sum(run.start_ns <= ns < end(run) for run in runs) for ns in range(90)), default=0)


@settings(max_examples=30)
@given(RUNS)
def test_lanes_hold_every_run_once_and_no_two_at_once(runs):
    packed_lanes = lanes.pack([run._replace(step=number) for number, run in enumerate(runs)])
    packed_steps = sorted(run.step for lane in packed_lanes for run in lane)
    assert packed_steps == list(range(len(runs)))
    assert len(packed_lanes) == at_once(runs)
    assert all(end(a) <= b.start_ns for lane in packed_lanes for a, b in combinations(lane, 2))


@given(st.lists(st.builds(run, st.just("a"), st.integers(0, 400), st.integers(0, 9))))
def test_groups_that_are_packed_together_have_the_lanes_of_groups_packed_alone(runs):
    expected = [list(lane) for lane in lanes.pack(runs)]
    for limit, value in (("SMALL", 1), ("TOGETHER", 2)):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(lanes, limit, value)
            assert [list(lane) for lane in lanes.pack(runs)] == expected


@given(RUNS)
def test_spans_are_packed_in_the_order_of_their_starts_and_durations(runs):
    starts, durations = np.array([(run.start_ns, run.duration_ns) for run in runs]).reshape(-1, 2).T
    expected = sorted(range(len(runs)), key=lambda place: (starts[place], durations[place]))
    assert lanes.order(starts, durations).tolist() == expected


@pytest.mark.slow
@settings(max_examples=30)
@given(RUNS)
def test_the_mean_is_that_of_every_nanosecond(runs):
    shape = lanes.step_shape(runs, StepTime(0, 0, 90))
    counts = [sum(run.start_ns <= ns < end(run) for run in runs) for ns in range(90)]
    assert shape.mean_at_once == pytest.approx(sum(counts) / 90)
    assert shape.mean_at_once <= shape.most_at_once


# A real trace


@pytest.mark.tensorflow
@pytest.mark.parametrize("model, options", [("lenet", {}), ("toy", {"devices": 2})])
def test_the_steps_of_a_walk_have_a_shape(walked, model, options):
    for step in walked(model, **options)["execution"].step_times:
        assert len(step.shape.devices) == options.get("devices", 1)
        assert all(0 < device.idle_share < 1 for device in step.shape.devices)
        assert 0 < step.shape.mean_at_once <= step.shape.most_at_once


MOMENTS = st.lists(st.builds(run, st.just("a"), st.integers(0, 9), st.integers(0, 3)))


@given(MOMENTS)
def test_as_many_lanes_are_needed_as_are_packed(runs):
    shape = lanes.step_shape(runs, StepTime(0, 0, 20))
    assert shape.most_at_once == len(lanes.pack(runs))


@pytest.mark.parametrize(
    "runs, level",
    [
        (
            [(20, 1), (5, 10), (8, 4), (9, 0), (15, 2)],
            [(5, 1), (8, 2), (12, 1), (17, 0), (20, 1), (21, 0)],
        ),
        ([(7, 0), (9, 1)], [(7, 0), (9, 1), (10, 0)]),
        ([(2**62 - 1, 1)], [(2**62 - 1, 1), (2**62, 0)]),
        ([], []),
    ],
)
def test_the_number_of_ops_at_once_at_each_change(runs, level):
    moments, numbers = lanes.ops_at_once([run("a", *times) for times in runs])
    assert list(zip(moments.tolist(), numbers.tolist(), strict=True)) == level
