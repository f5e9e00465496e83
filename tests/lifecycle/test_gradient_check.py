"""Gradient check: right gradients have no error above rounding, and wrong ones have a large one."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.lifecycle import backward, frontend, graph_copies
from tflab.records.options import Model, Options

pytestmark = pytest.mark.tensorflow


def numbers(split, data_dir):
    values = np.random.default_rng(3).normal(size=(64, 4)).astype(np.float32)
    return datasets.Dataset("numbers", split, {"x": values})


def differentiated(loss_of, *names):
    """The stage of a loss of the fed `x` and of variables with these names."""

    def build():
        x = tf1.placeholder(tf.float32, [None, 4], name="x")
        start = np.random.default_rng(5).normal(size=4).astype(np.float32)
        variables = [tf1.get_variable(name, initializer=start) for name in names]
        loss = loss_of(x, *variables)
        return Model(loss, {x: "x"}, numbers, loss, tf1.train.GradientDescentOptimizer(0.1))

    options = Options()
    return backward.differentiate(frontend.build(("mine", build), options), options)


def checks_of(loss_of, *names):
    return {check.tensor: check for check in differentiated(loss_of, *names).gradient_checks}


def wrong(factor):
    """A value with a gradient that is wrong by this factor."""

    @tf.custom_gradient
    def same(value):
        return tf.identity(value), lambda upstream: upstream * factor

    return same


def shifted(x, w, bias):
    """A loss that does not depend on a number added to all: its gradient is the rounding of 0."""
    scores = tf.nn.softmax(x * w + tf.reduce_sum(bias))
    return tf.reduce_mean(scores * tf.constant([1.0, 2.0, 3.0, 4.0]))


def test_a_gradient_that_is_0_within_rounding_has_no_error():
    checks = checks_of(shifted, "w", "bias")
    assert (checks["bias"].zero, checks["bias"].max_relative_error) == (True, 0.0)
    assert not checks["w"].zero
    assert 0 < checks["w"].max_relative_error < 1e-5
    alone = checks_of(lambda x, bias: shifted(x, tf.ones(4), bias), "bias")
    assert alone["bias"].zero


@pytest.mark.parametrize("scale", [1.0, 1e-4])
@pytest.mark.parametrize(("factor", "error"), [(0.0, 1.0), (2.0, 0.5), (-1.0, 2.0)])
def test_a_wrong_gradient_is_not_taken_for_0(factor, error, scale):
    def loss_of(x, w, v):
        return shifted(x, w, v) + scale * tf.reduce_mean(tf.square(x * wrong(factor)(v)))

    checks = checks_of(loss_of, "w", "v")
    assert not checks["v"].zero
    assert checks["v"].max_relative_error == pytest.approx(error, abs=1e-2)
    assert not checks["v"].agrees


def test_a_gradient_that_should_be_0_and_is_not_is_found():
    @tf.custom_gradient
    def held(value):
        return tf.identity(value), lambda upstream: upstream + 1e-3

    checks = checks_of(lambda x, w, bias: shifted(x, w, held(bias)), "w", "bias")
    assert (checks["bias"].zero, checks["bias"].max_relative_error > 0.9) == (False, True)


# Half precision


def within(dtype, factor):
    def inner(x, w):
        cast = [tf.cast(value, dtype) for value in (x, wrong(factor)(w))]
        return tf.cast(tf.nn.tanh(cast[0] * cast[1] + tf.constant(0.1, dtype)), tf.float32)

    return inner


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize(
    ("dtype", "least", "most"), [(tf.float16, 1e-5, 0.01), (tf.bfloat16, 1e-4, 0.1)]
)
def test_a_graph_in_half_precision_is_compared_in_float64(dtype, least, most, called):
    def loss_of(x, w):
        inner = within(dtype, 1.0)
        return tf.reduce_mean(tf.square((tf.function(inner) if called else inner)(x, w) - 1))

    stage = differentiated(loss_of, "w")
    (check,) = stage.gradient_checks
    assert (check.precision, stage.half, stage.no_float64) == ("float64", dtype.name, "")
    assert least < check.max_relative_error < most
    assert check.agrees
    assert not check.confirms


def test_a_wrong_gradient_is_found_in_half_precision():
    def loss_of(x, w):
        return tf.reduce_mean(tf.square(within(tf.float16, 2.0)(x, w) - 1))

    (check,) = differentiated(loss_of, "w").gradient_checks
    assert check.max_relative_error == pytest.approx(0.5, abs=0.01)
    assert not check.agrees


def test_both_half_precisions_are_named_and_the_coarser_one_first():
    def loss_of(x, w):
        return tf.reduce_mean(within(tf.float16, 1.0)(x, w) * within(tf.bfloat16, 1.0)(x, w))

    stage = differentiated(loss_of, "w")
    assert (stage.halves, stage.half) == (("bfloat16", "float16"), "bfloat16")


def test_half_precision_that_only_arrives_rounds_nothing():
    def loss_of(x, w):
        half = tf.constant([1.0, 2.0, 3.0, 4.0], tf.float16)
        return tf.reduce_mean(x * w * tf.cast(half, tf.float32))

    assert differentiated(loss_of, "w").half == ""


def test_a_copy_that_cannot_be_widened_is_not_said_to_be_in_float64():
    def loss_of(x, w):
        one = tf1.py_func(lambda x: np.ones_like(x, np.float16), [x], tf.float16)
        one.set_shape(x.shape)
        return tf.reduce_mean(tf.cast(one + one, tf.float32) * tf.square(x * w))

    stage = differentiated(loss_of, "w")
    assert {check.precision for check in stage.gradient_checks} == {"float16"}
    assert "pyfunc" in stage.no_float64
    assert all(check.agrees for check in stage.gradient_checks)


def test_an_op_without_a_float64_version_stays_in_float32():
    def loss_of(x, w):
        image = tf.reshape(x * w, [-1, 2, 2, 1])
        resized = tf.raw_ops.QuantizeAndDequantizeV2(
            input=tf.zeros([2]), input_min=0.0, input_max=1.0, range_given=True
        )
        narrow = tf.image.adjust_saturation(tf.concat([image] * 3, 3), 0.5)
        return (
            tf.reduce_mean(tf.square(image))
            + 0 * tf.reduce_sum(resized)
            + (0 * tf.reduce_sum(tf.stop_gradient(narrow)))
        )

    stage = differentiated(loss_of, "w")
    (check,) = stage.gradient_checks
    assert (check.precision, stage.no_float64) == (
        "float32",
        "An op of the graph has no float64 version",
    )


def test_a_graph_is_widened_to_float64_then_to_float32_and_then_left():
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None], "x")
        tf.cast(tf.cast(x, tf.float16) + 1, tf.float32, name="end")
    widened = [
        (dtype, copy.get_operation_by_name("add").outputs[0].dtype)
        for copy, dtype in graph_copies.copies(graph, ["end"])
    ]
    assert widened == [
        (tf.float64, tf.float64),
        (tf.float32, tf.float32),
        (tf.float16, tf.float16),
    ]
