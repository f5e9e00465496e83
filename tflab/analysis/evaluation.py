"""Evaluation: the value of a formula, and whether the graph computes the same.

A formula is evaluated in float64 by NumPy's rules. Only the functions and operators in this file
exist in formulas.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression, Name

Array = np.ndarray
Values = Mapping[str, Array]  # tensor, without `:0` -> its value
FAILED = (
    *(ArithmeticError, AttributeError, LookupError, NameError, RecursionError),
    *(TypeError, ValueError),
)


class UnknownError(Exception):
    """A formula that cannot be evaluated: a part of it has no rule, or a name has no value."""


@dataclass(frozen=True)
class Points:
    """The values that the runtime computed, at several points with other variables and another
    batch.

    A formula that is right by accident at one point (variables of zeros, a batch of one row) is
    wrong at the next one.
    """

    values: tuple[Values, ...]
    rounding: float  # allowed relative difference

    def text(self, formula: Expression, tensor: str) -> str:
        """Return the formula as it is printed, or "" if it does not give this tensor at every
        point."""
        explains_nothing = isinstance(formula, Name) and formula.tensor == tensor
        return ex.text(formula) if self.hold(formula, tensor) and not explains_nothing else ""

    def hold(self, formula: Expression, tensor: str) -> bool:
        """Return whether a formula gives this tensor at every point, and a finite number at one of
        them."""
        try:
            return self.everywhere(
                lambda values: equal_within_rounding(
                    evaluated(formula, values), values[tensor], self.rounding
                )
            ) and any(np.isfinite(values[tensor]).any() for values in self.values)
        except UnknownError:
            return False

    def same(self, tensor: str, other: str) -> bool:
        """Return whether two tensors have the same numbers in the same order, whatever their
        shapes."""
        return self.everywhere(
            lambda values: (
                values[tensor].size == values[other].size
                and equal_within_rounding(
                    values[other].ravel(), values[tensor].ravel(), self.rounding
                )
            )
        )

    def filled(self, tensor: str, number: float) -> bool:
        """Return whether every element of a tensor is this number."""
        return self.everywhere(lambda values: bool((values[tensor] == number).all()))

    def everywhere(self, test: Callable[[Values], bool]) -> bool:
        """Return whether a test holds at every point; False if a tensor has no value."""
        try:
            return len(self.values) > 1 and all(test(values) for values in self.values)
        except KeyError:
            return False


NOWHERE = Points((), 0)


def evaluated(formula: Expression, values: Values) -> Array:
    """Return the value of a formula for these values. Raises UnknownError."""
    named: dict[str, Array] = {}  # a name that stands for two different tensors says nothing

    def value_of(part: Expression) -> Any:
        match part:
            case Name():
                value = named.setdefault(part.id, values[part.tensor])
                if np.array_equal(value, values[part.tensor], equal_nan=True):
                    return value
            case ast.Constant():
                return float(ex.number_of(part) or 0)
            case ast.Tuple():
                return ast.literal_eval(part)
            case ast.UnaryOp(operand=operand):
                return -value_of(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](value_of(left), value_of(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):  # 0 or 1, as a tensor
                return OPERATORS[type(op)](value_of(left), value_of(right)) * 1.0
            case ast.Call(func=ast.Name(id=function), args=args, keywords=keywords):
                options = {str(one.arg): ast.literal_eval(one.value) for one in keywords}
                return FUNCTIONS[function](*map(value_of, args), **options)
        raise UnknownError(ast.dump(part))

    try:
        with np.errstate(all="ignore"):
            return np.asarray(value_of(formula), np.float64)
    except FAILED as error:
        raise UnknownError(str(error)) from error


def equal_within_rounding(result: Array, tensor: Array, rounding: float) -> bool:
    """Return whether a formula's value equals a tensor, within rounding."""
    try:
        result = fitted(result, tensor.shape)
    except ValueError:
        return False
    finite = np.abs(tensor[np.isfinite(tensor)])
    smallest = rounding / 100 * finite.max(initial=0)
    return np.allclose(result, tensor, rtol=rounding, atol=smallest, equal_nan=True)


def fitted(array: Array, shape: tuple[int, ...]) -> Array:
    """Return a formula's value as a tensor of this shape. In formulas, one number stands for every
    element of a larger tensor, and dimensions of 1 may be missing. Raises ValueError."""
    if squeezed(array.shape) == squeezed(shape):
        return array.reshape(shape)
    return np.broadcast_to(array, shape)


def squeezed(shape: tuple[int, ...]) -> list[int]:
    return [dim for dim in shape if dim != 1]


# The operators and functions of formulas


def size(value: Array, *axes: float) -> int:
    """Return the number of elements, in total or along these axes."""
    return int(np.prod(shape(value, *axes)))


def shape(value: Array, *axes: float) -> tuple[int, ...]:
    dims = np.shape(value)
    return tuple(dims[int(axis)] for axis in axes) if axes else dims


def reshape(value: Array, dims: Any) -> Array:
    return np.reshape(value, np.asarray(dims, np.int64).ravel())


def expand_dims(value: Array, axis: float) -> Array:
    return np.expand_dims(value, int(axis))


def sum_to(value: Array, dims: Any) -> Array:
    """Return the sum over the axes along which an array of this shape would be broadcast."""
    value = np.asarray(value)
    goal = tuple(np.asarray(dims, np.int64).ravel())
    extra = value.ndim - len(goal)
    trailing_shape = value.shape[extra:]
    axes = [
        *range(extra),
        *(n + extra for n, dim in enumerate(goal) if dim == 1 != trailing_shape[n]),
    ]
    return np.asarray(np.sum(value, axis=tuple(axes)).reshape(goal))


def softmax(value: Array) -> Array:
    powers = np.exp(value - np.max(value, axis=-1, keepdims=True))
    return np.asarray(powers / np.sum(powers, axis=-1, keepdims=True))


def one_hot(classes: Array, count: float) -> Array:
    return np.asarray(np.asarray(classes)[..., None] == np.arange(int(count)), np.float64)


def cross_entropy(scores: Array, labels: Array) -> Array:
    """Return the cross entropy of each row of scores, given its class or the probabilities of all
    classes."""
    if labels.ndim == scores.ndim - 1:
        labels = one_hot(labels, scores.shape[-1])
    scores = scores - np.max(scores, axis=-1, keepdims=True)
    total = np.log(np.sum(np.exp(scores), axis=-1, keepdims=True))
    return np.asarray(np.sum(labels * (total - scores), axis=-1))


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (np.exp, np.log, np.tanh, np.sqrt, np.sin, np.cos, np.sign)},
    **{f.__name__: f for f in (np.floor, np.ceil, np.maximum, np.minimum, np.matmul, np.where)},
    **{f.__name__: f for f in (np.log1p, np.expm1, size, shape, np.transpose, reshape)},
    **{f.__name__: f for f in (softmax, one_hot, cross_entropy)},
    **{f.__name__: f for f in (expand_dims, sum_to)},
    "abs": np.abs,
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "sigmoid": lambda value: 1 / (1 + np.exp(-value)),
    "softplus": lambda value: np.logaddexp(0, value),
    "relu": lambda value: np.maximum(value, 0),
}
