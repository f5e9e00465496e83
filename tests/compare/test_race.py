"""Race: which configurations share a process, in which order they run, and what is made of it."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest

from tflab.compare import race
from tflab.records.timed import Spread
from tflab.runtime import own_process

pytestmark = pytest.mark.tensorflow
OWN = {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"}
GROUPS = [({}, ["default", "xla"]), ({"TF_ENABLE_ONEDNN_OPTS": "0"}, ["no-onednn"])]


def test_what_the_environment_decides_has_a_process_of_its_own():
    assert race.by_environment(["default", "no-onednn", "xla"]) == GROUPS


def test_threads_are_compared_with_a_default_in_the_same_process_and_environment():
    groups = race.by_environment(["default", "xla", "one-thread"])
    assert groups == [({}, ["default", "xla"]), (OWN, ["default", "one-thread"])]


@pytest.fixture
def processes(monkeypatch):
    """The processes that were started, each by its jobs, and the turns that they took: a step
    takes 100 ns in the first turn, 101 in the second, and so on."""
    log = SimpleNamespace(started=[], turns=[])

    @contextmanager
    def untraced(jobs, rows, batch_sizes, rounds, turns, environment):
        log.started.append(jobs)

        def process():
            yield [{size: [] for size in batch_sizes} for _ in jobs]
            for ns in count(100):
                log.turns.append(sorted(jobs))
                yield [{size: [ns] * rounds for size in batch_sizes} for _ in jobs]

        yield process()

    monkeypatch.setattr(own_process, "untraced", untraced)
    monkeypatch.setattr(race, "TURNS", 4)
    return log


JOBS = {"default": "default", "xla": "xla", "no-onednn": "no-onednn"}


def test_every_process_takes_a_turn_before_one_takes_its_next(processes):
    observed = list(race.observations(JOBS, GROUPS, [], [4], range(3)))
    assert [times.keys() for times in observed] == [JOBS.keys()] * 3
    assert len(processes.started) == 2 * 3
    rounds = [tuple(map(tuple, processes.turns[at : at + 2])) for at in range(0, 24, 2)]
    a, b = ("default", "xla"), ("no-onednn",)
    assert len(processes.turns) == 24
    assert set(rounds) == {(a, b), (b, a)}


def test_the_times_of_all_turns_are_kept_in_their_order(processes, monkeypatch):
    monkeypatch.setattr(race, "ROUNDS", 2)
    (observed,) = race.observations(JOBS, GROUPS, [], [4], range(1))
    assert observed == {name: {4: [100, 100, 101, 101, 102, 102, 103, 103]} for name in JOBS}


def test_when_the_time_of_an_observation_is_over_no_further_turn_begins(processes):
    (observed,) = race.observations(JOBS, GROUPS, [], [4], range(1), -1)
    assert observed["xla"] == {4: [100] * race.ROUNDS}


def test_no_configuration_is_always_the_first_whose_session_is_made(processes):
    list(race.observations(JOBS, GROUPS, [], [4], range(9)))
    firsts = {names[0] for names in processes.started}
    assert firsts == {"default", "xla", "no-onednn"}


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
    assert default.median_images_per_second == 4e9 / 100
    # 200 / 110, 201 / 100 and 199 / 100
    assert xla.verdict.ratio == pytest.approx((200 / 110 * 2.01 * 1.99) ** (1 / 3))
    assert (xla.verdict.observations, xla.untraced_ns.median) == (3, 201)
    assert xla.processes_ns == ((200, 220, 1), (201, 201, 201), (199, 199, 250))


def test_the_default_beside_another_configuration_is_what_that_is_held_against(processes):
    jobs = {"default": "default", "one-thread": "one-thread"}
    groups = race.by_environment(list(jobs))
    observed = list(race.observations(jobs, groups, [], [4], range(3)))
    assert {*observed[0]} == {"default", "one-thread", "default beside one-thread"}
    assert sorted(map(sorted, processes.started[:2])) == [["default"], ["default", "one-thread"]]
    rows = [
        {"default": {4: [100]}, "default beside one-thread": {4: [300]}, "one-thread": {4: [ns]}}
        for ns in (600, 606, 594)
    ]
    default, one_thread = race.judged(rows, list(jobs), [4])
    assert default.untraced_ns.median == 100
    assert one_thread.verdict.ratio == pytest.approx((2 * 2.02 * 1.98) ** (1 / 3))


def test_an_observation_is_the_median_of_its_turns(monkeypatch):
    monkeypatch.setattr(race, "ROUNDS", 3)
    usual = [100, 100, 900, 10, 20, 30, 1, 1, 1]
    times = [200, 1, 300, 40, 41, 42, 9, 9, 9]
    assert race.ratio(times, usual) == 41 / 20  # of 2, 41 / 20 and 9


def test_a_verdict_that_the_medians_beside_it_deny_is_not_given():
    # In each process xla is the slower one, and yet its median over all of them is smaller.
    observed = [times([10] * 9, [12]), times([1], [1.2] * 9), times([10] * 9, [12])]
    (_, xla) = race.judged(observed, ["default", "xla"], [4])
    assert xla.verdict.ratio == pytest.approx(1.2)
    assert (xla.untraced_ns.median, xla.verdict.word) == (1.2, "cannot tell")


def test_on_a_busy_machine_the_times_stay_and_the_verdict_is_withheld():
    observed = [times([100], [200])] * 3
    default, xla = race.judged(observed, ["default", "xla"], [4])
    assert xla.verdict.word == "slower"
    withheld = replace(xla, verdict=replace(xla.verdict, word="withheld"))
    assert race.undecided((default, xla)) == (default, withheld)
