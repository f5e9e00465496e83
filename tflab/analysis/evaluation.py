"""Evaluation: the value of a formula, and whether the graph computes the same.

A formula is compiled as it is printed, and evaluated in float64 by NumPy's rules. Only the
functions in this file exist there, and an identifier stands for each name: `x * dL/d(mul)` becomes
`v0 * v1`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflab.analysis import expressions as ex
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
        """Return the formula as it is printed, or "" if it does not give this tensor at every
        point."""
        if isinstance(formula, Name) and formula.tensor == tensor:
            return ""  # a name alone explains nothing
        if not self.hold(formula, tensor):
            return ""
        return ex.text(self.simplest(formula, tensor))

    def simplest(self, formula: Expression, tensor: str) -> Expression:
        """Return a formula of this tensor with equal terms as one, and without `keepdims`; as it
        was where the other would not give the tensor, or not in its shape."""
        shorter = collected(formula)
        if ex.text(shorter) != ex.text(formula) and self.hold(shorter, tensor):
            formula = shorter
        flat = without_kept(formula)
        if ex.text(flat) == ex.text(formula):
            return formula
        return flat if self.hold(flat, tensor) and self.fits(flat, tensor) else formula

    def fits(self, formula: Expression, tensor: str) -> bool:
        """Return whether a formula's value has the shape of this tensor at every point."""
        return self.everywhere(
            lambda values: evaluated(formula, values).shape == values[tensor].shape
        )

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

    def differ(self, tensor: str, other: str) -> bool:
        """Return whether two tensors are known, and differ at some point."""
        return (
            self.same(tensor, tensor) and self.same(other, other) and not self.same(tensor, other)
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
    names = Identifiers()
    try:
        tree = ast.Expression(names.visit(ex.without_ones(formula)))
        code = compile(ast.fix_missing_locations(tree), "<formula>", "eval")
        known = {}
        for name, own in names.identifiers.items():
            known[own], *others = (values[tensor] for tensor in names.tensors[name])
            if not all(np.array_equal(known[own], other, equal_nan=True) for other in others):
                raise UnknownError(f"{name} has two values")
        with np.errstate(all="ignore"):
            return np.asarray(eval(code, {"__builtins__": {}, **FUNCTIONS}, known), np.float64)
    except (NameError, ArithmeticError, AttributeError, LookupError, RecursionError) as error:
        raise UnknownError(str(error)) from error
    except (TypeError, ValueError) as error:
        raise UnknownError(str(error)) from error


class Identifiers(ast.NodeTransformer):
    """Puts an identifier in the place of each name of a formula, which is changed by that. Numbers
    become floats, and comparisons give 0 or 1, as tensors do."""

    def __init__(self) -> None:
        self.identifiers: dict[str, str] = {}
        self.tensors: dict[str, list[str]] = {}  # name -> the tensors that have it

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node, Name):
            return node  # of a function
        self.tensors.setdefault(node.id, []).append(node.tensor)
        own = self.identifiers.setdefault(node.id, f"v{len(self.identifiers)}")
        return ast.Name(own, ast.Load())

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(float(ex.number_of(node) or 0))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return ast.BinOp(node, ast.Mult(), ast.Constant(1.0))

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return node  # a shape: whole numbers

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        return node


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


def transpose(value: Array, axes: Sequence[int] | None = None) -> Array:
    return np.transpose(value, axes)


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


def repeat(value: Array) -> Array:
    """Return one number for every element."""
    if np.size(value) != 1:
        raise ValueError("more than one number")
    return value


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
