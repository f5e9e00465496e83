"""Evaluation: the value of a formula, and whether the graph computes the same.

A formula is evaluated as it is printed, in float64, by NumPy's rules. Only its names are replaced
by identifiers: `x * dL/d(mul)` becomes `v0 * v1`. The text is parsed, not run; only the Python
syntax in this file is allowed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflab.analysis import formula_text
from tflab.analysis.expressions import Expression, Name, collected, without_kept

Array = np.ndarray
Values = Mapping[str, Array]  # tensor, without `:0` -> its value


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
        """The formula as it is printed, or "" if it does not give this tensor at every point."""
        if isinstance(formula, Name) and formula.tensor == tensor:
            return ""  # a name alone explains nothing
        if not self.hold(formula, tensor):
            return ""
        return formula_text.text(self.simplest(formula, tensor))

    def simplest(self, formula: Expression, tensor: str) -> Expression:
        """A formula of this tensor with equal terms as one, and without `keepdims`; as it was where
        the other would not give the tensor, or not in its shape."""
        shorter = collected(formula)
        if shorter != formula and self.hold(shorter, tensor):
            formula = shorter
        flat = without_kept(formula)
        is_plainer = flat != formula and self.hold(flat, tensor) and self.fits(flat, tensor)
        return flat if is_plainer else formula

    def fits(self, formula: Expression, tensor: str) -> bool:
        """Whether a formula's value has the shape of this tensor at every point."""
        return self.everywhere(
            lambda values: evaluated(formula, values).shape == values[tensor].shape
        )

    def hold(self, formula: Expression, tensor: str) -> bool:
        """Whether a formula gives this tensor at every point, and a finite number at one of
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
        """Whether two tensors have the same numbers in the same order, whatever their shapes."""
        return self.everywhere(
            lambda values: (
                values[tensor].size == values[other].size
                and equal_within_rounding(
                    values[other].ravel(), values[tensor].ravel(), self.rounding
                )
            )
        )

    def equal(self, tensor: str, other: str) -> bool:
        """Whether two tensors have the same shape and the same numbers."""
        return self.same(tensor, other) and self.everywhere(
            lambda values: values[tensor].shape == values[other].shape
        )

    def differ(self, tensor: str, other: str) -> bool:
        """Whether two tensors are known, and differ at some point."""
        return (
            self.same(tensor, tensor) and self.same(other, other) and not self.same(tensor, other)
        )

    def filled(self, tensor: str, number: float) -> bool:
        """Whether every element of a tensor is this number."""
        return self.everywhere(lambda values: bool((values[tensor] == number).all()))

    def everywhere(self, test: Callable[[Values], bool]) -> bool:
        """Whether a test holds at every point; False if a tensor has no value."""
        try:
            return len(self.values) > 1 and all(test(values) for values in self.values)
        except KeyError:
            return False


NOWHERE = Points((), 0)


def evaluated(formula: Expression, values: Values) -> Array:
    """The value of a formula's text for these values. Raises UnknownError."""
    called: dict[str, str] = {}  # name in the formula -> identifier
    computed_values: dict[str, Array] = {}

    def identifier(name: Name) -> str:
        if name.tensor not in values:
            raise UnknownError(name.text)
        own = called.setdefault(name.text, f"v{len(called)}")
        value = computed_values.setdefault(own, values[name.tensor])
        if not np.array_equal(value, values[name.tensor], equal_nan=True):
            raise UnknownError(f"{name.text} has two values")
        return own

    return evaluate(formula_text.text(formula, identifier), computed_values)


def evaluate(text: str, values: Values) -> Array:
    """The value of an expression of identifiers. Raises UnknownError."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(value_of(ast.parse(text, mode="eval").body, values), np.float64)
    except (SyntaxError, ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        raise UnknownError(str(error)) from error
    except (TypeError, ValueError) as error:
        raise UnknownError(str(error)) from error


def value_of(node: ast.expr, values: Values) -> Any:
    """The value of a part of an expression."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.Tuple(elts=parts):
            return tuple(value_of(part, values) for part in parts)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            sides = (np.asarray(value_of(side, values), np.float64) for side in (left, right))
            return OPERATORS[type(op)](*sides)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            return COMPARISONS[type(op)](value_of(left, values), value_of(right, values)) * 1.0
        case ast.Call(func=ast.Name(id=name), args=args, keywords=options) if name in FUNCTIONS:
            options_by_name = {
                str(option.arg): value_of(option.value, values) for option in options
            }
            return FUNCTIONS[name](*(value_of(arg, values) for arg in args), **options_by_name)
    raise UnknownError(ast.unparse(node))


def equal_within_rounding(result: Array, tensor: Array, rounding: float) -> bool:
    """Whether a formula's value equals a tensor, within rounding."""
    try:
        result = fitted(result, tensor.shape)
    except ValueError:
        return False
    finite = np.abs(tensor[np.isfinite(tensor)])
    smallest = rounding / 100 * finite.max(initial=0)
    return np.allclose(result, tensor, rtol=rounding, atol=smallest, equal_nan=True)


def fitted(array: Array, shape: tuple[int, ...]) -> Array:
    """A formula's value as a tensor of this shape. In formulas, one number stands for every element
    of a larger tensor, and dimensions of 1 may be missing. Raises ValueError."""
    if squeezed(array.shape) == squeezed(shape):
        return array.reshape(shape)
    return np.broadcast_to(array, shape)


def squeezed(shape: tuple[int, ...]) -> list[int]:
    return [dim for dim in shape if dim != 1]


# The operators and functions of formulas


def size(value: Array, *axes: float) -> int:
    """The number of elements, in total or along these axes."""
    return int(np.prod(shape(value, *axes)))


def shape(value: Array, *axes: float) -> tuple[int, ...]:
    dims = np.shape(value)
    return tuple(dims[int(axis)] for axis in axes) if axes else dims


def transpose(value: Array, axes: Sequence[int] | None = None) -> Array:
    return np.transpose(value, axes)


def reshape(value: Array, dims: Any) -> Array:
    return np.reshape(value, np.asarray(dims, np.int64).ravel())


def expand_dims(value: Array, axis: float) -> Array:
    return np.expand_dims(value, int(axis))


def sum_to(value: Array, dims: Any) -> Array:
    """The sum over the axes along which an array of this shape would be broadcast."""
    value = np.asarray(value)
    goal = tuple(np.asarray(dims, np.int64).ravel())
    extra = value.ndim - len(goal)
    trailing_shape = value.shape[extra:]
    axes = [
        *range(extra),
        *(n + extra for n, dim in enumerate(goal) if dim == 1 != trailing_shape[n]),
    ]
    return np.sum(value, axis=tuple(axes)).reshape(goal)


def repeat(value: Array) -> Array:
    """One number for every element."""
    if np.size(value) != 1:
        raise ValueError("more than one number")
    return value


def softmax(value: Array) -> Array:
    powers = np.exp(value - np.max(value, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def one_hot(classes: Array, count: float) -> Array:
    return (np.asarray(classes)[..., None] == np.arange(int(count))) * 1.0


def cross_entropy(scores: Array, labels: Array) -> Array:
    """The cross entropy of each row of scores, given its class or the probabilities of all
    classes."""
    if labels.ndim == scores.ndim - 1:
        labels = one_hot(labels, scores.shape[-1])
    scores = scores - np.max(scores, axis=-1, keepdims=True)
    total = np.log(np.sum(np.exp(scores), axis=-1, keepdims=True))
    return np.sum(labels * (total - scores), axis=-1)


OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
COMPARISONS: dict[type, Callable[..., Any]] = {
    ast.Gt: np.greater,
    ast.Lt: np.less,
    ast.GtE: np.greater_equal,
    ast.LtE: np.less_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (np.exp, np.log, np.tanh, np.sqrt, np.sin, np.cos, np.sign)},
    **{f.__name__: f for f in (np.floor, np.ceil, np.maximum, np.minimum, np.matmul, np.where)},
    **{f.__name__: f for f in (np.log1p, np.expm1, size, shape, transpose, reshape)},
    **{f.__name__: f for f in (repeat, softmax, one_hot, cross_entropy)},
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
