"""Execution: all op runs of all steps, of the types that ran, with the time given to its owners."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from tests import walks
from tests.approval import refused
from tests.examples.models import executed, model_of
from tflab import datasets
from tflab.lifecycle import execution, logdir
from tflab.records.options import Options
from tflab.runtime import session, trace

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)
UNTIMED = {"_Send", "_Recv"}  # the runtime notes nothing about them
SOURCE = "_SOURCE"  # the node that starts every step; it stands in no partition graph


@pytest.mark.parametrize("name, devices", [*((name, 1) for name in walks.WHOLE), ("toy", 2)])
def test_every_step_runs_every_node_once_where_it_is_placed(name, devices, walked):
    stage = walked(name, devices)["execution"]
    kinds = {node.name: (node.op, node.device) for node in stage.nodes}
    timed = sorted(node.name for node in stage.nodes if node.op not in UNTIMED)
    assert len(timed) < len(kinds) or devices == 1
    ran = defaultdict(list)
    for run in stage.runs:
        if run.name != SOURCE:
            assert (run.op, run.device) == kinds[run.name]
            ran[run.step].append(run.name)
    assert {step: sorted(names) for step, names in ran.items()} == dict.fromkeys(range(5), timed)


@every_model
def test_the_times_of_a_walk_add_up(name, walked):
    """Spreads are those of NumPy."""
    stage = walked(name)["execution"]
    assert sum(owner.ns for owner in stage.time_ledger) == stage.wall_ns
    assert sum(step.wall_ns for step in stage.step_times) == stage.wall_ns
    assert all(owner.ns >= 0 for owner in stage.time_ledger)
    for step in stage.step_times:
        runs = [run for run in stage.runs if run.step == step.step]
        assert min(run.start_ns for run in runs) >= step.start_ns
        assert max(run.start_ns + run.duration_ns for run in runs) <= step.start_ns + step.wall_ns
    times = [step.wall_ns for step in stage.step_times]
    spread = stage.traced_step_ns
    expected = np.percentile(times, [50, 10, 90])
    assert [spread.median, spread.p10, spread.p90] == pytest.approx(list(expected))


def test_steps_and_batch_size_are_those_asked_for(walked, monkeypatch):
    sizes, timed_step = [], session.timed_step

    def recorded(traced, values, index):
        sizes.append(len(values[0]))
        return timed_step(traced, values, index)

    monkeypatch.setattr(session, "timed_step", recorded)
    options = Options(batch_size=7, steps=3, warmup=0)
    stage = execution.execute(walked("toy")["placement"], options)
    assert sizes == [7, 7, 7]
    assert (stage.batch_size, stage.steps, stage.warmup_steps) == (7, 3, 0)
    assert {run.step for run in stage.runs} == {0, 1, 2}
    requested = {run.requested_bytes for run in stage.runs if run.name == "error"}
    assert requested == {7 * np.dtype(np.float32).itemsize}


def interrupt(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("module", "name"), [(session, "timed_step"), (trace, "op_runs")])
def test_an_interrupt_keeps_the_whole_steps_until_then(module, name, walked, monkeypatch):
    calls, function = [], getattr(module, name)

    def third_is_interrupted(*args):
        calls.append(args)
        return interrupt() if len(calls) == 3 else function(*args)

    monkeypatch.setattr(module, name, third_is_interrupted)
    stage = execution.execute(walked("toy")["placement"], Options(steps=1000, warmup=0))
    assert (stage.interrupted, stage.steps) == (True, 2)
    assert {run.step for run in stage.runs} == {step.step for step in stage.step_times} == {0, 1}
    assert sum(owner.ns for owner in stage.time_ledger) == stage.wall_ns


def test_an_interrupt_before_the_first_step_is_passed_on(walked, monkeypatch):
    monkeypatch.setattr(session, "timed_step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        execution.execute(walked("toy")["placement"], Options())


def test_a_step_that_fails_is_one_sentence():
    def data(split, data_dir):
        x = np.zeros(100, np.float32)
        x[20] = np.nan  # in the second batch: the trial step of placement is fine
        return datasets.Dataset("one bad row", split, {"x": x})

    checked = model_of(lambda x: tf.debugging.check_numerics(x, "x is bad"), {}, data)
    said = refused(executed, lambda: replace(checked(), loss=None))
    assert said.startswith("RefusedError: The runtime refused the step: x is bad")


def test_a_walk_that_was_interrupted_leaves_a_profile_of_its_steps(walked, tmp_path):
    stages = list(walked("toy").values())
    ended = [*stages[:-1], replace(stages[-1], interrupted=True)]
    logdir.write(tmp_path, ended, Options(steps=5))
    (profile,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert profile.parent.name == "toy"
    content = profile.read_bytes()
    assert b"mul:Mul" in content
