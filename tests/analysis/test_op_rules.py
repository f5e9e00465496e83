"""Op rules: every rule gives what TensorFlow's op computes."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import op_rules
from tflab.analysis.evaluation import equal_within_rounding, evaluated
from tflab.analysis.expressions import Name, text

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(4)
FLOATS = {name: RANDOM.uniform(0.2, 2, (3, 4)) for name in ("a", "b", "x", "y", "dy")}
VALUES = FLOATS | {"c": FLOATS["a"] > 1, "labels": FLOATS["a"] / FLOATS["a"].sum(1, keepdims=True)}
VALUES["a"] -= 1  # some are negative
CLASSES = np.array([3, 0, 2])
POSITIVE = ("Log", "Sqrt", "Rsqrt", "Pow")  # of the first input
RULES = [(op, rule, 0) for op, rule in op_rules.RULES.items()]
RULES += [(op, rule, 1) for op, rule in op_rules.DERIVATIVES.items()]


@pytest.mark.parametrize(("op", "rule", "output"), RULES, ids=lambda value: str(value)[:40])
def test_a_rule_gives_what_the_op_computes(op, rule, output):
    names, _ = op_rules.parsed(rule)
    values = {name: VALUES[name] for name in names}
    if op in POSITIVE:
        values["a"] = np.abs(values["a"])
    if op == "BiasAdd":
        values["b"] = values["b"][0]
    if op.startswith("Sparse"):
        values["labels"] = CLASSES
    with tf.Graph().as_default(), tf1.Session() as session:
        takes = list(inspect.signature(getattr(tf.raw_ops, op)).parameters)
        fed = map(tf.constant, values.values())
        result = getattr(tf.raw_ops, op)(**dict(zip(takes, fed, strict=False)))
        result = result[output] if isinstance(result, tuple) else result
        computed = session.run(result).astype(np.float64)
    formula = op_rules.applied(rule, [Name(name, None, name) for name in names])
    assert equal_within_rounding(evaluated(formula, values), computed, 1e-9), text(formula)


def test_a_rule_says_nothing_of_an_op_with_other_inputs():
    assert op_rules.applied("a, b: a + b", [Name("a")]) is None
