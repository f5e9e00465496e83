"""Evaluation: what printed formulas give, and what is not taken for a value of the runtime."""

import numpy as np
import pytest

from tflab.analysis import expressions, formulas
from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Call, Name, Points, UnknownError

A = np.array([[1.0, -2, 3], [4, 5, -6]])
ROWS = np.array([0.0, 2])


@pytest.mark.parametrize(
    "text, value",
    [
        ("2 * -a + 1", -2 * A + 1),
        ("a**2 / 2", A**2 / 2),
        ("7 // 2 + 7 % 4", 6),
        ("(a > 0) + (a > 0)", (A > 0) * 2.0),
        ("(a <= 1) * (a != -2)", (A <= 1) * (A != -2)),
        ("sum(a)", 5),
        ("sum(a, axis=0)", [5, 3, -3]),
        ("mean(a, axis=(0, 1))", 5 / 6),
        ("max(a, axis=1, keepdims=True)", [[3], [5]]),
        ("size(a) + size(a, -1)", 9),
        ("reshape(a, (3, -1))", A.reshape(3, 2)),
        ("reshape(sum(a, axis=0), shape(a, 1))", [5, 3, -3]),
        ("transpose(a)", A.T),
        ("matmul(a, transpose(a, (1, 0)))", A @ A.T),
        ("transpose(a, (0, 1))", A),
        ("expand_dims(i, -1)", [[0], [2]]),
        ("sum_to(a, (3,))", [5, 3, -3]),
        ("sum_to(a, (2, 1))", [[2], [3]]),
        ("sum_to(a, ())", 5),
        ("sum_to(2, ())", 2),
        ("sum_to(a, shape(a))", A),
        ("(-a)**2 - a**2", A * 0),
        ("size(a) / size(i)", 3),
        ("relu(a)", np.maximum(A, 0)),
        ("where(a > 0, a, 0)", np.maximum(A, 0)),
        ("one_hot(i, 3)", [[1, 0, 0], [0, 0, 1]]),
        ("softmax(a - a)", np.full((2, 3), 1 / 3)),
        ("softmax(i - i)", [0.5, 0.5]),
        ("cross_entropy(a - a, i)", np.full(2, np.log(3))),
        (
            "cross_entropy(a + a, i)",
            [np.log(1 + np.exp(-6) + np.exp(4)), np.log(np.exp(20) + np.exp(22) + 1)],
        ),
        ("cross_entropy(a - a, one_hot(i, 3))", np.full(2, np.log(3))),
        ("log(-1)", np.nan),
        ("a / 0", A * np.inf),
    ],
)
def test_a_formula_gives_what_it_says(text, value):
    result = evaluated(text)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, value, strict=False)


def evaluated(text):
    rule = formulas.applied(f"a, i: {text}", [Name("a/b:0", "a"), Name("sum", "i")])
    return expressions.evaluated(rule, {"a": A, "i": ROWS})


UNKNOWN = """max_pool(a); reshape(a, (4, 4)); sum(a, axis=2); sum(a, which=1); matmul(a, a);
cross_entropy(1, 2); print(a); 1 / 0; 10**400 / 10**399; (-8)**0.5"""


@pytest.mark.parametrize("text", [*map(str.strip, UNKNOWN.split(";"))])
def test_what_is_not_known_is_not_evaluated(text):
    with pytest.raises(UnknownError):
        evaluated(text)


@pytest.mark.parametrize("name", ["__import__('os')", "a.T", "v1", "exp", "a if a else a", "", "1"])
def test_a_name_from_a_graph_is_only_a_name(name):
    formula = ex.add(Name(name, "t"), Name("other", "u"))
    assert expressions.evaluated(formula, {"t": np.float64(3), "u": np.float64(4)}) == 7


def test_a_tensor_that_is_called_like_a_function_or_a_number_is_written_as_a_tensor():
    formula = Call("mean", Call("exp", ex.times(Name("exp", "t"), Name("mean", "u"))))
    assert ex.text(formula) == "mean(exp(exp:0 * mean:0))"
    assert expressions.evaluated(formula, {"t": A, "u": A}) == pytest.approx(np.exp(A * A).mean())
    numbered = [ex.text(Name(name, "t")) for name in ("2", "1e5", "0.5", "x2", "2x", "a/2")]
    assert numbered == ["2:0", "1e5:0", "0.5:0", "x2", "2x", "a/2"]


def test_a_formula_that_is_too_deep_is_not_evaluated():
    deep = Name("a", "a")
    for _ in range(100_000):
        deep = Call("exp", deep)
    with pytest.raises(UnknownError):
        expressions.evaluated(deep, {"a": A})


def points(*values):
    return Points(tuple({k: np.asarray(v, float) for k, v in row.items()} for row in values), 1e-6)


X, Y = Name("x", "x"), Name("y", "read")


@pytest.mark.parametrize(
    "first, second, right",
    [
        ([2, 4], [3, 6], True),
        ([2, 4], [3, 6.001], False),  # only the second point shows it
        ([2, 4.001], [3, 6], False),
        ([[2], [4]], [[3], [6]], True),  # a dimension of 1 more
        ([[2, 4], [2, 4]], [[3, 6], [3, 6]], True),  # the same for every row
        (2, 3, False),
        ([2, np.nan], [3, np.nan], False),
        ([2, 4, 0], [3, 6, 0], False),
    ],
)
def test_a_formula_has_to_give_the_tensor_at_every_point(first, second, right):
    known = points({"x": [1, 2], "read": 2, "t": first}, {"x": [1, 2], "read": 3, "t": second})
    assert known.hold(ex.times(X, Y), "t") is right
    assert known.text(ex.times(X, Y), "t") == ("x * y" if right else "")


def test_one_point_proves_nothing_nor_does_a_value_that_is_never_a_number():
    row = {"x": [1, 2], "t": [1, 2], "n": [np.nan, np.inf]}
    assert not points(row).hold(X, "t")
    assert points(row, row).hold(X, "t")
    assert not points(row, row).hold(Name("n", "n"), "n")


def test_a_formula_without_values_is_not_printed():
    row = {"x": [1, 2], "t": [1, 2]}
    known = points(row, row)
    assert known.text(ex.times(X, Y), "t") == ""  # the value of y is not known
    assert known.text(X, "other") == ""  # nor that of what the formula is of
    assert known.text(X, "x") == ""  # a name says nothing of itself


def test_a_name_that_has_two_values_says_nothing():
    again = Name("x", "x_1")
    row = {"x": [1, 2], "t": [2, 4]}
    known = [points(*({**row, "x_1": value},) * 2) for value in ([1, 2], [1, 2.5])]
    assert [one.hold(ex.add(X, again), "t") for one in known] == [True, False]
    nan = points({"x": [1, np.nan], "x_1": [1, np.nan], "t": [2, np.nan]}, {**row, "x_1": [1, 2]})
    assert nan.hold(ex.add(X, again), "t")  # the same, also where it is no number


def test_two_tensors_with_the_same_numbers():
    known = points({"a": [[1, 2]], "b": [1, 2], "c": [2, 1]}, {"a": [[3, 4]], "b": [3, 4], "c": 1})
    assert [known.same("a", other) for other in "abcd"] == [True, True, False, False]
    ones = points({"a": [1, 1], "b": 1}, {"a": [1, 1], "b": 2})
    assert [ones.filled(name, 1) for name in "abc"] == [True, False, False]
