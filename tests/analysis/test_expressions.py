"""Expressions: how formulas are written, and the little that is simplified."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shown import formula
from tflab.analysis import evaluation, formula_text
from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Name, Number, Operation, operation

A, B, X = Name("a", ()), Name("b", ()), Name("x", (None,))
SIZE = operation("Size", X, about=(None,))


@pytest.mark.parametrize(
    "value, text",
    [
        (lambda: A, "a"),
        (lambda: Number(2.0), "2"),
        (lambda: Number(0.1), "0.1"),
        (lambda: ex.add(A, B), "a + b"),
        (lambda: ex.subtract(A, ex.subtract(B, X)), "a - (b - x)"),
        (lambda: ex.subtract(ex.subtract(A, B), X), "a - b - x"),
        (lambda: ex.times(A, ex.add(B, X)), "a * (b + x)"),
        (lambda: ex.times(Number(3), ex.times(A, Number(2))), "6 * a"),
        (lambda: ex.negative(ex.negative(A)), "a"),
        (lambda: ex.negative(ex.times(A, B)), "-a * b"),
        (lambda: ex.negative(ex.add(A, B)), "-(a + b)"),
        (lambda: ex.add(A, ex.negative(B)), "a - b"),
        (lambda: ex.subtract(A, ex.negative(B)), "a - (-b)"),
        (lambda: ex.divide(A, B), "a / b"),
        (lambda: ex.divide(A, ex.add(B, X)), "a / (b + x)"),
        (lambda: ex.divide(ex.divide(A, B), X), "a / b / x"),
        (lambda: ex.divide(A, ex.divide(B, X)), "a * x / b"),
        (lambda: ex.divide(Number(1), A), "1 / a"),
        (lambda: ex.divide(A, Number(0)), "a / 0"),
        (lambda: ex.divide(ex.times(Number(2), A), Number(16)), "a / 8"),
        (lambda: ex.divide(A, Number(0.3)), "a / 0.3"),
        (lambda: ex.times(A, Number(0)), "0"),
        (lambda: ex.add(Number(0), A), "a"),
        (lambda: ex.add(A, Number(0)), "a"),
        (lambda: ex.subtract(A, Number(0)), "a"),
        (lambda: ex.subtract(Number(0), A), "-a"),
        (lambda: ex.subtract(Number(0), ex.add(A, B)), "-(a + b)"),
        (lambda: ex.power(ex.add(A, B), Number(2)), "(a + b)**2"),
        (lambda: ex.power(A, Number(-0.5)), "a**(-0.5)"),
        (lambda: ex.divide(A, ex.power(B, Number(2))), "a / b**2"),
        (lambda: operation("Exp", ex.add(A, B)), "exp(a + b)"),
        (lambda: operation("Sum", A, about=("axis=0",)), "sum(a, axis=0)"),
        (lambda: operation("Mean", A, about=("axis=(0, 2)",)), "mean(a, axis=(0, 2))"),
        (lambda: operation("Add", A, B, X), "a + b + x"),
        (
            lambda: operation("Sum", A, about=("axis=1", "keepdims=True")),
            "sum(a, axis=1, keepdims=True)",
        ),
        (lambda: operation("Mod", ex.add(A, B), operation("FloorDiv", A, B)), "(a + b) % (a // b)"),
        (lambda: operation("Reshape", A, Operation("Tuple", (), (2,))), "reshape(a, (2,))"),
        (
            lambda: operation("OneHot", A, operation("Size", B, Number(-1))),
            "one_hot(a, size(b, -1))",
        ),
        (lambda: ex.power(A, Number(1)), "a"),
        (lambda: ex.add(Number(2), Number(3)), "5"),
        (lambda: ex.subtract(Number(2), Number(3)), "-1"),
        (lambda: Number(1234567), "1234567"),
        (lambda: Number(1e-50), "1e-50"),
        (lambda: Number(float(np.float32(0.1))), "0.1"),
        (lambda: ex.times(A, operation("Greater", B, Number(0))), "a * (b > 0)"),
        (lambda: ex.add(operation("Greater", A, B), X), "(a > b) + x"),
        (lambda: ex.subtract(operation("Greater", A, B), X), "(a > b) - x"),
        (lambda: operation("Greater", ex.add(A, B), X), "a + b > x"),
        (lambda: ex.times(A, Number(float("inf"))), "inf * a"),
        (lambda: ex.divide(A, Number(float("nan"))), "a / nan"),
        (lambda: ex.times(ex.times(A, Number(1e200)), Number(1e200)), "inf * a"),
    ],
)
def test_a_formula_is_written_as_one_reads_it(value, text):
    assert formula(value()) == text


numbers = st.floats(-3, 3, width=16).filter(lambda number: abs(number) > 0.1)
trees = st.recursive(
    st.one_of(st.sampled_from([A, B, X]), numbers.map(Number)),
    lambda parts: st.one_of(
        st.builds(ex.add, parts, parts),
        st.builds(ex.subtract, parts, parts),
        st.builds(ex.times, parts, parts),
        st.builds(ex.divide, parts, parts),
        st.builds(ex.negative, parts),
        st.builds(lambda part: ex.power(part, Number(2)), parts),
    ),
    max_leaves=6,
)
VALUES = {"a": 1.25, "b": -0.75, "x": 2.5}


def valued(value):
    """What a tree comes to, worked out without its text."""
    if isinstance(value, Name):
        return np.float64(VALUES[value.text])
    if isinstance(value, Number):
        return np.float64(value.value)
    if isinstance(value, ex.Product):
        over = np.prod([value.number, *map(valued, value.over)])
        return over / np.prod([value.divisor, *map(valued, value.under)])
    left, right = map(valued, value.args)
    return {"Add": np.add, "Sub": np.subtract, "Pow": np.power, "Div": np.divide}[value.op](
        left, right
    )


@settings(max_examples=100)
@given(trees)
def test_the_text_of_a_formula_has_its_value(tree):
    with np.errstate(all="ignore"):
        value = valued(tree)
        names = {name: np.float64(number) for name, number in VALUES.items()}
        found = evaluation.evaluate(formula_text.text(tree), names)
        shorter = evaluation.evaluate(formula_text.text(ex.collected(tree)), names)
    assert found == pytest.approx(value, rel=1e-5, abs=1e-5) or not abs(value) < 1e3
    assert shorter == pytest.approx(value, rel=1e-4, abs=1e-4) or not abs(value) < 1e3


@pytest.mark.parametrize(
    "value, text",
    [
        (lambda: ex.add(A, A), "2 * a"),
        (lambda: operation("Add", A, B, ex.times(Number(3), A), B), "4 * a + 2 * b"),
        (lambda: ex.add(ex.times(A, B), ex.subtract(X, ex.times(B, A))), "x"),
        (lambda: ex.subtract(A, A), "0"),
        (lambda: ex.add(ex.divide(A, B), ex.divide(A, B)), "2 * a / b"),
        (lambda: ex.add(ex.divide(A, Number(3)), ex.divide(A, Number(6))), "a / 2"),
        (lambda: ex.add(Number(1), ex.add(A, Number(2))), "3 + a"),
        (lambda: operation("Sum", ex.times(ex.add(A, A), X)), "sum(2 * a * x)"),
        (lambda: ex.subtract(A, ex.subtract(B, X)), "a - (b - x)"),
        (lambda: ex.add(ex.divide(A, B), ex.divide(B, A)), "a / b + b / a"),
    ],
)
def test_equal_terms_of_a_sum_are_written_once(value, text):
    assert formula(ex.collected(value())) == text


def test_a_sum_of_what_is_divided_by_the_count_is_a_mean():
    value = ex.divide(ex.times(Number(2), X), SIZE)
    assert formula(ex.total(value, (None,))) == "mean(2 * x)"
    assert formula(ex.total(value, (None, 3))) == "sum(2 * x / size(x))"


def test_a_sum_of_one_number_for_every_element_is_so_many_times_that_number():
    each = ex.repeated(A, SIZE, (None,))
    assert formula(each) == "a"
    assert formula(ex.total(each, (None,))) == "size(x) * a"
    assert formula(ex.total(ex.divide(each, SIZE), (None,))) == "a"
    assert formula(ex.total(ex.times(each, X), (None,))) == "sum(a * x)"
    assert formula(ex.total(ex.repeated(A, Number(4), (4,)), (4,))) == "4 * a"


def test_what_is_summed_within_does_not_have_the_shape_of_its_elements():
    mean = operation("Mean", X)
    each = ex.times(ex.repeated(A, SIZE, (None,)), mean)
    assert formula_text.text(ex.total(each, (None,))) == "size(x) * a * mean(x)"
