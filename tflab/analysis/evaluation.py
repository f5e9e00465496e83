"""Evaluation: the value of a formula, and whether the graph computes the same.

A formula is evaluated in float64 by NumPy's rules. Only the functions of `expressions` exist in it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

import numpy as np

from tflab.analysis import expressions as ex
from tflab.analysis.expressions import FUNCTIONS, Array, Expression, Name

Values = Mapping[str, Array]  # tensor, without `:0` -> its value
GLOBALS: dict[str, object] = FUNCTIONS | {"__builtins__": {}}
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
        """Return whether a test holds at every point; False for one point, or without a value."""
        try:
            return len(self.values) > 1 and all(test(values) for values in self.values)
        except KeyError:
            return False


NOWHERE = Points((), 0)


class Computable(ast.NodeTransformer):
    """Makes numbers floats, and comparisons 0 or 1, as they are in tensors."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(float(ex.number_of(node) or 0))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return ast.BinOp(node, ast.Mult(), ast.Constant(1.0))

    def visit_Tuple(self, node: ast.AST) -> ast.AST:
        return node

    visit_keyword = visit_Tuple


@lru_cache(1)  # a formula is evaluated at several points, one after the other
def compiled(formula: Expression) -> CodeType:
    tree = ast.Expression(Computable().visit(ex.copied(formula)))
    return compile(ast.fix_missing_locations(tree), "formula", "eval")


def evaluated(formula: Expression, values: Values) -> Array:
    """Return the value of a formula for these values. Raises UnknownError."""
    named: dict[str, Array] = {}
    try:
        for part in ast.walk(formula):
            if isinstance(part, Name):
                value = named.setdefault(part.id, values[part.tensor])
                if not np.array_equal(value, values[part.tensor], equal_nan=True):
                    raise UnknownError(f"{part.id} stands for two different tensors")
        with np.errstate(all="ignore"):
            return np.asarray(eval(compiled(formula), GLOBALS, named), np.float64)
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
    if finite.size == tensor.size:  # nearly always, and this is quicker
        return bool((np.abs(result - tensor) <= smallest + rounding * np.abs(tensor)).all())
    return np.allclose(result, tensor, rtol=rounding, atol=smallest, equal_nan=True)


def fitted(array: Array, shape: tuple[int, ...]) -> Array:
    """Return a formula's value as a tensor of this shape. In formulas, one number stands for every
    element of a larger tensor, and dimensions of 1 may be missing. Raises ValueError."""
    if squeezed(array.shape) == squeezed(shape):
        return array.reshape(shape)
    return np.broadcast_to(array, shape)


def squeezed(shape: tuple[int, ...]) -> list[int]:
    return [dim for dim in shape if dim != 1]
