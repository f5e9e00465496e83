"""Simulation: steps of a few ops, whose time on so many processors can be worked out by hand.

An op of 50 us and more works with all processors, so that two of them in flight take twice as long.
"""

import pytest

from tflab.analysis import simulation
from tflab.analysis.simulation import Profile
from tflab.records import OpRun

DIAMOND = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


def run(name: str, start_ns: int, duration_ns: int, step: int) -> OpRun:
    return OpRun(step, name, "Op", "CPU:0", start_ns, duration_ns)


def ops(gap_ns: float = 0, **cost: float) -> Profile:
    return Profile(cost, dict.fromkeys(cost, 1), gap_ns)


SHORT = ops(top=10, left=20, right=30, bottom=40)


@pytest.mark.parametrize(
    "processors, ns",
    [
        (1, 10 + 20 + 30 + 40),
        (2, 10 + 30 + 40),  # left and right at once
        (3, 10 + 30 + 40),
    ],
)
def test_short_ops_run_side_by_side_where_there_are_processors(processors, ns):
    assert simulation.step_ns(DIAMOND, SHORT, processors) == ns


def test_long_ops_share_the_processors():
    both = ops(left=60_000, right=90_000)
    parents = {"left": [], "right": []}
    # Each at half its speed: left ends at 120, right has 30 of its own left.
    assert simulation.step_ns(parents, both, 2) == 120_000 + 30_000


def test_a_short_op_takes_a_third_of_what_it_wants_beside_a_long_one():
    beside = ops(long=60_000, short=30_000)
    # Three processors are wanted where there are two: both are two thirds as fast.
    # At 45 the short one ends, and of the long one 30 are left.
    assert simulation.step_ns({"long": [], "short": []}, beside, 2) == 45_000 + 30_000


def test_no_more_ops_are_in_flight_than_there_are_threads():
    three = ops(a=10, b=10, c=10)
    assert simulation.step_ns({"a": [], "b": [], "c": []}, three, 2) == 20


def test_every_run_of_an_op_pays_for_a_gap():
    looped = Profile({"a": 100, "b": 50}, {"a": 1, "b": 5}, gap_ns=3)
    assert simulation.step_ns({"a": [], "b": ["a"]}, looped, 2) == 100 + 3 + 50 + 15


def test_a_node_without_a_run_takes_no_time_and_hands_on_at_once():
    parents = {"a": [], "send": ["a"], "recv": ["send"], "b": ["recv"]}
    assert simulation.step_ns(parents, ops(a=10, b=20, gap_ns=1), 2) == 32


def test_an_op_once_more_adds_what_the_others_do_not_hide():
    assert simulation.once_more_ns(DIAMOND, SHORT, 2, ["top", "left", "right", "bottom"]) == {
        "top": 10,
        "left": 10,  # 20 more than its 20: right took 30 anyway
        "right": 30,
        "bottom": 40,
    }


def test_the_unchanged_step_is_simulated_once_for_all_ops(monkeypatch):
    steps = []
    simulate = simulation.step_ns

    def noted(parents, *rest):
        steps.append(set(parents) - set(DIAMOND))
        return simulate(parents, *rest)

    monkeypatch.setattr(simulation, "step_ns", noted)
    assert list(simulation.once_more_ns(DIAMOND, SHORT, 2, ["right", "top"])) == ["right", "top"]
    assert steps == [set(), {simulation.COPY}, {simulation.COPY}]


def test_off_the_chain_a_long_op_is_not_free():
    parents = {"chain": [], "beside": []}
    both = ops(chain=100_000, beside=60_000)
    assert simulation.once_more_ns(parents, both, 2, ["beside"]) == {"beside": 60_000}


def test_a_node_in_two_places_of_an_input_list_is_waited_for_once_and_copied_once():
    parents = {"a": [], "square": ["a", "a"]}
    assert simulation.step_ns(parents, ops(a=10, square=5), 2) == 15
    assert simulation.once_more_ns(parents, ops(a=10, square=5), 2, ["a"]) == {"a": 10}


def test_a_profile_is_of_medians_and_of_the_gaps_between_ops():
    runs = [
        *(run("a", 0, 10, 0), run("b", 14, 6, 0)),  # 4 between two: 2 for each
        *(run("a", 100, 30, 1), run("b", 140, 10, 1)),  # 10: 5 for each
        *(run("a", 200, 12, 2), run("b", 212, 7, 2)),  # none
    ]
    assert simulation.profile(runs) == Profile({"a": 12, "b": 7}, {"a": 1, "b": 1}, 2)


def test_runs_in_a_loop_are_counted_by_the_step():
    runs = [run("a", 0, 10, 0), run("a", 10, 10, 0), run("a", 50, 40, 1)]
    assert simulation.profile(runs) == Profile({"a": 20}, {"a": 1.5}, 0)


def test_a_scaled_profile_is_as_much_longer_in_ops_and_in_gaps():
    looped = Profile({"a": 100, "b": 50}, {"a": 1, "b": 5}, gap_ns=3)
    assert looped.total_ns == 100 + 50 + 6 * 3
    assert looped.scaled(2) == Profile({"a": 200, "b": 100}, {"a": 1, "b": 5}, gap_ns=6)
    assert looped.scaled(0.5).total_ns == 84


def test_without_runs_there_is_nothing_to_simulate():
    nothing = simulation.profile([])
    assert nothing == Profile({}, {}, 0)
    assert simulation.step_ns(DIAMOND, nothing, 2) == 0
