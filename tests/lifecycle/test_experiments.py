"""Experiments: ops of a real step are run once more; what that adds comes with its interval."""

import os
from dataclasses import replace

import pytest

from tflab.analysis.timeline import by_step, covered, union
from tflab.cli import environment
from tflab.lifecycle import execution, experiments
from tflab.records import OpRun, Options
from tflab.runtime import measure, session

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


def test_the_model_predicts_every_op_that_was_tried_and_the_step(made):
    simulation = made[0].simulation
    assert simulation.processors == len(os.sched_getaffinity(0))
    # A machine that is busy may be several times off, but units and sums are right.
    assert simulation.untraced_ns / 5 < simulation.step_ns < 5 * simulation.untraced_ns
    assert all(0 < row.predicted_ns < simulation.step_ns for row in made[0].ops)
    assert made[0].control.predicted_ns is None


def test_an_observation_is_the_median_of_the_differences_of_a_round(walked, monkeypatch):
    times = iter([[[100, 200, 300], [101, 203, 302], [150, 260, 340]]] * experiments.LEAST)
    monkeypatch.setattr(measure, "in_rotation", lambda jobs, plan, seed: next(times))
    monkeypatch.setattr(experiments, "one_by_one", lambda *args: True)
    monkeypatch.setattr(experiments, "ROUNDS", 3)
    jobs = [measure.Job(None, None, None, Options())] * 3
    observed = experiments.observe(jobs, walked("toy")["placement"], Options(), "train")
    assert observed.added_ns == [[2, 50]] * experiments.LEAST  # differences 1, 3, 2 and 50, 60, 40
    assert observed.one_by_one_ns == [260] * experiments.LEAST
    assert observed.usual_ns == [200] * experiments.LEAST


def test_ops_of_other_devices_are_not_simulated(walked):
    placement = walked("toy")["placement"]
    runs = [OpRun(0, "mul", "Mul", "/device:GPU:0", 0, 10)]
    observed = experiments.Observed([], [100], [90], [5], runs)
    assert experiments.simulate(placement, observed, ["mul"]) == (None, {})


def test_what_was_traced_is_scaled_to_the_untraced_step_of_ops_one_by_one(walked, monkeypatch):
    placement = walked("toy")["placement"]
    monkeypatch.setattr(environment, "describe", lambda: {"cpus": 1})
    ops = [node.name for node in placement.nodes[:3]]
    runs = [
        OpRun(0, name, "Op", "CPU:0", at, 10) for name, at in zip(ops, (0, 10, 23), strict=True)
    ]
    # Traced: 7 before the first op, 33 with ops and the gaps between them. Untraced: 80.
    observed = experiments.Observed([], [70], [80], [7], runs)
    simulated, predicted = experiments.simulate(placement, observed, [*ops, "no such node"])
    assert (simulated.untraced_ns, simulated.processors) == (70, 1)
    assert simulated.step_ns == pytest.approx(80)
    assert predicted == {name: pytest.approx(2 * (10 + 1)) for name in ops}


def test_in_the_sessions_that_the_model_is_made_from_no_op_runs_beside_another(walked):
    placement = walked("lenet")["placement"]
    options = Options(one_by_one=True)
    step = session.step_of(placement.program, placement.fetches)
    job = measure.job_of(placement.program, step, options)
    observed = experiments.Observed()
    batches = session.feed_batches(placement.program, options.batch_size)
    assert experiments.one_by_one(job, placement, batches, observed)
    assert len(observed.before_ns) == experiments.TRACED == len({r.step for r in observed.runs})
    assert all(ns >= 0 for ns in observed.before_ns)
    for runs in by_step(observed.runs).values():
        assert covered(union(spans(runs))) == covered(spans(runs))


def spans(runs):
    return [(run.start_ns, run.start_ns + run.duration_ns) for run in runs]


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
