"""Derivatives: the formulas read off gradient graphs, and their values. `test_random_programs`
compares others with what TensorFlow computes."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.approval import approve
from tests.examples import models
from tflab import datasets
from tflab.analysis import chain_rule
from tflab.lifecycle import gradient_check
from tflab.models import toy
from tflab.records.options import Options

pytestmark = pytest.mark.tensorflow

VALUES = {"a": 0.5, "b": -0.75}


def data(split, data_dir):
    return datasets.Dataset("numbers", split, {"x": np.linspace(-1, 1, 64, dtype=np.float32)})


def differentiated(loss_of, optimizer=tf1.train.GradientDescentOptimizer, rows=None, **values):
    """The backward stage of a loss of x, which is fed, and of the variables a and b, or others."""

    options = Options(batch_size=rows or Options().batch_size)
    model = models.model_of(loss_of, values or VALUES, data, optimizer(0.1), [rows])
    return models.differentiate(model, options)


def formulas_of(loss_of, **options):
    """The formula of each variable, which gives about what finite differences do."""
    rows = differentiated(loss_of, **options).derivatives
    for row in rows:
        largest = np.abs(row.value).max()
        assert row.checked <= gradient_check.ROUNDING * largest
        assert row.difference < 1e-3 * max(1, largest)
    return {row.variable: row.formula for row in rows}


# Losses


def axes_broadcasts_and_casts(x, a, b):
    rows = tf.stack([x, x * 2, x + 1])
    whole = tf.cast(x * 3, tf.int32)
    wide = tf.reduce_sum(rows, 0) * a - tf.reduce_max(rows, 0)
    return tf.reduce_mean(wide**2) + tf.reduce_sum(tf.cast(whole // 2, tf.float32)) * b


def whole_numbers(x, a, b):
    whole = tf.cast(x * 3, tf.int32)
    power, larger = (tf.cast(value, tf.float32) for value in (tf.pow(whole, 2), whole > 1))
    return tf.reduce_sum(power * a + larger * b)


def text_in_a_variable(x, a, b):
    tf1.get_variable("label", initializer="noise", trainable=False, use_resource=True)
    return tf.reduce_mean(x * a + b)


def a_conditional_that_a_formula_would_name(x, a, b):
    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: x * a, lambda: x - a)
    return tf.reduce_mean(tf.abs(tf.abs(chosen))) * a + tf.reduce_mean(x * b)


LOSSES = {
    "mean((x a + b)**2)": lambda x, a, b: tf.reduce_mean(tf.square(x * a + b)),
    "sum(x + a b)": lambda x, a, b: tf.reduce_sum(x + a * b),
    "mean((x - a)**2 + a b)": lambda x, a, b: tf.reduce_mean(tf.square(x - a) + a * b),
    "sum(log(2.5 + tanh(a x)) / b)": (
        lambda x, a, b: tf.reduce_sum(tf.math.log(2.5 + tf.tanh(a * x)) / b)
    ),
    "axes, broadcasts and casts": axes_broadcasts_and_casts,
    "whole numbers": whole_numbers,
    "digamma, which has no formula": (
        lambda x, a, b: tf.reduce_mean(tf.math.lgamma(a * x + 3) + b)
    ),
    "a conditional that a formula would name": a_conditional_that_a_formula_would_name,
    "text in a variable": text_in_a_variable,
}


def test_a_derivative_is_a_formula_of_variables_and_what_is_fed():
    said = []
    for name, loss_of in LOSSES.items():
        said += [f"# {name}", *(f"{v}: {text}" for v, text in formulas_of(loss_of).items())]
    approve("derivatives.txt", "\n".join(said))


def test_the_formulas_and_values_of_the_toy():
    stage = models.differentiate(toy.build, Options(batch_size=5))
    assert [row.formula for row in stage.derivatives] == [
        "mean(2 * x * (x * y + z - targets))",
        "mean(2 * (x * y + z - targets))",
    ]
    first = next(datasets.batches(toy.line("train"), 5))
    x, targets = (first[name].astype(np.float64) for name in ("x", "targets"))
    errors = 2 * x + 1 - targets  # y and z start as 2 and 1
    known = {"y": np.mean(2 * first["x"] * errors), "z": np.mean(2 * errors)}
    for row in stage.derivatives:
        assert row.value == pytest.approx(known[row.variable], rel=1e-5)
        assert row.difference < 1e-5


@pytest.mark.parametrize("size, formulas", [(64, {"w": "2 * w"}), (65, {})])
def test_only_small_variables_have_derivatives(size, formulas):
    def loss_of(x, w):
        return tf.reduce_sum(tf.square(w)) + tf.reduce_mean(x)

    assert formulas_of(loss_of, w=np.linspace(0, 1, size, dtype=np.float32)) == formulas


def test_the_limit_that_was_exceeded_is_named():
    def loss_of(x, a, b, c, d, e):
        return tf.reduce_sum(tf.square(a + b + c + d + e)) + tf.reduce_mean(x)

    values = np.linspace(0, 1, 60, dtype=np.float32)
    many = differentiated(loss_of, **dict.fromkeys("abcde", values))
    assert many.no_formula.endswith("only if the variables have at most 256 floats in all")
    large = differentiated(lambda x, w: tf.reduce_sum(x * w), w=np.ones([65, 1], np.float32))
    assert large.no_formula.endswith("only if no variable has more than 64 floats")


@pytest.mark.parametrize("of_version_1", [False, True])
def test_placeholders_of_a_fixed_size_decide_the_batch(of_version_1):
    if of_version_1:  # as after tf.disable_v2_behavior
        tf1.disable_v2_tensorshape()
    try:
        placeholders_decide()
    finally:
        tf1.enable_v2_tensorshape()


def placeholders_decide():
    stage = differentiated(lambda x, a: tf.reduce_sum(a * x * x), rows=12, a=0.5)
    assert stage.program.model.fixed_batch == 12
    assert [check.tensor for check in stage.gradient_checks] == ["a"]
    (row,) = stage.derivatives
    assert (row.formula, row.value) == (
        "sum(x * x)",
        pytest.approx((np.linspace(-1, 1, 64)[:12] ** 2).sum()),
    )


# Where there is none


def test_a_loss_that_is_not_finite_has_derivatives_without_a_difference():
    stage = differentiated(lambda x, a, b: tf.reduce_mean(b / (a - 0.5) + x))
    assert [row.difference for row in stage.derivatives] == [None, None]
    assert [row.checked for row in stage.derivatives] == [0, 0]
    assert stage.derivatives[1].formula == "1 / (a - 0.5)"


@pytest.mark.parametrize("longest, formulas", [(30, ["mean(2 * x * (x * a + b))"]), (6, [])])
def test_a_derivative_that_is_too_long_is_left_out(longest, formulas, monkeypatch):
    monkeypatch.setattr(chain_rule, "LONGEST", longest)
    stage = differentiated(lambda x, a, b: tf.reduce_mean(tf.square(x * a + b)))
    assert [row.formula for row in stage.derivatives][:1] == formulas


# Gradients that are not those of the loss


@tf.custom_gradient
def straight_through(value):
    return tf.sign(value), lambda upstream: upstream


def test_custom_gradients_and_stop_gradient_are_noted_where_variables_are_behind_them():
    def loss_of(x, a, b):
        held = tf.stop_gradient(tf.identity(a * 2, name="double"), name="held")
        fed = tf.stop_gradient(x, name="fed")
        count = tf.stop_gradient(tf.shape(x * a), name="count")
        return tf.reduce_mean(straight_through(b) * x + held * fed) + tf.reduce_sum(
            tf.cast(count, tf.float32) * b
        )

    stage = differentiated(loss_of)
    assert stage.stopped == ()
    stop = next(stop for stop in stage.gradient_stops if stop.node == "held")
    place = stop.path.index("double")
    assert (stop.variable, stop.path[0], stop.path[place + 1]) == ("a", "a", "held")
    assert stage.custom_gradients == ("IdentityN",)
    plain = differentiated(lambda x, a, b: tf.reduce_mean(tf.identity_n([x * a, b])[0] + b))
    assert (plain.stopped, plain.custom_gradients) == ((), ())


def test_what_stop_gradient_ends_is_not_named_if_it_is_zero(monkeypatch):
    """The squares of differences from a mean do not depend on where that mean is in first order."""

    def loss_of(x, a, b):
        _, variance = tf.nn.moments(tf.constant([[1.0, 2.0, 4.0]]) * a, axes=[1])
        return tf.reduce_mean(variance * x + b)

    stage = differentiated(loss_of)
    (stop,) = (node.name for node in stage.nodes if node.op == "StopGradient")
    assert [check.agrees for check in stage.gradient_checks] == [True, True]
    assert stage.stopped == ()
    far = replace(stage.gradient_checks[0], max_relative_error=0.5)  # of `a`, which is behind it
    monkeypatch.setattr(gradient_check, "check", lambda *_: gradient_check.Checked((far,), ""))
    assert differentiated(loss_of).stopped == (stop,)


class Clipping(tf1.train.GradientDescentOptimizer):
    def compute_gradients(self, *args, **options):
        pairs = super().compute_gradients(*args, **options)
        return [(tf.clip_by_norm(gradient, 0.01), variable) for gradient, variable in pairs]


def test_a_clipped_gradient_is_not_taken_for_that_of_the_loss():
    def loss_of(x, a, b):
        return tf.reduce_sum(x * x * a + b)

    stage = differentiated(loss_of, Clipping)
    assert [(row.variable, row.formula) for row in stage.derivatives] == [
        ("a", "sum(x * x)"),
        ("b", "size(x * x * a + b)"),
    ]
    assert stage.derivatives[1].value == 16
    assert [check.agrees for check in stage.gradient_checks] == [True, True]
