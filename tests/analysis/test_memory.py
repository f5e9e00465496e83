"""Memory: a few allocations, added up by hand and by tflab."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import memory, op_runs
from tflab.records.timed import Holder, LiveBytes, Memory, OpMemory, OpRun, StepTime


def run(name: str, *allocations: tuple[int, int], step: int = 0, until_us: int = 0) -> OpRun:
    return OpRun(
        step,
        name,
        "Op",
        "CPU:0",
        start_ns=0,
        duration_ns=1000 * until_us,
        requested_bytes=sum(size for _, size in allocations if size > 0),
        allocations=tuple((time, size, "cpu") for time, size in allocations),
    )


def test_memory_is_the_mean_of_a_step_and_the_peak_of_the_worst():
    runs = [
        run("a", (1, 100), (5, -100)),
        run("b", (3, 50), (9, -50)),
        run("a", (1, 120), (2, -120), step=1),
        run("b", (3, 50), (9, -50), step=1),
    ]
    assert memory.memory(runs) == Memory((OpMemory("a", 110), OpMemory("b", 50)), peak_bytes=150)


def test_a_node_that_ran_in_half_of_the_steps_asked_for_half():
    runs = [run("a", (1, 100)), run("b", (1, 30), step=1)]
    assert memory.memory(runs).per_op == (OpMemory("a", 50), OpMemory("b", 15))


def test_the_iterations_of_a_loop_are_added_up_within_a_step():
    runs = [run("body", (index, 10)) for index in range(5)]
    assert memory.memory(runs).per_op == (OpMemory("body", 50),)


def test_without_runs_there_is_no_memory():
    assert memory.memory([]) == Memory((), 0)


def test_the_curve_is_that_of_the_step_with_the_median_wall_time():
    runs = [run("a", (index, 10), step=index) for index in range(3)]
    steps = [StepTime(0, 0, 90), StepTime(1, 0, 70), StepTime(2, 0, 80)]
    assert memory.memory(runs, steps).curve == LiveBytes(
        step=2,
        points=((2000, 10),),
        peak_bytes=10,
        peak_ns=2000,
        holders=(Holder("a", "Op", 10, running=False),),
    )


# One step

STEP = StepTime(0, start_ns=500, wall_ns=20_000)


def test_the_peak_is_held_by_the_ops_that_allocated():
    runs = [
        run("small", (1, 8), (9, -8), until_us=2),
        run("gone", (1, 500), (2, -500), until_us=2),
        run("big", (2, 64), (3, 32), (4, -32), (8, -64), until_us=4),
    ]
    assert memory.live_bytes(runs, STEP) == LiveBytes(
        step=0,
        points=((500, 508), (1500, 72), (2500, 104), (3500, 72), (7500, 8), (8500, 0)),
        peak_bytes=508,
        peak_ns=500,
        holders=(Holder("gone", "Op", 500, running=True), Holder("small", "Op", 8, running=True)),
    )


def test_an_op_that_has_ended_is_told_from_one_still_at_work():
    runs = [run("done", (1, 8), (9, -8), until_us=2), run("busy", (3, 4), (5, -4), until_us=5)]
    assert memory.live_bytes(runs, STEP).holders == (
        Holder("done", "Op", 8, running=False),
        Holder("busy", "Op", 4, running=True),
    )


def test_what_a_loop_holds_is_added_up():
    runs = [run("body", (index, 10)) for index in range(5)]
    assert memory.live_bytes(runs, STEP).holders == (Holder("body", "Op", 50, running=False),)


def test_a_node_that_ran_as_two_types_holds_bytes_as_the_last():
    kinds = (("Launch", "GPU:0"), ("Kernel", "GPU:1"))
    runs = [OpRun(0, "a", op, device, 1_000, 1, 4, ((1, 4, "gpu"),)) for op, device in kinds]
    assert memory.live_bytes(runs, STEP).holders == (Holder("a", "Kernel", 8, running=True),)


def test_of_equal_peaks_the_first_counts():
    live = memory.live_bytes([run("a", (1, 8), (2, -8)), run("b", (3, 8), (4, -8))], STEP)
    assert (live.peak_ns, [holder.name for holder in live.holders]) == (500, ["a"])


def test_a_single_byte_is_a_peak_and_an_op_that_ends_then_is_not_at_work_any_more():
    assert memory.live_bytes([run("a", (3, 1), until_us=3)], STEP) == LiveBytes(
        *(0, ((2500, 1),), 1, 2500, (Holder("a", "Op", 1, running=False),))
    )


def test_a_step_without_runs_has_an_empty_curve():
    runs = [run("a", (1, 8), step=1)]
    assert memory.memory(runs, [STEP]).curve == LiveBytes(0, (), 0, 0, ())


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [run("a")],
        [run("a", (3, -8))],
        [run("a", (3, 8), (3, -8))],
        [run("a", (0, 8)), run("b", (0, -8))],
    ],
)
def test_where_nothing_was_allocated_nobody_holds_anything(runs):
    live = memory.live_bytes(runs, STEP)
    assert (live.peak_bytes, live.peak_ns, live.holders) == (0, 0, ())


def test_a_curve_has_a_point_for_each_microsecond():
    events = run("a", (9, -30), (1, 10), (3, 5), (2, 30), (2, -10))
    times, alive = memory.curve(op_runs.of([events]))
    assert list(zip(times, alive, strict=True)) == [(1, 10), (2, 30), (3, 35), (9, 5)]


@pytest.mark.parametrize(
    ("events", "peak"),
    [
        ([(9, -30), (1, 10), (3, 5), (2, 30)], 45),
        ([(1, 10), (2, 30), (2, -10)], 30),  # of one microsecond, frees come before allocations
        ([(1, -10)], 0),
        ([], 0),
    ],
)
def test_the_peak_is_the_largest_running_sum_whatever_the_order(events, peak):
    assert memory.peak(op_runs.of([run("a", *events)])) == peak


# What holds for all allocations


@st.composite
def freed_runs(draw):
    """Runs that release only what they allocated, and maybe not all of it."""
    runs = []
    for _ in range(draw(st.integers(0, 6))):
        events = []
        for _ in range(draw(st.integers(0, 3))):
            start, size = draw(st.integers(1, 30)), draw(st.integers(1, 100))
            events.append((start, size))
            if draw(st.booleans()):
                events.append((start + draw(st.integers(0, 20)), -size))
        runs.append(run(draw(st.sampled_from("abc")), *events, until_us=draw(st.integers(0, 40))))
    return runs


@settings(max_examples=30)
@given(freed_runs())
def test_the_curve_ends_where_allocations_minus_frees_end(runs):
    live = memory.live_bytes(runs, STEP)
    left = sum(size for run in runs for _, size, _ in run.allocations)
    assert (live.points[-1][1] if live.points else 0) == left
    assert all(alive >= 0 for _, alive in live.points)
    assert [ns for ns, _ in live.points] == sorted({ns for ns, _ in live.points})


def test_the_peak_of_a_group_is_that_of_its_nodes_in_their_worst_step():
    runs = [
        run("a", (1, 100), (4, -100)),
        run("b", (2, 30), (3, -30), (3, 5)),
        run("c", (4, 7)),
        run("a", (1, 90), (2, -90), step=1),
        run("b", (2, 60), step=1),
    ]
    groups = [["a"], ["a", "b"], ["c", "a"], ["b"], ["d"], []]
    # a and b at 2 us of step 0; at 4 us, a has gone when c comes; in step 1, a goes when b comes
    assert memory.peaks(runs, groups) == [100, 130, 100, 60, 0, 0]
    assert memory.peaks([], groups) == [0, 0, 0, 0, 0, 0]
    assert memory.peaks(runs, []) == []


@settings(max_examples=50)
@given(
    st.lists(
        st.builds(
            lambda name, step, *events: run(name, *events, step=step),
            st.sampled_from("abc"),
            st.integers(0, 2),
            *(st.tuples(st.integers(0, 5), st.integers(-20, 20)) for _ in range(2)),
        )
    ),
    st.lists(st.sets(st.sampled_from("abcd"))),
)
def test_the_peak_of_a_group_is_that_of_its_runs_alone(runs, groups):
    alone = [memory.memory(run for run in runs if run.name in names) for names in groups]
    assert memory.peaks(runs, groups) == [found.peak_bytes for found in alone]


@settings(max_examples=30)
@given(freed_runs())
def test_the_holders_add_up_to_the_peak(runs):
    live = memory.live_bytes(runs, STEP)
    assert sum(holder.bytes for holder in live.holders) == live.peak_bytes
    assert live.peak_bytes == memory.peak(op_runs.of(runs))
    assert live.peak_bytes == max((alive for _, alive in live.points), default=0)
    assert all(holder.bytes > 0 for holder in live.holders)


# A real trace


@pytest.mark.tensorflow
def test_a_real_run_never_releases_more_than_it_allocated(walked):
    for run in walked("lenet")["execution"].runs:
        assert (memory.curve(op_runs.of([run]))[1] >= 0).all()


@pytest.mark.tensorflow
def test_the_holders_of_a_real_step_add_up_to_its_peak(walked):
    stage = walked("lenet")["execution"]
    curve = stage.memory.curve
    assert sum(holder.bytes for holder in curve.holders) == curve.peak_bytes
    assert curve.peak_bytes <= stage.memory.peak_bytes
    (step,) = (step for step in stage.step_times if step.step == curve.step)
    assert -1000 < curve.points[0][0] < curve.peak_ns < step.wall_ns
    output = 16 * 28 * 28 * 6 * 4  # of conv1/Relu: the gradients need it once more
    assert curve.holders[0] == Holder("conv1/Relu", curve.holders[0].op, output, running=False)
