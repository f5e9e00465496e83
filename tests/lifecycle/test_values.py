"""Values: those of the toy are what NumPy computes, and the first NaN is where it was planted."""

import re
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import planted
from tests.approval import approve
from tests.examples import models
from tflab.datasets import Dataset
from tflab.errors import RefusedError
from tflab.lifecycle import execution, values
from tflab.models import toy
from tflab.records.options import Model, Options

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


def fed(head, numbers=(0.5, 0.25, 0.0, 1.0)):
    """A model function that feeds these numbers again and again."""

    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")  # here: x
        return Model(tf.reduce_sum(head(x), name="sum"), {x: "x"}, data)

    def data(split, data_dir=None):
        return Dataset("planted", split, {"x": np.tile(np.float32(numbers), 8)})

    return build


def trained(head, optimizer, start=0.5):
    """A model function with one variable, whose loss is the mean of what the head makes."""

    def loss(x, w):
        return tf.reduce_mean(head(x, w), name="loss")

    def four(split, data_dir=None):
        return Dataset("planted", split, {"x": np.tile(np.float32([0, 1, -2, 3]), 8)})

    return models.model_of(loss, {"w": np.float32(start)}, four, optimizer)


def of_a_variable(resource):
    def head(x):
        initial = np.float32([1, np.nan, np.inf])
        w = tf1.get_variable("w", initializer=initial, use_resource=resource)  # here: variable
        return tf.reduce_sum(w) * x

    return head


def loop(x, while_loop=tf.while_loop):
    return while_loop(  # here: loop
        lambda turn, _: turn < 12,
        lambda turn, value: (turn + 1, tf.square(value)),
        [tf.constant(0), x + 3],
    )[1]


def first_loop(x):
    tf1.disable_control_flow_v2()
    try:
        return loop(x, tf1.while_loop)
    finally:
        tf1.enable_control_flow_v2()


def unset(x):
    w = tf1.get_variable("w", [], collections=[], use_resource=True)
    with tf.control_dependencies([w.assign(3e38)]), tf.control_dependencies([w.assign_add(3e38)]):
        return x + 1  # here: unset


DESCENT, ADAM = tf1.train.GradientDescentOptimizer, tf1.train.AdamOptimizer

LOG = fed(lambda x: tf.exp(x) + tf.math.log(x, name="planted"))
ROOT = trained(lambda x, w: x * w + tf.sqrt(tf.square(w), name="root"), DESCENT(0.1), start=0.0)
SQUARED = trained(lambda x, w: tf.square(x * w), DESCENT(3e38), start=3e4)
ORIGINS = {
    "a logarithm of zero": LOG,
    "a division by zero": fed(lambda x: tf.tanh(tf.divide(x - x, x, name="planted"))),
    "a square too large for its type": fed(
        lambda x: tf.square(tf.cast(x * 300, tf.float16), name="planted")
    ),
    "a node whose input is fused": fed(
        lambda x: -tf.math.log(tf.nn.relu(x - 0.25, name="relu"), name="planted")
    ),
    "a node that is folded": fed(
        lambda x: x + tf.reduce_sum(tf.math.log(tf.constant([0.0, 0.0]), name="planted"))
    ),
    "two of them": fed(lambda x: x / tf.norm(x - x, name="zero") * tf.divide(x, x, name="planted")),
    "a softmax without its maximum": planted.naive_softmax,
    "what is fed": fed(tf.exp, (0.0, np.nan)),
    "a variable": fed(of_a_variable(resource=True)),
    "a reference variable": fed(of_a_variable(resource=False)),
    "what hands a value out of a loop": fed(loop),
    "what hands a value out of an old loop": fed(first_loop),
    "what hands a value out of a branch": fed(
        lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.math.log(x), lambda: x)
    ),
    "what hands a value out of a function": fed(tf.function(lambda x: tf.math.log(x - x))),
    "a gradient that is no number though the loss is one": ROOT,
    # The variable becomes 3e4 - 3e38 * the mean of 2 * 3e4 * (0, 1, 4, 9)
    "an update": SQUARED,
    "a variable that had no value before the step": fed(unset),
    "a slot of the optimiser": trained(lambda x, w: x * w * 1e25, ADAM(0.1)),
}


def test_an_origin_is_the_node_of_the_program_with_its_line():
    rows = []
    for name, build in ORIGINS.items():
        rows += [f"# {name}", *map(said, executed(build).not_finite), ""]
    approve("origins.txt", "\n".join(rows))


def said(one):
    code = one.source.code if one.source else "no line"
    line = code.rpartition("# ")[2].removeprefix("here: ").partition("(")[0]
    op = one.op.removeprefix("Stateless") + f" of {one.derives}" * bool(one.derives)
    born = f"{one.nan} NaN, {one.infinite} Inf of {one.size}"
    return f"{one.tensor} is {one.kind} {op} ({line}): {born}"


def test_a_result_that_is_no_number_is_named():
    (result,) = executed(LOG).values_step.not_finite
    assert result.startswith("sum")
    stage = executed(ROOT)
    assert stage.values_step.not_finite == ("w",)


def test_what_is_born_in_an_update_is_in_the_variable_only_after_it():
    stage = executed(SQUARED)
    row = by_tensor(stage)["w"]
    assert (row.not_finite, row.after.not_finite) == (0, 1)


# Types of elements


def test_scratch_of_a_batch_norm_is_no_value():
    def head(x):
        images = tf.reshape(x, [8, 1, 1, 1])
        return tf1.nn.fused_batch_norm(images, tf.ones([1]), tf.zeros([1]))[0]

    stage = executed(fed(head))
    norm = [row.tensor for row in stage.values if "BatchNorm" in row.op]
    assert norm and all(int(tensor[-1]) < 3 for tensor in norm)
    assert stage.not_finite == ()


OTHER_TYPES = ("text", "large", "quantised")


def test_every_type_of_element_is_read():
    types = (tf.float16, tf.bfloat16, tf.float64, tf.int64, tf.uint8, tf.complex64)

    def head(x):
        parts = [tf.cast(tf.cast(x + i, t, name=t.name), tf.float32) for i, t in enumerate(types)]
        text = tf.strings.to_number(tf.strings.as_string(x, precision=2, name="text"))
        none = tf.reduce_sum(tf.boolean_mask(x, tf.greater(x, 5, name="large"), name="mask"))
        quantised = tf.quantization.quantize(x, 0.0, 1.0, tf.quint8, name="quantised")
        back = tf.quantization.dequantize(*quantised)
        return tf.add_n(parts) + text + none + back

    rows = by_tensor(executed(fed(head)))
    known = [rows[f"{t.name}:0"] for t in types] + [rows[f"{n}:0"] for n in OTHER_TYPES]
    told = (f"{row.tensor} {row.values[:4]} {row.mean} {row.max}" for row in known)
    approve("types-of-elements.txt", "\n".join(told))
    empty = [row for row in rows.values() if row.shape == (0,) and row.dtype == "float32"]
    assert empty and all(row.values == () and row.mean is None for row in empty)


# What is left out


def test_what_is_fed_and_not_needed_is_there_too(walked):
    placed = replace(walked("toy")["placement"], fetches=("mul:0",))
    stage = execution.execute(placed, FEW)
    rows = by_tensor(stage)
    assert rows["targets:0"].kind == "fed" and "loss:0" not in rows


def test_of_lenet_all_is_said_but_large_tensors_are_not_kept(walked):
    rows = by_tensor(walked("lenet")["execution"])
    images, kernel = rows["images:0"], rows["dense1/kernel"]
    assert (images.kind, images.shape, images.values) == ("fed", (16, 32, 32, 1), None)
    assert 0 < images.mean < images.max == 1
    assert (kernel.values, kernel.shape) == (None, (400, 120))
    assert 0 < abs(kernel.after.mean - kernel.mean) < 0.1
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


def raising(error):
    def failing(*_):
        raise error

    return failing


@pytest.mark.parametrize(
    ("name", "instead", "reason"),
    [
        ("fetch", raising(RefusedError("TensorFlow refused.")), r"TensorFlow refused\."),
        ("MOST_BYTES", 100, r"The tensors of the step have .*, but tflab fetches at most 100 B\."),
    ],
)
def test_values_that_cannot_be_fetched_only_cost_themselves(
    name, instead, reason, walked, monkeypatch
):
    monkeypatch.setattr(values, name, instead)
    stage = execution.execute(walked("toy")["placement"], FEW)
    (note,) = stage.values_step.notes
    assert re.fullmatch(f"The program's values were not fetched. {reason}", note)
    assert (stage.values, stage.values_step.ns, stage.steps) == ((), None, 1)


def test_ctrl_c_keeps_what_was_measured(walked, monkeypatch):
    monkeypatch.setattr(values, "fetch", raising(KeyboardInterrupt()))
    stage = execution.execute(walked("toy")["placement"], FEW)
    assert (stage.interrupted, stage.steps, stage.values) == (True, 1, ())


def test_a_read_that_waits_for_an_update_has_no_value():
    """Its buffer is the variable's: when the step ends, it may hold a later value."""
    with tf.Graph().as_default() as graph:
        variable = tf1.Variable(1.0, use_resource=False, name="v")
        early = variable.read_value()
        with tf.control_dependencies([tf1.assign_add(variable, 10.0)]):
            late = variable.read_value()
        computed = {early.name: np.float32(11), late.name: np.float32(11)}
        known = values.with_references(graph, computed, {"v": np.float32(1)})
    assert known == {early.name: 1}
