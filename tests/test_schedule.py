"""Schedule: hand-made steps, whose owners and longest chains can be counted on fingers."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab import schedule
from tflab.records import CriticalPath, Node, OpRun, StepTime, Transfer


def run(name: str, start: int, duration: int, step: int = 0, device: str = "CPU:0") -> OpRun:
    return OpRun(step, name, "Op", device, start, duration)


# Who owned the wall time

STEP = StepTime(0, start_ns=1000, wall_ns=100)


def ledger(*runs: OpRun, steps: tuple[StepTime, ...] = (STEP,)) -> list[int]:
    """Before the first op, busy, gaps, after the last op."""
    return [owner.ns for owner in schedule.time_ledger(runs, steps)]


def test_the_owners_are_named_in_order_of_time():
    owners = [owner.owner for owner in schedule.time_ledger([], [STEP])]
    assert owners == [schedule.BEFORE, schedule.BUSY, schedule.GAPS, schedule.AFTER]


def test_a_step_is_before_busy_gap_and_after():
    assert ledger(run("a", 1010, 20), run("b", 1050, 30)) == [10, 50, 20, 20]


def test_runs_count_in_any_order():
    assert ledger(run("b", 1050, 30), run("a", 1010, 20)) == [10, 50, 20, 20]


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


def test_without_steps_nobody_owns_anything():
    assert ledger(run("a", 1010, 20), steps=()) == [0, 0, 0, 0]


TIMES = st.integers(0, 2**61)
RUNS = st.builds(run, st.just("a"), TIMES, TIMES, step=st.integers(0, 2))
NEAR_RUNS = st.builds(run, st.just("a"), st.integers(-20, 60), st.integers(0, 40))
STEPS = st.lists(
    st.builds(StepTime, st.integers(0, 2), TIMES, TIMES), unique_by=lambda step: step.step
)


@settings(max_examples=30, deadline=None)
@given(st.lists(RUNS), STEPS)
def test_the_owners_sum_to_the_wall_time_exactly(runs, steps):
    shares = ledger(*runs, steps=tuple(steps))
    assert sum(shares) == sum(step.wall_ns for step in steps)
    assert min(shares) >= 0


@settings(max_examples=30, deadline=None)
@given(st.lists(NEAR_RUNS))
def test_busy_is_every_nanosecond_that_some_run_covers(runs):
    covered = {ns for each in runs for ns in range(each.start_ns, each.start_ns + each.duration_ns)}
    spans = schedule.busy_spans(runs, StepTime(0, start_ns=0, wall_ns=50))
    assert {ns for start, end in spans for ns in range(start, end)} == covered & set(range(50))
    assert all(end < start for (_, end), (start, _) in pairwise(spans))


# The longest chain

DIAMOND = [
    Node("top", "Op"),
    Node("left", "Op", ("top",)),
    Node("right", "Op", ("top:1",)),
    Node("bottom", "Op", ("left", "right")),
]


def timed(**durations: int) -> list[OpRun]:
    return [run(name, 0, duration) for name, duration in durations.items()]


def test_the_longer_side_of_a_diamond_is_critical():
    runs = timed(top=10, left=20, right=30, bottom=40)
    assert schedule.critical_path(DIAMOND, runs) == CriticalPath(
        ("top", "right", "bottom"), ns=80, parallelism=100 / 80
    )


def test_a_chain_has_no_parallelism():
    nodes = [Node("a", "Op"), Node("b", "Op", control_inputs=("a",))]
    assert schedule.critical_path(nodes, timed(a=3, b=4)) == CriticalPath(("a", "b"), 7, 1)


def test_ops_that_do_not_wait_for_each_other_are_as_parallel_as_there_are_of_them():
    nodes = [Node(name, "Op") for name in "abcd"]
    runs = timed(a=5, b=5, c=5, d=5)
    assert schedule.critical_path(nodes, runs) == CriticalPath(("a",), 5, 4)


def test_a_chain_goes_through_a_transfer_to_the_other_device():
    nodes = [
        Node("a", "Op"),
        Node("send", "_Send", ("a",)),
        Node("recv", "_Recv"),
        Node("b", "Op", ("recv",)),
        Node("c", "Op"),
    ]
    transfer = Transfer("a", "send", "recv", "CPU:0", "CPU:1", "float32", (1,), 4)
    runs = timed(a=10, b=20, c=25)
    assert schedule.critical_path(nodes, runs, [transfer]) == CriticalPath(
        ("a", "send", "recv", "b"), ns=30, parallelism=55 / 30
    )
    assert schedule.critical_path(nodes, runs) == CriticalPath(("c",), 25, 55 / 25)


@pytest.mark.parametrize("back", ["NextIteration", "RefNextIteration"])
def test_a_loop_is_a_chain_of_one_round_with_its_iterations_added_up(back):
    nodes = [
        Node("enter", "Enter"),
        Node("merge", "Merge", ("enter", "next")),
        Node("body", "Op", ("merge",)),
        Node("next", back, ("body",)),
        Node("exit", "Exit", ("merge",)),
    ]
    runs = [run("body", start, 10) for start in range(0, 50, 10)] + timed(enter=1, merge=2, next=3)
    assert schedule.critical_path(nodes, runs) == CriticalPath(
        ("enter", "merge", "body", "next"), ns=56, parallelism=1
    )


def test_a_node_costs_its_median_over_the_steps():
    runs = [run("a", 0, duration, step) for step, duration in enumerate((1000, 4, 6))]
    assert schedule.critical_path([Node("a", "Op")], runs) == CriticalPath(("a",), 6, 1)


def test_runs_and_inputs_of_unknown_nodes_do_not_count():
    nodes = [Node("a", "Op", ("elsewhere",))]
    assert schedule.critical_path(nodes, timed(a=1, elsewhere=9)) == CriticalPath(("a",), 1, 1)


def test_without_runs_the_chain_takes_no_time():
    path = schedule.critical_path(DIAMOND, [])
    assert (path.ns, path.parallelism) == (0, 0)


def test_without_nodes_there_is_no_chain():
    assert schedule.critical_path([], timed(a=1)) == CriticalPath((), 0, 0)


def test_a_deep_graph_has_its_chain_found_without_recursion():
    names = [f"n{index}" for index in range(5_000)]
    nodes = [Node("n0", "Op")]
    nodes += [Node(name, "Op", (before,)) for before, name in pairwise(names)]
    path = schedule.critical_path(nodes, [run(name, 0, 1) for name in names])
    assert path == CriticalPath(tuple(names), 5_000, 1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 100), min_size=4, max_size=4))
def test_the_chain_is_no_longer_than_the_work_and_no_shorter_than_any_op(durations):
    path = schedule.critical_path(
        DIAMOND, timed(**dict(zip(("top", "left", "right", "bottom"), durations, strict=True)))
    )
    assert max(durations) <= path.ns <= sum(durations)
    assert path.ns * path.parallelism == pytest.approx(sum(durations))
