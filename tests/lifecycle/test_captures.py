"""Captures: warm, traced steps of the lab's batch sizes, for TensorBoard."""

from dataclasses import replace

import pytest

from tests.lifecycle.test_execution import UNTIMED
from tflab.lifecycle import captures
from tflab.records import Options
from tflab.runtime import session, trace

pytestmark = pytest.mark.tensorflow


def test_a_trace_is_kept_of_batch_sizes_1_16_and_64(captured):
    shapes = {
        steps.batch_size: trace.output_shapes(steps.trace.step_stats)["mul"]
        for steps in captured("toy")
    }
    assert shapes == {1: (1,), 16: (16,), 64: (64,)}


@pytest.mark.parametrize("devices", [1, 2])
def test_a_capture_of_each_batch_size_has_every_node_in_each_of_its_steps(
    walked, captured, devices
):
    nodes = walked("toy", devices)["placement"].nodes
    kinds = {(node.name, node.op, node.device) for node in nodes if node.op not in UNTIMED}
    taken = [steps.capture for steps in captured("toy", devices)]
    assert [capture.name for capture in taken] == ["toy-batch-1", "toy-batch-16", "toy-batch-64"]
    for capture in taken:
        times = {time.step: (time.start_ns, time.start_ns + time.wall_ns) for time in capture.steps}
        assert list(times) == [0, 1, 2, 3, 4]
        for step, (start, end) in times.items():
            runs = [run for run in capture.runs if run.step == step and run.name != trace.EXECUTOR]
            assert {(run.name, run.op, run.device) for run in runs} == kinds
            assert min(run.start_ns for run in runs) >= start
            assert max(run.start_ns + run.duration_ns for run in runs) <= end


def test_the_trace_of_a_batch_size_is_that_of_its_last_step(captured):
    for steps in captured("toy"):
        durations = [run.duration_ns for run in trace.op_runs(4, steps.trace.step_stats, {})]
        assert durations == [run.duration_ns for run in steps.capture.runs if run.step == 4]


def test_data_that_stand_in_show_in_the_name_of_a_capture(walked):
    program = walked("toy")["frontend"].program
    assert captures.capture_name(program, 16) == "toy-batch-16"
    stand_in = replace(program.dataset("train"), name="digits, not MNIST", stands_in_for="MNIST")
    substituted = replace(program, dataset=lambda split: stand_in)
    assert captures.capture_name(substituted, 16) == "toy-batch-16-digits, not MNIST"


def test_ctrl_c_keeps_the_batch_sizes_that_are_whole(walked, monkeypatch):
    timed_step, calls = session.timed_step, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 12:  # of 8 steps of each batch size
            raise KeyboardInterrupt
        return timed_step(*args)

    monkeypatch.setattr(session, "timed_step", interrupted)
    kept, interrupted_early = captures.take(walked("toy")["placement"], Options())
    assert ([steps.batch_size for steps in kept], interrupted_early) == ([1], True)
