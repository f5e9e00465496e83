"""Values: those of the toy are what NumPy computes, and the first NaN is where it was planted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import planted
from tests.examples import models
from tflab.datasets import Dataset
from tflab.errors import RefusedError
from tflab.lifecycle import execution, values
from tflab.models import toy
from tflab.records.options import Model, Options
from tflab.runtime import values as runtime

pytestmark = pytest.mark.tensorflow

FEW = Options(steps=1, warmup=0, batch_size=8)


def by_tensor(stage):
    rows = {row.tensor: row for row in stage.values}
    assert len(rows) == len(stage.values)
    return rows


def executed(build):
    return models.executed(build, FEW)


# The toy, against NumPy


@pytest.fixture(scope="module")
def batch():
    """The first batch, and what the first step computes from it where y is 2 and z is 1."""
    columns = toy.line("train").columns
    x, targets = columns["x"][:16], columns["targets"][:16]
    output = np.float32(2) * x + np.float32(1)
    error = (output - targets) ** 2
    from_loss = 2 * (output - targets) / np.float32(16)
    return {
        "x:0": x,
        "targets:0": targets,
        "mul:0": 2 * x,
        "add:0": output,
        "error:0": error,
        "loss:0": error.mean(),
        "gradients/error_grad/mul_1:0": from_loss,
        "gradients/add_grad/Sum:0": from_loss.sum(),
        "gradients/mul_grad/Mul_1:0": from_loss * x,
        "gradients/mul_grad/Sum:0": (from_loss * x).sum(),
    }


def test_the_values_of_the_toy_are_those_of_numpy(walked, batch):
    rows = by_tensor(walked("toy")["execution"])
    for tensor, expected in batch.items():
        assert np.ravel(rows[tensor].values) == pytest.approx(np.ravel(expected), rel=1e-5)
        assert rows[tensor].mean == pytest.approx(np.mean(expected), rel=1e-5, abs=1e-6)
        assert (rows[tensor].min, rows[tensor].max) == pytest.approx(
            (np.min(expected), np.max(expected)), rel=1e-5
        )
        assert rows[tensor].not_finite == 0


def test_a_step_moves_the_variables_against_the_gradient(walked, batch):
    rows = by_tensor(walked("toy")["execution"])
    for name, first, gradient in (
        ("y", 2.0, "gradients/mul_grad/Sum:0"),
        ("z", 1.0, "gradients/add_grad/Sum:0"),
    ):
        moved = -0.5 * batch[gradient]
        assert (rows[name].kind, rows[name].values) == ("variable", (first,))
        assert rows[name].after.values == pytest.approx((first + moved,), rel=1e-5)
        assert rows[name].moved == pytest.approx(abs(moved), rel=1e-5)


def test_the_variables_are_followed_for_ten_steps(walked):
    step = walked("toy")["execution"].values_step
    columns = toy.line("train").columns
    y, z = 2.0, 1.0
    for point in step.path:
        if point.step:
            rows = slice(16 * (point.step - 1), 16 * point.step)
            x, targets = columns["x"][rows].astype(float), columns["targets"][rows].astype(float)
            error = x * y + z - targets
            assert point.loss == pytest.approx((error**2).mean(), rel=1e-4)
            y, z = y - 0.5 * (2 * error * x).mean(), z - 0.5 * (2 * error).mean()
        assert point.variables == pytest.approx({"y": y, "z": z}, rel=1e-4, abs=1e-6)
    assert [point.step for point in step.path] == [*range(11)]
    assert step.path[0].loss is None
    assert step.answer == {"y": 3.0, "z": 2.0}


def test_values_are_those_of_the_program_in_topological_order(walked):
    stages = walked("toy")
    inputs = {node.name: node.inputs for node in stages["placement"].user_nodes}
    rows = stages["execution"].values
    places = {row.node: place for place, row in enumerate(rows)}
    for node, place in places.items():
        for tensor in inputs[node]:
            assert places[tensor.partition(":")[0]] < place
    # `mul` is what the program says, though passes change what runs under its name
    assert {row.node for row in rows} <= inputs.keys()


# Where the first NaN or Inf came from


def model(head, numbers=(0.5, 0.25, 0.0, 1.0)):
    """A model function that feeds these numbers again and again."""

    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        return Model(tf.reduce_sum(head(x), name="sum"), {x: "x"}, data)

    def data(split, data_dir=None):
        return Dataset("planted", split, {"x": np.tile(np.float32(numbers), 8)})

    return build


def line_of(planted):
    """The line of this file that has the text."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if planted in line)


def log_of_zero(x):
    return tf.exp(x) + tf.math.log(x, name="planted")  # here: log


def division_by_zero(x):
    return tf.tanh(tf.divide(x - x, x, name="planted"))  # here: division


def half_overflow(x):
    half = tf.cast(x * 300, tf.float16)
    return tf.cast(tf.multiply(half, half, name="planted"), tf.float32) * 0.0  # here: overflow


def first_of(head, **known):
    return executed(model(head, **known)).not_finite[0]


def fused_relu(x):
    relu = tf.nn.relu(x - 0.25, name="relu")
    return -tf.math.log(relu, name="planted")  # here: fused


def folded(x):
    zeros = tf.constant([0.0, 0.0])
    return x + tf.reduce_sum(tf.math.log(zeros, name="planted"))  # here: folded


def norm_at_zero(x):
    return x / tf.norm(x - x, name="zero") * tf.divide(x, x, name="planted")  # here: norm


@pytest.mark.parametrize(
    "head, node, op, nan, infinite, what, went_in",
    [
        (log_of_zero, "planted", "Log", 0, 2, "log", [("x", 2, 2, 0)]),
        (
            *(division_by_zero, "planted", "RealDiv", 2, 0, "division"),
            [("x", 2, 2, 0), ("sub", 2, 2, 0)],
        ),
        (half_overflow, "planted", "Mul", 0, 2, "overflow", [("Cast", 2, 0, 0)]),
        (fused_relu, "planted", "Log", 0, 4, "fused", [("relu", 4, 4, 0)]),
        (folded, "planted", "Log", 0, 2, "folded", [("Const", 2, 2, 0)]),
    ],
)
def test_an_origin_is_the_node_of_the_program_with_its_line_and_what_went_in(
    head, node, op, nan, infinite, what, went_in
):
    stage = executed(model(head))
    (first,) = stage.not_finite
    assert (first.node, first.op, first.kind, first.nan, first.infinite) == (
        *(node, op, "computed", nan, infinite),
    )
    assert (first.source.file, first.source.line) == (__file__, line_of(f"# here: {what}"))
    entered = [(e.tensor, e.elements, e.zeros, e.negative) for e in first.entered]
    assert sorted(entered) == sorted(went_in)
    assert first.overflow is (what == "overflow")
    (result,) = stage.values_step.not_finite
    assert result.startswith("sum")


def test_every_node_that_began_by_itself_is_an_origin():
    found = executed(model(norm_at_zero)).not_finite
    assert [(one.op, one.source.line) for one in found] == [
        ("RealDiv", line_of("# here: norm"))
    ] * 2


def test_of_a_naive_softmax_the_exponential_is_named_and_not_the_loss():
    first = executed(planted.naive_softmax).not_finite[0]
    assert (first.node, first.op, first.infinite) == ("exponentials", "Exp", 32)
    assert first.source.code.endswith("# planted")


def test_a_nan_that_was_fed_is_said_to_be_fed():
    first = first_of(tf.exp, numbers=(0.0, np.nan))
    assert (first.tensor, first.kind, first.nan, first.size) == ("x:0", "fed", 4, 8)
    assert first.node == "x" and first.source.file == __file__


@pytest.mark.parametrize("resource", [True, False])
def test_a_nan_that_a_variable_holds_is_said_to_be_there_before(resource):
    def head(x):
        initial = np.float32([1, np.nan, np.inf])
        w = tf1.get_variable("w", initializer=initial, use_resource=resource)
        return tf.reduce_sum(w) * x

    first = first_of(head)
    assert (first.tensor, first.kind, first.nan, first.infinite) == ("w", "variable", 1, 1)
    assert first.source.file == __file__


def test_of_a_loop_a_branch_or_a_function_the_node_that_hands_its_value_out_is_named():
    def loop(x):
        return tf.while_loop(  # here: loop
            lambda turn, _: turn < 12,
            lambda turn, value: (turn + 1, tf.square(value)),
            [tf.constant(0), x + 3],
        )[1]

    def branch(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.math.log(x), lambda: x)  # here: branch

    @tf.function
    def function(x):
        return tf.math.log(x - x)

    for head, op, here in ((loop, "While", "loop"), (branch, "If", "branch")):
        first = first_of(head)
        assert (first.op.removeprefix("Stateless"), first.source.line) == (
            *(op, line_of(f"# here: {here}")),
        )
    assert first_of(function).op == "PartitionedCall"


def test_what_a_loop_of_the_first_version_hands_out_is_named_with_its_line():
    def loop(x):
        return tf1.while_loop(  # here: first version
            lambda turn, _: turn < 12,
            lambda turn, value: (turn + 1, tf.square(value)),
            [tf.constant(0), x + 3],
        )[1]

    tf1.disable_control_flow_v2()
    try:
        stage = executed(model(loop))
    finally:
        tf1.enable_control_flow_v2()
    (first,) = stage.not_finite
    assert (first.op, first.source.line) == ("Exit", line_of("# here: first version"))
    assert any("inside loops and branches" in note for note in stage.values_step.notes)


# A training step


def four(split, data_dir=None):
    return Dataset("planted", split, {"x": np.tile(np.float32([0, 1, -2, 3]), 8)})


def trained(head, optimizer, start=0.5):
    """The execution of a model with one variable, whose loss is the mean of what the head makes."""

    def loss(x, w):
        return tf.reduce_mean(head(x, w), name="loss")

    return executed(models.model_of(loss, {"w": np.float32(start)}, four, optimizer))


def test_a_gradient_that_is_no_number_though_the_loss_is_one_is_the_origin():
    def head(x, w):
        return x * w + tf.sqrt(tf.square(w), name="root")  # here: root

    stage = trained(head, tf1.train.GradientDescentOptimizer(0.1), start=0.0)
    assert stage.values_step.not_finite == ("w",)
    (first,) = stage.not_finite
    assert (first.op, first.derives) == ("SqrtGrad", "root")
    assert first.source.line == line_of("# here: root")
    assert [(e.tensor, e.zeros) for e in first.entered][:1] == [("root", 1)]


def test_what_is_born_in_an_update_is_found_in_the_variable():
    rate = tf1.train.GradientDescentOptimizer(3e38)
    stage = trained(lambda x, w: tf.square(x * w), rate, start=3e4)
    (first,) = stage.not_finite
    assert (first.kind, first.tensor, first.op) == ("update", "w", "ResourceApplyGradientDescent")
    assert (first.infinite, first.overflow) == (1, True)
    assert first.source.file == models.__file__
    inputs = {e.tensor: e.max for e in first.entered}
    assert (inputs["w"], inputs["train/learning_rate"]) == (3e4, pytest.approx(3e38))
    (row,) = [row for row in stage.values if row.tensor == "w"]
    assert row.not_finite == 0 and row.after.not_finite == 1


def test_a_slot_of_the_optimiser_is_looked_at_too():
    stage = trained(lambda x, w: x * w * 1e25, tf1.train.AdamOptimizer(0.1))
    (first,) = stage.not_finite
    assert (first.kind, first.tensor, first.op) == ("update", "w/Adam_1", "ResourceApplyAdam")


# Types of elements


def test_scratch_of_a_batch_norm_is_no_value():
    def head(x):
        images = tf.reshape(x, [8, 1, 1, 1])
        return tf1.nn.fused_batch_norm(images, tf.ones([1]), tf.zeros([1]))[0]

    stage = executed(model(head))
    norm = [row.tensor for row in stage.values if "BatchNorm" in row.op]
    assert norm and all(int(tensor[-1]) < 3 for tensor in norm)
    assert stage.not_finite == ()


def test_every_type_of_element_is_read():
    types = (tf.float16, tf.bfloat16, tf.float64, tf.int64, tf.uint8, tf.complex64)

    def head(x):
        parts = [tf.cast(tf.cast(x + i, t, name=t.name), tf.float32) for i, t in enumerate(types)]
        text = tf.strings.to_number(tf.strings.as_string(x, precision=2, name="text"))
        none = tf.reduce_sum(tf.boolean_mask(x, tf.greater(x, 5, name="large"), name="mask"))
        quantised = tf.quantization.quantize(x, 0.0, 1.0, tf.quint8, name="quantised")
        back = tf.quantization.dequantize(*quantised)
        return tf.add_n(parts) + text + none + back

    rows = by_tensor(executed(model(head)))
    assert rows["float16:0"].values[:2] == (0.5, 0.25)
    assert rows["bfloat16:0"].values[:2] == (1.5, 1.25)
    assert rows["float64:0"].mean == 2.4375
    assert (rows["int64:0"].values[:4], rows["int64:0"].max) == ((3, 3, 3, 4), 4)
    assert rows["uint8:0"].values[:4] == (4, 4, 4, 5)
    assert rows["complex64:0"].values[0] == "5.5+0j"
    assert rows["text:0"].values[:2] == ("0.50", "0.25")
    assert rows["large:0"].values == (False,) * 8
    assert rows["quantised:0"].values[2:4] == (0, 255)
    empty = [row for row in rows.values() if row.shape == (0,) and row.dtype == "float32"]
    assert empty and all(row.values == () and row.mean is None for row in empty)


# What is left out


def test_what_is_fed_and_not_needed_is_there_too(walked):
    placed = replace(walked("toy")["placement"], fetches=("mul:0",))
    stage = execution.execute(placed, FEW)
    rows = by_tensor(stage)
    assert rows["targets:0"].kind == "fed" and "loss:0" not in rows
    assert stage.values_step.path == ()  # nothing is trained


def test_of_lenet_all_is_said_but_large_tensors_are_not_kept(walked):
    rows = by_tensor(walked("lenet")["execution"])
    images, kernel = rows["images:0"], rows["dense1/kernel"]
    assert (images.kind, images.shape, images.values) == ("fed", (16, 32, 32, 1), None)
    assert 0 < images.mean < images.max == 1
    assert (kernel.values, kernel.shape) == (None, (400, 120))
    assert 0 < kernel.moved < 0.1
    assert len(rows["dense3/bias"].values) == 10
    assert rows["dense3/bias"].after.values != rows["dense3/bias"].values
    assert rows["conv1/Relu:0"].min == 0
    assert rows["conv1/Conv2D:0"].min < 0  # though it was fused into the Relu


def test_the_step_is_among_no_others(walked, monkeypatch):
    placed, taken = walked("toy")["placement"], []
    with_values = execution.execute(placed, FEW)
    monkeypatch.setattr(values, "record", lambda *args: taken.append(args))
    without = execution.execute(placed, replace(FEW, values=False))
    assert (without.values, without.values_step, taken) == ((), None, [])
    ran = [{run.name for run in stage.runs} for stage in (with_values, without)]
    assert ran[0] == ran[1]
    assert with_values.steps == without.steps == 1


def test_tensors_that_are_too_large_are_not_fetched(walked, monkeypatch):
    monkeypatch.setattr(runtime, "MOST_BYTES", 100)
    stage = execution.execute(walked("toy")["placement"], FEW)
    (note,) = stage.values_step.notes
    assert note.startswith("The program's values were not fetched. The tensors of the step have ")
    assert note.endswith(", but tflab fetches at most 100 B.")
    assert (stage.values, stage.values_step.ns) == ((), None)


def test_a_step_that_fails_only_costs_its_values(walked, monkeypatch):
    monkeypatch.setattr(runtime, "fetch", raising(RefusedError("TensorFlow refused.")))
    stage = execution.execute(walked("toy")["placement"], FEW)
    said = "The program's values were not fetched. TensorFlow refused."
    assert (stage.values_step.notes, stage.steps) == ((said,), 1)


def test_ctrl_c_keeps_what_was_measured(walked, monkeypatch):
    monkeypatch.setattr(runtime, "fetch", raising(KeyboardInterrupt()))
    stage = execution.execute(walked("toy")["placement"], FEW)
    assert (stage.interrupted, stage.steps, stage.values) == (True, 1, ())


def raising(error):
    def failing(*_):
        raise error

    return failing
