"""Race: which configurations share a process, in which order they run, and what is made of it."""

from itertools import pairwise

import pytest

from tflab.compare import race
from tflab.records import Spread
from tflab.runtime import elsewhere

OWN = {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"}
GROUPS = [({}, ["default", "xla"]), ({"TF_ENABLE_ONEDNN_OPTS": "0"}, ["no-onednn"])]


def test_what_the_environment_decides_has_a_process_of_its_own():
    assert race.by_environment(["default", "no-onednn", "xla"]) == GROUPS


def test_threads_are_compared_with_a_default_in_the_same_process_and_environment():
    groups = race.by_environment(["default", "xla", "one-thread"])
    assert groups == [({}, ["default", "xla"]), (OWN, ["default", "one-thread"])]


@pytest.fixture
def processes(monkeypatch):
    """The processes that were started, each by its jobs; all steps take 100 ns."""
    started = []

    def untraced(jobs, rows, batch_sizes, rounds, sessions, environment):
        started.append(jobs)
        return [{size: [100] * rounds for size in batch_sizes} for _ in jobs]

    monkeypatch.setattr(elsewhere, "untraced", untraced)
    return started


JOBS = {"default": "default", "xla": "xla", "no-onednn": "no-onednn"}


def test_the_order_of_processes_is_turned_around_every_time(processes):
    observed = list(race.observations(JOBS, GROUPS, [], [4], iter(range(3))))
    assert [times.keys() for times in observed] == [JOBS.keys()] * 3
    turns = [list(map(sorted, processes[at : at + 2])) for at in (0, 2, 4)]
    assert all(before == list(reversed(after)) for before, after in pairwise(turns))
    assert sorted(turns[0]) == [["default", "xla"], ["no-onednn"]]


def test_no_configuration_is_always_the_first_whose_session_is_made(processes):
    list(race.observations(JOBS, GROUPS, [], [4], iter(range(9))))
    firsts = {names[0] for names in processes}
    assert firsts == {"default", "xla", "no-onednn"}


def test_when_the_time_is_over_no_further_observation_begins(processes, monkeypatch):
    monkeypatch.setattr(race, "BUDGET_S", -1)
    assert len(list(race.observations(JOBS, GROUPS, [], [4], iter(range(9))))) == 3


def times(default, xla):
    return {"default": {4: default}, "xla": {4: xla}}


def test_an_observation_is_the_ratio_of_two_medians():
    observed = [
        times([100, 110, 900], [200, 220, 1]),
        times([100, 100, 100], [201, 201, 201]),
        times([50, 100, 100], [199, 199, 250]),
    ]
    default, xla = race.judged(observed, ["default", "xla"], [4])
    assert (default.config, default.batch_size, default.verdict) == ("default", 4, None)
    assert default.untraced_ns == Spread(median=100, p10=90, p90=268)
    assert default.images_per_second == 4e9 / 100
    # 200 / 110, 201 / 100 and 199 / 100
    assert xla.verdict.ratio == pytest.approx((200 / 110 * 2.01 * 1.99) ** (1 / 3))
    assert (xla.verdict.observations, xla.untraced_ns.median) == (3, 201)


def test_the_default_beside_another_configuration_is_what_that_is_held_against(processes):
    jobs = {"default": "default", "one-thread": "one-thread"}
    groups = race.by_environment(list(jobs))
    observed = list(race.observations(jobs, groups, [], [4], iter(range(3))))
    assert {*observed[0]} == {"default", "one-thread", "default beside one-thread"}
    assert sorted(map(sorted, processes[:2])) == [["default"], ["default", "one-thread"]]
    rows = [
        {"default": {4: [100]}, "default beside one-thread": {4: [300]}, "one-thread": {4: [ns]}}
        for ns in (600, 606, 594)
    ]
    default, one_thread = race.judged(rows, list(jobs), [4])
    assert default.untraced_ns.median == 100
    assert one_thread.verdict.ratio == pytest.approx((2 * 2.02 * 1.98) ** (1 / 3))


def test_an_observation_is_the_mean_over_its_sessions(monkeypatch):
    monkeypatch.setattr(race, "ROUNDS", 3)
    usual = [100, 100, 900, 10, 20, 30]
    times = [200, 1, 300, 40, 41, 42]
    assert race.ratio(times, usual) == pytest.approx((2.0 * 41 / 20) ** 0.5)


def test_a_verdict_that_the_medians_beside_it_deny_is_not_given():
    # In each process xla is the slower one, and yet its median over all of them is smaller.
    observed = [times([10] * 9, [12]), times([1], [1.2] * 9), times([10] * 9, [12])]
    (_, xla) = race.judged(observed, ["default", "xla"], [4])
    assert xla.verdict.ratio == pytest.approx(1.2)
    assert (xla.untraced_ns.median, xla.verdict.word) == (1.2, "cannot tell")
