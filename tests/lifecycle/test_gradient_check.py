"""Gradient check: right gradients have no error above rounding, and wrong ones have a large one."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.examples.models import differentiate, differentiated, executed, model_of
from tflab.datasets import Dataset
from tflab.lifecycle import gradient_check
from tflab.records.options import Model, Options
from tflab.records.stages import GradientCheck

pytestmark = pytest.mark.tensorflow


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


@pytest.mark.parametrize(
    ("loss", "largest", "zero"), [(1, 1, False), (1, 1e3, True), (1e3, 1, True)]
)
def test_the_rounding_of_a_gradient_is_that_of_the_loss_or_of_the_largest_gradient(
    loss, largest, zero
):
    gradient, slopes = np.array([1e-13]), np.array([0.0])
    check = gradient_check.compare("w", gradient, [0], slopes, tf.float64, loss, largest)
    assert (check.zero, check.max_relative_error) == (zero, 0 if zero else 1)


def test_the_gradient_of_a_computed_tensor_is_checked():
    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        h = tf.square(x, name="h")
        loss = tf.reduce_sum(h * h)
        data = Dataset("made", "train", {"x": np.arange(64, dtype=np.float32)})
        return Model(h, {x: "x"}, lambda *_: data, loss, parameters=(x, h))

    checks = {check.tensor: check for check in differentiate(build).gradient_checks}
    assert checks.keys() == {"x", "h"}  # 4 * x**3 and 2 * h
    assert all(0 < check.max_relative_error < 1e-6 for check in checks.values())


def test_gradients_are_not_checked_at_the_kink_of_relu():
    def loss_of(x, w):
        return tf.reduce_mean(x) * tf.reduce_sum(tf.nn.relu(w))

    (check,) = differentiate(model_of(loss_of, {"w": [0.0, 0.0]})).gradient_checks
    assert check.agrees


@pytest.mark.parametrize(
    ("factor", "error", "scale"), [(0, 1, 1), (0, 1, 1e-4), (2, 0.5, 1), (-1, 2, 1e-4)]
)
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


@pytest.mark.parametrize(("dtype", "called"), [(tf.float16, False), (tf.bfloat16, True)])
def test_a_loss_in_half_precision_is_not_checked(dtype, called):
    def inner(x, w):
        return tf.cast(tf.nn.tanh(tf.cast(x, dtype) * tf.cast(w, dtype)), tf.float32)

    stage = differentiated(
        lambda x, w: tf.reduce_mean((tf.function(inner) if called else inner)(x, w)), "w"
    )
    reason = f"a part of the loss is computed in {dtype.name}"
    assert (stage.gradient_checks, stage.unchecked) == ((), reason)


# Graphs without a float64 version


def in_python(x):
    one = tf1.py_func(lambda x: np.ones_like(x, np.float32), [x], tf.float32)
    one.set_shape(x.shape)
    return one


def batch_normed(x):
    ones, zeros = tf.ones([4]), tf.zeros([4])
    return tf1.nn.fused_batch_norm(x[:, None, None, :], ones, zeros)[0][:, 0, 0, :]


@pytest.mark.parametrize(
    ("float32_only", "factor", "error"),
    [(in_python, 1, 0), (in_python, 2, 0.5), (batch_normed, 1, 0), (batch_normed, 0, 1)],
)
def test_where_float64_fails_float32_finds_wrong_gradients(float32_only, factor, error):
    def loss_of(x, w):
        return tf.reduce_mean(tf.square(float32_only(x) * wrong(factor)(w)))

    (check,) = differentiated(loss_of, "w").gradient_checks
    assert check.precision == "float32"
    assert check.max_relative_error == pytest.approx(error, abs=5e-3)
    assert check.agrees == (factor == 1.0)


def test_a_gradient_that_disagrees_is_compared_at_other_weights(monkeypatch):
    errors, asked = [{"a": 0.5, "b": 0.0}, {"a": 0.4, "b": 9.0}, {"a": 0.0, "b": 9.0}], []

    def check_at(copy, program, pairs, seed):
        asked.append(seed)
        found = (
            GradientCheck(name, by, 1, 1, "float64", False, 1e-4)
            for name, by in errors[seed].items()
        )
        return gradient_check.Checked(tuple(found), "")

    monkeypatch.setattr(gradient_check, "check_at", check_at)
    found = gradient_check.check(None, None, [])
    assert {one.tensor: one.max_relative_error for one in found.checks} == {"a": 0.0, "b": 0.0}
    assert asked == [0, 1, 2]


# Random losses


def dropped(x, rate, **seed):
    return tf.nn.dropout(x, rate, **seed)


@pytest.mark.parametrize(("called", "seed"), [(False, {}), (True, {"seed": 7})])
def test_a_random_loss_is_not_checked(called, seed):
    def loss_of(x, w):
        drop = tf.function(dropped) if called else dropped
        return tf.reduce_mean(tf.square(drop(x * w, 0.5, **seed)))

    stage = differentiated(loss_of, "w")
    assert (stage.gradient_checks, stage.unchecked) == ((), "the loss is random")


def not_drawn(x, w):
    """Dropout of nothing, and random numbers in a branch that is not taken."""
    training = tf1.placeholder_with_default(False, [])
    drawn = tf.cond(training, lambda: tf.random.uniform([4]), lambda: tf.ones([4]))
    return dropped(x * w, tf1.placeholder_with_default(0.0, [])) * drawn


def masked(x, w):
    """A mask from a seed, which is the same in all runs."""
    drawn = tf.random.stateless_uniform([4], seed=[1, 2])
    return x * tf.where(drawn < 0.5, w, tf.zeros([4]))


@pytest.mark.parametrize("value", [not_drawn, masked, tf.function(masked)])
def test_a_loss_that_only_looks_random_is_checked(value):
    (check,) = differentiated(lambda x, w: tf.reduce_mean(value(x, w) ** 2), "w").gradient_checks
    assert (check.agrees, check.precision) == (True, "float64")


def test_a_loss_that_is_nan_in_a_later_row_of_the_batch_is_not_checked():
    def late(split, data_dir=None):
        return Dataset("late", split, {"x": np.float32([1] * 9 + [np.nan] + [1] * 22)})

    stage = differentiate(model_of(lambda x, w: tf.reduce_mean(x * w), {"w": 1.0}, late))
    assert (stage.gradient_checks, stage.unchecked) == ((), "the loss is nan")


def test_a_variable_that_asks_for_the_device_of_an_op_is_checked():
    def loss_of(x):
        squares = tf.square(x)
        with tf1.colocate_with(squares.op):
            return tf.reduce_mean(squares * tf1.get_variable("w", []))

    (check,) = differentiate(model_of(loss_of, {})).gradient_checks
    assert (check.agrees, check.precision) == (True, "float64")


def test_tables_and_local_variables_have_their_initial_values_in_the_check_and_in_steps():
    def build():
        ids = tf1.placeholder(tf.int64, [None], name="ids")
        keys = tf.range(9, dtype=tf.int64)
        pairs = tf.lookup.KeyValueTensorInitializer(keys, keys % 3)
        weights = tf1.get_variable("weights", [3], use_resource=True)
        output = tf.gather(weights, tf.lookup.StaticHashTable(pairs, 0).lookup(ids))
        loss = tf.reduce_mean(tf.square(output))
        descent, (_, mean) = tf1.train.GradientDescentOptimizer(0.1), tf1.metrics.mean(loss)
        return Model(output, {ids: "id"}, nine, loss=loss, optimizer=descent, updates=[mean])

    def nine(split, data_dir=None):
        return Dataset("made", split, {"id": np.arange(64) % 9})

    stage = executed(build, Options(batch_size=8, steps=3, warmup=1))
    assert stage.steps == 3
    (check,) = differentiate(build).gradient_checks
    assert check.max_relative_error < 1e-5


def test_the_variables_that_are_checked_are_spread_over_the_model(monkeypatch):
    monkeypatch.setattr(gradient_check, "ELEMENTS", 3)

    def loss_of(x, *variables):
        return tf.reduce_mean(tf.square(x * tf.add_n(variables)))

    checks = checks_of(loss_of, "a", "b", "c", "d", "e", "f", "g")
    assert [*checks] == ["a", "d", "g"]
