"""Logdir: warm, traced steps of the lab's batch sizes, for TensorBoard."""

from dataclasses import replace

import pytest
import tensorflow as tf

from tests.examples.models import placed
from tflab.lifecycle import logdir
from tflab.models import toy
from tflab.records.options import Options
from tflab.runtime import session, trace

pytestmark = pytest.mark.tensorflow


def test_of_batch_sizes_1_16_and_64_the_trace_of_the_last_step_is_kept(captured):
    assert [steps.batch_size for steps in captured("toy")] == [1, 16, 64]
    for steps in captured("toy"):
        stats = steps.trace.step_stats
        assert trace.output_shapes(stats)["mul"] == (steps.batch_size,)
        durations = [run.duration_ns for run in trace.op_runs(4, stats, {})]
        assert durations == [run.duration_ns for run in steps.capture.runs if run.step == 4]


@pytest.mark.parametrize("devices", [1, 2])
def test_a_capture_of_each_batch_size_has_every_node_in_each_of_its_steps(
    walked, captured, devices
):
    nodes = walked("toy", devices)["placement"].nodes
    kinds = {
        (node.name, node.op, node.device) for node in nodes if node.op not in ("_Send", "_Recv")
    }
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


def test_data_that_stand_in_show_in_the_name_of_a_capture(walked):
    program = walked("toy")["frontend"].program
    stand_in = replace(program.dataset("train"), name="digits, not MNIST", stands_in_for="MNIST")
    substituted = replace(program, dataset=lambda split: stand_in)
    capture = logdir.capture_of(substituted, 16, (), {})
    assert (capture.name, capture.runs) == ("toy-batch-16-digits, not MNIST", ())


def test_ctrl_c_keeps_the_batch_sizes_that_are_whole(walked, monkeypatch):
    timed_step, calls = session.timed_step, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 12:  # of 8 steps of each batch size
            raise KeyboardInterrupt
        return timed_step(*args)

    monkeypatch.setattr(session, "timed_step", interrupted)
    kept = logdir.take(walked("toy")["placement"], Options())
    assert ([steps.batch_size for steps in kept.captured], kept.interrupted) == ([16], True)


def test_batch_sizes_are_captured_that_the_data_fill(walked):
    stage = walked("toy")["placement"]  # of batches of 16
    whole = stage.program.dataset("train")
    for rows, sizes in ((64, [1, 16, 64]), (63, [1, 16])):
        columns = {name: column[:rows] for name, column in whole.columns.items()}
        few = replace(whole, columns=columns)
        program = replace(stage.program, dataset=lambda split, few=few: few)
        taken = logdir.take(replace(stage, program=program), Options())
        assert [steps.batch_size for steps in taken.captured] == sizes


def test_a_batch_size_that_the_graph_refuses_is_left_out_and_the_others_are_not(walked):
    def at_most_16():
        model = toy.build()
        rows = tf.shape(model.output)[0]
        fits = tf.debugging.assert_less_equal(rows, 16, message="at most 16")
        with tf.control_dependencies([fits]):
            return replace(model, loss=tf.identity(model.loss))

    taken = logdir.take(placed(at_most_16), Options())
    assert [steps.batch_size for steps in taken.captured] == [1, 16]
    (sentence,) = taken.left_out
    assert sentence.startswith("A batch of 64 is not captured. The runtime refused the step: ")
