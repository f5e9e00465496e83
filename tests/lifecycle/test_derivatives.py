"""Derivatives: the formulas read off gradient graphs, and their values, compared with SymPy's and
against finite differences."""

from dataclasses import replace

import numpy as np
import pytest
import sympy
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab import datasets
from tflab.analysis import chain_rule
from tflab.lifecycle import backward, frontend, gradient_check
from tflab.models import toy
from tflab.records.options import Model, Options

pytestmark = pytest.mark.tensorflow

ROWS = 3  # of the batch for which SymPy computes
VALUES = {"a": 0.5, "b": -0.75}


def data(split, data_dir):
    return datasets.Dataset("numbers", split, {"x": np.linspace(-1, 1, 64, dtype=np.float32)})


def differentiated(loss_of, optimizer=None, **options):
    """The backward stage of a loss of the variables a and b and of x, which is fed."""

    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        a, b = (
            tf1.get_variable(name, initializer=value, use_resource=True)
            for name, value in VALUES.items()
        )
        loss = loss_of(x, a, b)
        descent = optimizer or tf1.train.GradientDescentOptimizer(0.1)
        return Model(x, {x: "x"}, data, loss, descent)

    chosen = Options(**options)
    return backward.differentiate(frontend.build(("mine", build), chosen), chosen)


def test_placeholders_of_a_fixed_size_decide_the_batch():
    def build():
        x = tf1.placeholder(tf.float32, [12], name="x")
        a = tf1.get_variable("a", initializer=0.5)
        loss = tf.reduce_sum(tf.exp(a * x))
        return Model(x, {x: "x"}, data, loss, tf1.train.GradientDescentOptimizer(0.1))

    built = frontend.build(("mine", build), Options())
    assert built.program.model.fixed_batch == 12
    stage = backward.differentiate(built, Options(batch_size=12))
    assert [check.tensor for check in stage.gradient_checks] == ["a"]


# What a formula means, of arrays of symbols


def elementwise(function):
    return np.vectorize(function, otypes=[object])


def added(value):
    return np.sum(np.asarray(value, object))


MEANING = {
    "exp": elementwise(sympy.exp),
    "log": elementwise(sympy.log),
    "tanh": elementwise(sympy.tanh),
    "sum": added,
    "mean": lambda value: added(value) / np.size(value),
    "size": np.size,
}


def symbols():
    x = np.array(sympy.symbols(f"x:{ROWS}", real=True), object)
    return {"x": x, **{name: sympy.Symbol(name, real=True) for name in VALUES}}


def meaning(formula, names):
    """The value of a formula, which is one number, where its names stand for these symbols."""
    value = eval(formula, {"__builtins__": {}}, MEANING | names)
    return sympy.sympify(np.asarray(value, object).item())


def same(left, right):
    """Whether two expressions are equal wherever they are tried."""
    for shift in (0.1, 0.35, 0.8):
        known = sorted(left.free_symbols | right.free_symbols, key=str)
        numbers = {symbol: sympy.Float(shift + 0.21 * n, 30) for n, symbol in enumerate(known)}
        one, other = (complex(sympy.N(value.subs(numbers), 25)) for value in (left, right))
        if abs(one - other) > 1e-6 * max(1, abs(one)):
            return False
    return True


def test_the_derivatives_of_the_toy_are_those_of_sympy(walked):
    stage = walked("toy")["backward"]
    names = {name: sympy.Symbol(name) for name in "yz"}
    names |= {name: np.array(sympy.symbols(f"{name}:{ROWS}"), object) for name in ("x", "targets")}
    loss = meaning("mean((x * y + z - targets)**2)", names)
    assert [derivative.variable for derivative in stage.derivatives] == ["y", "z"]
    for derivative in stage.derivatives:
        right = sympy.diff(loss, names[derivative.variable])
        assert sympy.simplify(meaning(derivative.formula, names) - right) == 0


def test_the_formulas_of_the_toy_are_short():
    options = Options()
    stage = backward.differentiate(frontend.build(("toy", toy.build), options), options)
    assert [derivative.formula for derivative in stage.derivatives] == [
        "mean(2 * x * (x * y + z - targets))",
        "mean(2 * (x * y + z - targets))",
    ]


def test_the_values_of_the_toy_are_those_for_its_first_batch():
    options = Options(batch_size=5)
    stage = backward.differentiate(frontend.build(("toy", toy.build), options), options)
    first = next(datasets.batches(toy.line("train"), 5))
    x, targets = (first[name].astype(np.float64) for name in ("x", "targets"))
    errors = 2 * x + 1 - targets  # y and z start as 2 and 1
    known = {"y": np.mean(2 * first["x"] * errors), "z": np.mean(2 * errors)}
    for derivative in stage.derivatives:
        assert derivative.value == pytest.approx(known[derivative.variable], rel=1e-5)
        assert derivative.difference < 1e-5


# Random formulas

leaves = st.sampled_from(["x", "a", "b", "2.0", "0.5"])


def larger(parts):
    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda p: f"({p[0]} + {p[1]})"),
        pairs.map(lambda p: f"({p[0]} - {p[1]})"),
        pairs.map(lambda p: f"({p[0]} * {p[1]})"),
        # Divisors and arguments of log stay away from 0
        pairs.map(lambda p: f"({p[0]} / (1.5 + tanh({p[1]})))"),
        parts.map(lambda p: f"square({p})"),
        parts.map(lambda p: f"(-{p})"),
        parts.map(lambda p: f"exp(tanh({p}))"),
        parts.map(lambda p: f"log(2.5 + tanh({p}))"),
        parts.map(lambda p: f"mean({p})"),
        parts.map(lambda p: f"sum({p})"),
    )


@st.composite
def formulas(draw):
    return draw(st.recursive(leaves, larger, max_leaves=5))


IN_TENSORFLOW = {
    "exp": tf.exp,
    "log": tf.math.log,
    "tanh": tf.tanh,
    "square": tf.square,
    "mean": tf.reduce_mean,
    "sum": tf.reduce_sum,
}


@settings(max_examples=12)
@given(formulas(), st.sampled_from(["mean", "sum"]))
def test_derivatives_of_random_formulas_are_those_of_sympy(formula, outer):
    text = f"{outer}({formula} * a + square(b))"

    def loss_of(x, a, b):
        return eval(text, {"__builtins__": {}}, IN_TENSORFLOW | {"x": x, "a": a, "b": b})

    stage = differentiated(loss_of)
    names = symbols()
    loss = meaning(text, names | {"square": lambda value: value * value})
    assert [derivative.variable for derivative in stage.derivatives] == ["a", "b"]
    for derivative in stage.derivatives:
        right = loss.diff(names[derivative.variable])
        assert same(meaning(derivative.formula, names), right), derivative
        assert derivative.difference < 1e-3 * max(1, abs(derivative.value)), derivative


def test_what_is_the_same_for_every_row_is_counted_in_a_sum():
    stage = differentiated(lambda x, a, b: tf.reduce_sum(x + a * b, name="loss"))
    assert [derivative.formula for derivative in stage.derivatives] == [
        "size(x + a * b) * b",
        "size(x + a * b) * a",
    ]
    assert [derivative.value for derivative in stage.derivatives] == [16 * -0.75, 16 * 0.5]


def test_a_variable_that_holds_text_has_no_part_in_it():
    def loss_of(x, a, b):
        tf1.get_variable("label", initializer="noise", trainable=False, use_resource=True)
        return tf.reduce_mean(x * a + b)

    stage = differentiated(loss_of)
    assert [derivative.formula for derivative in stage.derivatives] == ["mean(x)", "1"]
    assert [check.max_relative_error < 1e-3 for check in stage.gradient_checks] == [True, True]


# Where there is none


def test_a_loss_that_is_not_elementwise_has_no_derivatives_as_formulas(walked):
    assert walked("lenet")["backward"].derivatives == ()


def test_a_loss_that_is_not_finite_has_derivatives_without_a_difference():
    stage = differentiated(lambda x, a, b: tf.reduce_mean(b / (a - 0.5) + x))
    assert [derivative.difference for derivative in stage.derivatives] == [None, None]
    assert [derivative.checked for derivative in stage.derivatives] == [0, 0]
    assert stage.derivatives[1].formula == "1 / (a - 0.5)"


# What is not a formula, or would be a wrong one


def test_axes_broadcasts_and_casts_are_in_the_formulas():
    def loss_of(x, a, b):
        rows = tf.stack([x, x * 2, x + 1])
        whole = tf.cast(x * 3, tf.int32)
        wide = tf.reduce_sum(rows, 0) * a - tf.reduce_max(rows, 0)
        return tf.reduce_mean(wide**2) + tf.reduce_sum(tf.cast(whole // 2, tf.float32)) * b

    stage = differentiated(loss_of)
    assert {derivative.variable: derivative.formula for derivative in stage.derivatives} == {
        "a": "mean(2 * sum(stack, axis=0) * (sum(stack, axis=0) * a - max(stack, axis=0)))",
        "b": "sum(Cast // 2)",
    }
    for derivative in stage.derivatives:
        assert derivative.checked < 1e-4
        assert derivative.difference < 1e-3


def test_powers_of_whole_numbers_are_part_of_formulas():
    def loss_of(x, a, b):
        whole = tf.cast(x * 3, tf.int32)
        power, larger = (tf.cast(value, tf.float32) for value in (tf.pow(whole, 2), whole > 1))
        return tf.reduce_sum(power * a + larger * b)

    formulas = [derivative.formula for derivative in differentiated(loss_of).derivatives]
    assert formulas == ["sum(Cast**2)", "sum(Cast > 1)"]


def test_a_derivative_with_a_step_that_has_no_formula_is_left_out():
    """Of Lgamma's derivative, a Digamma, there is no formula."""

    def loss_of(x, a, b):
        return tf.reduce_mean(tf.math.lgamma(a * x + 3) + b)

    (known,) = differentiated(loss_of).derivatives
    assert (known.variable, known.formula) == ("b", "1")


@pytest.mark.parametrize("longest, formulas", [(30, ["mean(2 * x * (x * a + b))"]), (7, [])])
def test_a_derivative_that_is_too_long_is_left_out(longest, formulas, monkeypatch):
    monkeypatch.setattr(chain_rule, "LONGEST", longest)
    stage = differentiated(lambda x, a, b: tf.reduce_mean(tf.square(x * a + b)))
    assert [known.formula for known in stage.derivatives][:1] == formulas


def test_a_conditional_that_a_formula_would_name_does_not_stop_the_others():
    def loss_of(x, a, b):
        chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: x * a, lambda: x - a)
        return tf.reduce_mean(tf.abs(tf.abs(chosen))) * a + tf.reduce_mean(x * b)

    stage = differentiated(loss_of)
    known = {row.variable: row for row in stage.derivatives}
    assert known["b"].formula == "mean(x)"
    assert all("cond" not in row.formula.split() for row in known.values())


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
    assert stage.stopped == ("held",)
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
    checks = {check.tensor: check for check in stage.gradient_checks}
    assert [check.agrees for check in checks.values()] == [True, True]
    assert stage.stopped == ()
    far = replace(checks["a"], max_relative_error=0.5)  # `a` is behind it
    for known, stopped in ((checks["b"], ()), (far, (stop,))):
        checked = gradient_check.Checked((known,), "")
        monkeypatch.setattr(backward, "check_gradients", lambda *_, checked=checked: checked)
        assert differentiated(loss_of).stopped == stopped


def test_a_stop_that_changes_a_gradient_is_named_also_where_the_check_is_in_float32():
    def loss_of(x, a, b):
        one = tf1.py_func(lambda x: np.ones_like(x, np.float32), [x], tf.float32)
        one.set_shape(x.shape)
        stopped = tf.stop_gradient(a) if stops else a
        held = tf.reduce_logsumexp(tf.stack([a * one, b * x], 1), 1)  # it contains a stop
        return tf.reduce_mean(tf.square(stopped * a)) + tf.reduce_mean(held)

    for stops, names in ((False, []), (True, ["StopGradient"])):
        stage = differentiated(loss_of)
        assert {check.precision for check in stage.gradient_checks} == {"float32"}
        assert [name for name in stage.stopped if "LogSum" not in name] == names
        assert bool(stage.stopped) == stops


class Clipping(tf1.train.GradientDescentOptimizer):
    def compute_gradients(self, *args, **options):
        pairs = super().compute_gradients(*args, **options)
        return [(tf.clip_by_norm(gradient, 0.01), variable) for gradient, variable in pairs]


def test_a_clipped_gradient_is_not_taken_for_that_of_the_loss():
    stage = differentiated(lambda x, a, b: tf.reduce_sum(x * x * a + b), Clipping(0.1))
    assert {derivative.variable: derivative.formula for derivative in stage.derivatives} == {
        "a": "sum(x * x)",
        "b": "size(x * x * a + b)",
    }
    assert stage.derivatives[1].value == 16
    assert stage.processed == ("a", "b")
    assert [check.max_relative_error < 1e-3 for check in stage.gradient_checks] == [True, True]


def test_gradients_that_reach_the_optimiser_unchanged_are_not_said_to_be_changed():
    assert differentiated(lambda x, a, b: tf.reduce_sum(x * a + b)).processed == ()


@pytest.mark.parametrize("size, known", [(64, ["w"]), (65, [])])
def test_only_small_variables_have_derivatives(size, known):
    def build():
        x = tf1.placeholder(tf.float32, [None], name="x")
        w = tf1.get_variable("w", initializer=np.linspace(0, 1, size, dtype=np.float32))
        loss = tf.reduce_sum(tf.square(w)) + tf.reduce_mean(x)
        return Model(x, {x: "x"}, data, loss, tf1.train.GradientDescentOptimizer(0.1))

    options = Options()
    stage = backward.differentiate(frontend.build(("mine", build), options), options)
    assert [derivative.variable for derivative in stage.derivatives] == known
    for derivative in stage.derivatives:
        assert derivative.formula == "2 * w"
        assert derivative.value == pytest.approx(np.linspace(0, 2, size), abs=1e-6)
        assert derivative.difference < 1e-4
