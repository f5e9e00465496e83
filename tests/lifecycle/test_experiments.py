"""Experiments: ops of a real step are run once more; what that adds comes with its interval."""

from dataclasses import replace

import pytest

from tflab.lifecycle import execution, experiments
from tflab.records.options import Options
from tflab.runtime import measure

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def made(walked):
    stages = walked("lenet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "ROUNDS", 3)
        patch.setattr(experiments, "LARGEST", 3)
        top_ops = stages["execution"].top_ops
        made = experiments.run(stages["placement"], top_ops, Options(experiments=1))
    return made, top_ops[:3]


def test_each_of_the_largest_ops_has_an_experiment_or_a_reason(made):
    experiments_made, largest = made
    tried = [(row.name, row.op) for row in (*experiments_made.ops, *experiments_made.untried)]
    assert sorted(tried) == sorted((row.key, row.op) for row in largest)
    assert experiments_made.ops


def test_every_experiment_lies_within_its_interval_and_has_the_controls_observations(made):
    control = made[0].control
    assert (control.name, control.op) == ("control", "")
    for row in (control, *made[0].ops):
        assert row.low_ns < row.high_ns
        assert row.observations == control.observations >= experiments.LEAST


def test_an_observation_is_the_median_of_the_differences_of_a_round(walked, monkeypatch):
    times = iter([[[100, 200, 300], [101, 203, 302], [150, 260, 340]]] * experiments.LEAST)
    monkeypatch.setattr(measure, "in_rotation", lambda jobs, plan, seed: next(times))
    monkeypatch.setattr(experiments, "ROUNDS", 3)
    jobs = [measure.Job(None, None, None, Options())] * 3
    added_ns = experiments.observe(jobs, walked("toy")["placement"], Options(), "train")
    assert added_ns == [[2, 50]] * experiments.LEAST  # differences 1, 3, 2 and 50, 60, 40


def test_a_step_of_updates_and_the_runtimes_own_nodes_has_nothing_to_try(walked):
    stages = walked("lenet")
    own = [row for row in stages["execution"].top_ops if row.key.startswith("_")]
    made = experiments.run(stages["placement"], own, Options(experiments=1))
    assert (made.ops, made.control) == ((), None)
    assert [row.name for row in made.untried] == [row.key for row in own[: experiments.LARGEST]]


def test_ctrl_c_keeps_the_execution_and_says_so(walked, monkeypatch):
    monkeypatch.setattr(measure, "in_rotation", lambda jobs, plan, seed: [[] for _ in jobs])
    stages = walked("toy")
    kept = execution.with_experiments(
        stages["execution"], stages["placement"], Options(experiments=1)
    )
    assert kept == replace(stages["execution"], interrupted=True)
