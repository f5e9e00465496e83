"""Rotation: who takes which place when steps take turns."""

import pytest

from tflab.records.options import Options
from tflab.records.timed import StepTime
from tflab.runtime import measure, plans

pytestmark = pytest.mark.tensorflow


def job(threads: int) -> measure.Job:
    return measure.Job(None, None, None, Options(threads=threads))


JOBS = [job(threads) for threads in range(5)]


def places_and_times(monkeypatch, seed: int) -> tuple[list[int], list[list[int]]]:
    """Which job took which place, and the times that are handed back; a job's steps take 100 ns
    for each of its threads, and 1 ns more every round."""
    places: list[int] = []

    def run(jobs, plan, observe):
        places.extend(job.options.threads for job in jobs)
        for number in range(3):
            for at, job in enumerate(jobs):
                ns = 100 * job.options.threads + number
                observe(measure.Turn((), 1, job=at), StepTime(number, 0, ns), None)
        observe(measure.Turn((), 1, job=2), StepTime(3, 0, 9), None)  # then comes Ctrl-C
        return measure.Outcome(interrupted=True)

    monkeypatch.setattr(measure, "run", run)
    times = measure.in_rotation(JOBS, measure.Plan("rounds", (), 3), seed)
    return places, times


def test_a_job_gets_its_own_times_whatever_its_place(monkeypatch):
    orders = set()
    for seed in range(5):
        places, times = places_and_times(monkeypatch, seed)
        orders.add(tuple(places))
        assert times == [[100 * at + number for number in range(3)] for at in range(5)]
    assert len(orders) == 5
    assert len({order[0] for order in orders}) > 1


def test_the_same_seed_gives_the_same_places(monkeypatch):
    assert places_and_times(monkeypatch, 3) == places_and_times(monkeypatch, 3)


def clock(monkeypatch, seconds):
    readings = iter(seconds)
    monkeypatch.setattr(plans.time, "monotonic", lambda: next(readings))


def test_observations_end_when_the_time_is_over_but_not_before_the_least(monkeypatch):
    clock(monkeypatch, [100, 109.9, 110.1])
    assert list(plans.observations(least=3, budget_s=10)) == [0, 1, 2, 3]
    clock(monkeypatch, [100, 200])
    assert list(plans.observations(least=3, budget_s=10)) == [0, 1, 2]


def test_observations_end_where_there_are_enough():
    assert list(plans.observations(least=3, budget_s=10, most=5)) == [0, 1, 2, 3, 4]
