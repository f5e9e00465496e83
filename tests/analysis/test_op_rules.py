"""Op rules: every rule gives what TensorFlow's op computes."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import formulas
from tflab.analysis.expressions import Name, equal_within_rounding, evaluated

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(4)
FLOATS = {name: RANDOM.uniform(0.2, 2, (3, 4)) for name in ("a", "b", "x", "y", "dy")}
VALUES = FLOATS | {"c": FLOATS["a"] > 1, "labels": FLOATS["a"] / FLOATS["a"].sum(1, keepdims=True)}
VALUES["a"] -= 1  # some are negative
CLASSES = np.array([3, 0, 2])
POSITIVE = ("Log", "Sqrt", "Rsqrt", "Pow")  # of the first input
ONE = np.float64(1.5)
REPEATED = {  # ops that repeat a number
    "Fill": {"dims": np.array([3, 4]), "a": ONE},
    "Tile": {"a": ONE.reshape(1, 1), "by": np.array([3, 4])},
    "BroadcastTo": {"a": ONE, "dims": np.array([3, 4])},
}
RULES = [(op, rule, 0) for op, rule in formulas.RULES.items()]
RULES += [(op, rule, 1) for op, rule in formulas.DERIVATIVES.items()]


def values_of(op, rule):
    """The inputs of an op, by the parameters of its rule."""
    values = {name: VALUES.get(name) for name in formulas.parsed(rule)[0]}
    if op in POSITIVE:
        values["a"] = np.abs(values["a"])
    if op == "BiasAdd":
        values["b"] = values["b"][0]
    if op.startswith("Sparse"):
        values["labels"] = CLASSES
    return values | REPEATED.get(op, {})


def test_a_rule_gives_what_the_op_computes():
    results = []
    with tf.Graph().as_default(), tf1.Session() as session:
        for op, rule, output in RULES:
            takes = list(inspect.signature(getattr(tf.raw_ops, op)).parameters)
            fed = map(tf.constant, values_of(op, rule).values())
            result = getattr(tf.raw_ops, op)(**dict(zip(takes, fed, strict=False)))
            results.append(result[output] if isinstance(result, tuple) else result)
        computed = session.run(results)
    wrong = []
    for (op, rule, _), result in zip(RULES, computed, strict=True):
        values = values_of(op, rule)
        value = evaluated(formulas.applied(rule, [Name(name, name) for name in values]), values)
        if not equal_within_rounding(value, result.astype(np.float64), 1e-9):
            wrong.append((op, rule))
    assert wrong == []


def test_a_rule_says_nothing_of_an_op_with_other_inputs():
    assert formulas.applied("a, b: a + b", [Name("a")]) is None
