"""Expressions: how formulas are printed, and the little that is simplified."""

import ast
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tflab.analysis import expressions, formulas
from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Call, Name

A, B, X = Name("a", "a"), Name("b", "b"), Name("x", "x")
SIZE = Call("size", X, shape=(None,))


def built(rule):
    """The expression that a rule of the inputs a, b and x makes."""
    return formulas.applied(f"a, b, x: {rule}", [A, B, X])


# Sums, products, quotients, powers, and others
RULES = """
a; 2 + 3; 2 - 3; a + b + x; a + (b - x); a - (b - x); 0 + a; a + 0; a - 0; 0 - a; 0 - (a + b)
a + -b; a - -b; a + -2; a + (x - 2 * b); a + -(b - x); -a + b
a * (b + x); 3 * (a * 2); a * 0; --a; -(a * b); -(2 * a); -(a + b); -(a + b) * x
a / b / x; a / (b + x); a / (b / x); 1 / a; a / 0; 2 * a / 16; a / -2; a / 0.3; 1 / b * a / b**2
a**1; (a + b)**2; (-a)**2; -a**2; a**(-0.5)
(a + b) % (a // b); a * (b // x); a * (b > 0); (a > b) - x; a + b > x; exp(a + b)
sum(a, axis=(0, 2), keepdims=True); reshape(a, (-1,))
"""


def test_formulas_have_few_parentheses_and_flat_products():
    rules = re.split("[;\n] *", RULES.strip())
    approve("formulas.txt", "\n".join(f"{rule} -> {ex.text(built(rule))}" for rule in rules))


def test_a_number_has_no_more_digits_than_a_float32():
    numbers = (2.0, -2, 1234567.0, 1e20, 1e-50, float(np.float32(0.1)), -float(np.float32(1 / 3)))
    texts = ["2", "-2", "1234567", "1e+20", "1e-50", "0.1", "-0.33333334"]
    assert [ex.text(ex.number(value)) for value in numbers] == texts


def test_what_a_name_looks_like_does_not_matter():
    name = Name("dL/d(a/b:0) by mul[1]", "g")
    assert ex.text(ex.times(A, ex.add(name, B))) == "a * (dL/d(a/b:0) by mul[1] + b)"


def test_a_part_that_occurs_twice_has_parentheses_only_where_it_needs_them():
    part = built("a - b")
    assert ex.text(ex.times(part, Call("abs", part))) == "(a - b) * abs(a - b)"


LEAVES = st.sampled_from(["a", "b", "x", "2", "0.5", "1.25", "-0.75"])
TREES = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        *(st.tuples(parts, st.just(f" {sign} "), parts).map("".join) for sign in "+-*/"),
        parts.map(lambda part: f"-({part})"),
        parts.map(lambda part: f"({part})**2"),
    ).map(lambda text: f"({text})"),
    max_leaves=6,
)
VALUES = {"a": 1.25, "b": -0.75, "x": 2.5}


@settings(max_examples=100)
@given(TREES)
def test_the_text_of_a_formula_has_the_value_of_what_it_was_made_of(rule):
    numbers = {name: np.float64(value) for name, value in VALUES.items()}
    with np.errstate(all="ignore"):
        try:
            value = eval(rule, {"__builtins__": {}}, numbers)
        except ZeroDivisionError:
            return
        if not abs(value) < 1e3:
            return
        tree = built(rule)
        printed = eval(ex.text(tree), {"__builtins__": {}}, numbers)
        assert printed == pytest.approx(value, rel=1e-4, abs=1e-4)
        assert expressions.evaluated(tree, numbers) == pytest.approx(printed)


def test_no_tree_is_changed_by_what_is_made_of_it():
    tree = built("a * sum(x + x, axis=0, keepdims=True) - a")
    before = ast.dump(tree)
    for change in (ex.negative, ex.text):
        change(tree)
    expressions.evaluated(tree, {"a": np.ones(()), "x": np.ones(2)})
    assert ast.dump(tree) == before


def test_a_sum_of_what_is_divided_by_the_count_is_a_mean():
    value = ex.divide(ex.times(ex.number(2), X), SIZE)
    assert ex.text(ex.total(value, (None,))) == "mean(2 * x)"
    assert ex.text(ex.total(value, (None, 3))) == "sum(2 * x / size(x))"
    columns = Call("sum", Name("y"), options=formulas.over([0]))
    value = ex.divide(columns, Call("size", columns, shape=(3,)))
    assert ex.text(ex.total(value, (3,))) == "mean(sum(y, axis=0))"
