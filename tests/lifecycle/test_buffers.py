"""Buffers of real steps: the runtime's addresses, its allocators' records and the graph agree."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import walks
from tflab import datasets
from tflab.analysis import step_times
from tflab.lifecycle import backward, execution, frontend, placement
from tflab.records.buffers import Buffers
from tflab.records.options import Model, Options
from tflab.records.timed import StepTime
from tflab.runtime import session

pytestmark = pytest.mark.tensorflow

ROWS, WIDTH = 512, 256
BYTES = ROWS * WIDTH * 4  # large enough for the allocator that takes the best fit


def layers() -> Model:
    """Three layers of a product, tanh and relu, without gradients."""
    x = tf1.placeholder(tf.float32, [None, WIDTH], name="x")
    value = x
    for number in range(3):
        weights = tf.constant(np.eye(WIDTH, dtype=np.float32) / 2, name=f"weights{number}")
        value = tf.nn.relu(tf.tanh(tf.matmul(value, weights, name=f"product{number}")))
    return Model(tf.identity(value, name="out"), {x: "x"}, data)


def data(split: str, data_dir: str | None) -> datasets.Dataset:
    return datasets.Dataset("made up", split, {"x": np.ones((2 * ROWS, WIDTH), np.float32)})


@pytest.fixture(scope="module")
def three_layers() -> Buffers:
    options = Options(batch_size=ROWS, steps=3)
    built = frontend.build(("three layers", layers), options)
    placed = placement.place(backward.differentiate(built, options), options)
    return execution.execute(placed, options).buffers


def test_activations_work_in_the_memory_of_their_product(three_layers):
    products = [item for item in three_layers.buffers if item.bytes == BYTES]
    assert [item.tensor for item in products] == ["product0", "product1", "product2"]
    assert all(item.in_place for item in products)
    assert three_layers.in_place.bytes == BYTES * three_layers.in_place.count > 0
    assert three_layers.made.bytes == three_layers.requested.bytes + three_layers.in_place.bytes + (
        three_layers.passed_on.bytes
    )


def test_the_third_product_gets_the_memory_of_the_first(three_layers):
    first, second, third = three_layers.buffers
    assert (third.address, third.before) == (first.address, ("product0",))
    assert first.after == ("product2",)
    assert first.until_ns <= third.from_ns
    assert second.address != first.address
    assert (three_layers.reused.count, three_layers.reused.bytes) == (1, BYTES)
    assert three_layers.distinct.bytes == 2 * BYTES


def test_without_gradients_every_buffer_is_of_the_forward_pass(three_layers):
    assert {item.phase for item in three_layers.buffers} == {"forward"}
    assert three_layers.for_backward.count == 0


@pytest.fixture(params=[(name, 1) for name in walks.WHOLE] + [("lenet", 2)], ids=str)
def stage(request, walked):
    name, devices = request.param
    return walked(name, devices=devices)["execution"]


def test_the_buffers_are_of_the_median_step_and_agree_with_the_peak_of_its_memory(stage):
    buffers, step = stage.buffers, step_times.median_step(stage.step_times)
    assert (buffers.step, buffers.wall_ns) == (step.step, step.wall_ns)
    at = buffers.at_peak
    assert at.recorded_bytes == stage.memory.curve.peak_bytes
    assert (at.ns, at.unexplained_bytes) == (stage.memory.curve.peak_ns, 0)
    assert at.buffer_bytes > 0


def test_the_boxes_of_the_buffers_alone_reach_the_peak(stage):
    """From the records alone, without what the analysis added up."""
    at = stage.buffers.at_peak
    alive = [
        item.bytes
        for item in stage.buffers.buffers
        if item.from_ns <= at.ns and (item.until_ns is None or at.ns < item.until_ns)
    ]
    assert sum(alive) + at.working_bytes + at.other_bytes == stage.memory.curve.peak_bytes


def test_all_that_was_asked_for_is_a_buffer_or_has_no_address(stage):
    runs = [run for run in stage.runs if run.step == stage.buffers.step]
    parts = (stage.buffers.requested, stage.buffers.working, stage.buffers.other)
    assert sum(part.bytes for part in parts) == sum(run.requested_bytes for run in runs)


def test_every_buffer_is_released_while_the_op_runs_that_reads_it_last_in_the_graph(stage):
    """Unless another device's thread, which received it, still holds it: one in a thousand."""
    assert stage.buffers.unexpected == ()
    kept = [item for item in stage.buffers.buffers if item.until_ns is None]
    assert all(any("retval" in reader for reader in item.readers) for item in kept)


def test_no_two_buffers_lie_at_the_same_addresses_at_the_same_time(stage):
    for item in stage.buffers.buffers:
        for other in stage.buffers.buffers:
            assert item is other or apart(item, other) or apart(other, item)


def apart(first, second) -> bool:
    """Whether the first lies below the second, or is released before that is asked for."""
    below = first.address + first.bytes <= second.address
    return below or (first.until_ns is not None and first.until_ns <= second.from_ns)


def test_lenets_activations_stay_alive_for_the_backward_pass(walked):
    buffers = walked("lenet")["execution"].buffers
    by_tensor = {item.tensor: item for item in buffers.buffers}
    for name in ("conv1/Relu", "pool1/MaxPool", "conv2/Relu", "dense1/Relu"):
        item = by_tensor[name]
        assert item.phase == "forward"
        assert item.last_reader.startswith("gradients/")
        assert item.from_ns < item.backward_ns < item.until_ns
    gradient = by_tensor["gradients/pool1/MaxPool_grad/MaxPoolGrad"]
    assert (gradient.phase, gradient.backward_ns) == ("backward", None)
    assert [use.node for use in gradient.in_place] == ["gradients/conv1/Relu_grad/ReluGrad"]


def test_traces_are_kept_small_until_the_median_step_is_known():
    measured = execution.Measured({})
    metadata = tf1.RunMetadata()
    row = metadata.step_stats.dev_stats.add(device="cpu").node_stats
    for number in range(200):
        row.add(node_name=f"scope/of/a/node{number}", all_start_nanos=1 + number)
    recorded = session.Unparsed(metadata.SerializeToString())
    measured.observe(None, StepTime(0, 0, 1), recorded)
    assert len(measured.traces[0]) < len(recorded.serialized) / 3


def test_a_graph_that_came_with_its_gradients_has_a_backward_pass(walked):
    stages = walked("lenet")
    inferred = replace(stages["backward"], added_nodes=())
    assert set(placement.recognised(inferred)) == set(stages["backward"].added_nodes)
    assert "gradients/conv1/Relu_grad/ReluGrad" in placement.recognised(inferred)
