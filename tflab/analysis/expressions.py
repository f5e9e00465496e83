"""Expressions: what nodes compute, as trees of Python's `ast` that are printed as formulas.

Products are kept flat, with their number in front, so that `2 * (1 / n * a)` becomes `2 * a / n`.
`a + (b - c)` becomes `a + b - c`. Nothing else is rearranged. Trees share their parts: no function
changes a tree that it is given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd
from types import CodeType
from typing import NamedTuple, TypeGuard

import numpy as np

from tflab.records.graph import Shape

Expression = ast.expr
Array = np.ndarray

NUMBER = re.compile(r"[\d.]+(e\d+)?")


class Name(ast.Name):
    """A value that has a name: a forward node, or a gradient such as `dL/d(mul)`."""

    def __init__(self, text: str, tensor: str = "") -> None:
        # A tensor called `exp` is no function, and one called `2` is no number
        own = f"{text}:0" if text in FUNCTIONS or NUMBER.fullmatch(text) else text
        super().__init__(id=own, ctx=ast.Load())
        self.tensor = tensor  # that has the value, without `:0`


class Call(ast.Call):
    """A call of a function. `shape` is the shape of the tensor in `size(...)` and `shape(...)`."""

    def __init__(
        self,
        function: str,
        *args: Expression,
        shape: Shape = None,
        options: Sequence[ast.keyword] = (),
    ) -> None:
        called = ast.Name(function, ast.Load())
        super().__init__(func=called, args=[*args], keywords=[*options])
        self.function = function
        self.shape = shape


def calls(value: Expression, function: str) -> TypeGuard[Call]:
    return isinstance(value, Call) and value.function == function


def dims(values: Sequence[int]) -> Expression:
    return ast.Tuple([*map(number, values)], ast.Load())


def number(value: float) -> Expression:
    """Return a number with the fewest digits that distinguish a float32 from its neighbours."""
    if value < 0:
        return ast.UnaryOp(ast.USub(), number(-value))
    if float(value).is_integer() and value < 2**53:
        return ast.Constant(int(value))
    with np.errstate(all="ignore"):
        short = float(str(np.float32(value)))
    return ast.Constant(short if abs(short - value) <= value * 1e-6 else float(value))


def number_of(value: Expression) -> float | None:
    """Return the value of a number; None for other expressions."""
    if isinstance(value, ast.UnaryOp):
        inner = number_of(value.operand)
        return None if inner is None else -inner
    known = value.value if isinstance(value, ast.Constant) else None
    return known if isinstance(known, int | float) else None


# Sums


def add(left: Expression, right: Expression) -> Expression:
    one, other = number_of(left), number_of(right)
    if one is not None and other is not None:
        return number(one + other)
    if one == 0 or other == 0:
        return right if one == 0 else left
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add | ast.Sub):
        return ast.BinOp(add(left, right.left), right.op, right.right)
    if factors(right).number < 0:
        return ast.BinOp(left, ast.Sub(), negative(right))
    return ast.BinOp(left, ast.Add(), right)


# Products


class Product(NamedTuple):
    """`number * over[0] * over[1] / divisor / under[0]`."""

    number: float
    over: tuple[Expression, ...] = ()
    divisor: float = 1
    under: tuple[Expression, ...] = ()


def factors(value: Expression) -> Product:
    """Return any expression as a product."""
    known = number_of(value)
    match value:
        case _ if known is not None:
            return Product(known)
        case ast.UnaryOp(operand=operand):
            inner = factors(operand)
            return inner._replace(number=-inner.number)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            one, other = factors(left), factors(right)
            if isinstance(op, ast.Div):
                other = Product(other.divisor, other.under, other.number, other.over)
            return Product(
                one.number * other.number,
                one.over + other.over,
                one.divisor * other.divisor,
                one.under + other.under,
            )
    return Product(1, (value,))


def product(parts: Product) -> Expression:
    """Return a product in its simplest form, which may be a single factor."""
    count, over, divisor, under = parts
    if count == 0:
        return ast.Constant(0)
    if divisor < 0:
        count, divisor = -count, -divisor
    if float(count).is_integer() and float(divisor).is_integer():
        common = gcd(int(count), int(divisor))
        count, divisor = count / common, divisor / common
    if abs(count) != 1 or not over:
        over = (number(abs(count)), *over)
    first, *others = over
    value = ast.UnaryOp(ast.USub(), first) if count < 0 else first
    value = reduce(lambda left, factor: ast.BinOp(left, ast.Mult(), factor), others, value)
    under = under if divisor == 1 else (number(divisor), *under)
    return reduce(lambda left, factor: ast.BinOp(left, ast.Div(), factor), under, value)


def times(left: Expression, right: Expression) -> Expression:
    return product(factors(ast.BinOp(left, ast.Mult(), right)))


def divide(left: Expression, right: Expression) -> Expression:
    return product(factors(ast.BinOp(left, ast.Div(), right)))


def negative(value: Expression) -> Expression:
    return product(factors(ast.UnaryOp(ast.USub(), value)))


# Other forms of the same expression

BUILDERS: dict[type, Callable[[Expression, Expression], Expression]] = {
    ast.Add: add,
    ast.Sub: lambda left, right: add(left, negative(right)),
    ast.Mult: times,
    ast.Div: divide,
    ast.Pow: lambda base, by: base if number_of(by) == 1 else ast.BinOp(base, ast.Pow(), by),
}


def rebuilt(value: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the expression with its arguments changed, in its simplest form."""
    match value:
        case ast.BinOp(left=left, op=op, right=right):
            build = BUILDERS.get(type(op))
            one, other = change(left), change(right)
            return build(one, other) if build else ast.BinOp(one, op, other)
        case ast.UnaryOp(operand=operand):
            return negative(change(operand))
        case ast.Compare(left=left, ops=ops, comparators=others):
            return ast.Compare(change(left), ops, [*map(change, others)])
        case ast.Call(func=ast.Name(id=function), args=args, keywords=options):
            shape = value.shape if isinstance(value, Call) else None
            return Call(function, *map(change, args), shape=shape, options=options)
    return value


def substituted(rule: Expression, args: Mapping[str, Expression]) -> Expression:
    """Return the body of a rule, with these expressions in the place of its parameters."""
    if isinstance(rule, ast.Name):
        return args[rule.id]
    return rebuilt(rule, lambda part: substituted(part, args))


def total(value: Expression, shape: Shape) -> Expression:
    """Return the sum of a value over all elements of a tensor of this shape: a mean if the value is
    divided by their number. Dimensions known only at run time are assumed to be equal."""
    parts = factors(value)
    under = tuple(f for f in parts.under if not (calls(f, "size") and f.shape == shape))
    if len(under) == len(parts.under):
        return Call("sum", value)
    rest = product(parts._replace(under=under))
    return Call("mean", rest) if tensors(rest) else rest


# The text, length and tensors of an expression


def text(value: Expression) -> str:
    """Return a formula as it is printed."""
    return ast.unparse(copied(value)).replace(" ** ", "**")


def copied(value: Expression) -> Expression:
    """Return the tree without shared parts, which `unparse` would all put in parentheses alike."""
    return rebuilt(value, copied)


def length(value: Expression) -> int:
    """Return the number of names, numbers, functions and sums in an expression."""
    return sum(
        isinstance(part, Name | ast.Constant | ast.Call | ast.Compare)
        or (isinstance(part, ast.BinOp) and not isinstance(part.op, ast.Mult | ast.Div))
        for part in ast.walk(value)
    )


def tensors(value: Expression) -> set[str]:
    """Return the tensors that the names in an expression stand for."""
    return {part.tensor for part in ast.walk(value) if isinstance(part, Name)}


# The functions of formulas


def sum_to(value: Array, dims: object) -> Array:
    """Return the sum over the axes along which an array of this shape would be broadcast."""
    goal = np.asarray(dims, np.int64).ravel()
    padded = np.append(np.ones(np.ndim(value) - len(goal)), goal)
    return np.asarray(np.sum(value, axis=tuple(np.flatnonzero(padded == 1))).reshape(goal))


def softmax(value: Array) -> Array:
    powers = np.exp(value - np.max(value, axis=-1, keepdims=True))
    return np.asarray(powers / np.sum(powers, axis=-1, keepdims=True))


def one_hot(classes: Array, count: float) -> Array:
    return np.asarray(np.asarray(classes)[..., None] == np.arange(int(count)), np.float64)


def cross_entropy(scores: Array, labels: Array) -> Array:
    """Return each row's cross entropy, given its class or the probabilities of all classes."""
    if labels.ndim == scores.ndim - 1:
        labels = one_hot(labels, scores.shape[-1])
    scores = scores - np.max(scores, axis=-1, keepdims=True)
    total = np.log(np.sum(np.exp(scores), axis=-1, keepdims=True))
    return np.asarray(np.sum(labels * (total - scores), axis=-1))


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{
        name: getattr(np, name)
        for name in (
            *("abs", "ceil", "cos", "exp", "expm1", "floor", "log", "log1p", "matmul", "max"),
            *("maximum", "mean", "min", "minimum", "prod", "sign", "sin", "sqrt", "sum", "tanh"),
            *("transpose", "where"),
        )
    },
    **{own.__name__: own for own in (cross_entropy, one_hot, softmax, sum_to)},
    # In total, or along these axes
    "shape": lambda v, *axes: tuple(np.shape(v)[int(axis)] for axis in axes) or np.shape(v),
    "size": lambda v, *axes: np.prod([np.shape(v)[int(axis)] for axis in axes] or np.shape(v)),
    "expand_dims": lambda value, axis: np.expand_dims(value, int(axis)),
    "reshape": lambda value, dims: np.reshape(value, np.asarray(dims, np.int64).ravel()),
    "sigmoid": lambda value: 1 / (1 + np.exp(-value)),
    "softplus": lambda value: np.logaddexp(0, value),
    "relu": lambda value: np.maximum(value, 0),
}


# Evaluation
#
# A formula is evaluated in float64 by NumPy's rules. It can call only the functions in FUNCTIONS.

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
    """The values that the runtime computed at several points, each with other variables and another
    batch. A formula that is right by accident at one point is wrong at the next one."""

    values: tuple[Values, ...]
    rounding: float  # allowed relative difference

    def text(self, formula: Expression, tensor: str) -> str:
        """Return the formula as printed; "" if it does not give this tensor at every point."""
        explains_nothing = isinstance(formula, Name) and formula.tensor == tensor
        return text(formula) if self.hold(formula, tensor) and not explains_nothing else ""

    def hold(self, formula: Expression, tensor: str) -> bool:
        """Return whether a formula gives this tensor at every point, one of them a finite one."""
        try:
            return self.everywhere(
                lambda values: equal_within_rounding(
                    evaluated(formula, values), values[tensor], self.rounding
                )
            ) and any(np.isfinite(values[tensor]).any() for values in self.values)
        except UnknownError:
            return False

    def same(self, tensor: str, other: str) -> bool:
        """Return whether two tensors have the same numbers in the same order; shapes may differ."""
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
        """Return whether a test holds at every point. It does not if a value is missing, or if
        there are fewer than two points."""
        try:
            return len(self.values) > 1 and all(test(values) for values in self.values)
        except KeyError:
            return False


NOWHERE = Points((), 0)


class Computable(ast.NodeTransformer):
    """Turns numbers into floats, and comparisons into 0 or 1, as they are in tensors."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(float(number_of(node) or 0))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        return ast.BinOp(node, ast.Mult(), ast.Constant(1.0))

    def visit_Tuple(self, node: ast.AST) -> ast.AST:
        return node

    visit_keyword = visit_Tuple


@lru_cache(1)  # a formula is evaluated at several points, one after the other
def compiled(formula: Expression) -> CodeType:
    tree = ast.Expression(Computable().visit(copied(formula)))
    return compile(ast.fix_missing_locations(tree), "formula", "eval")


def evaluated(formula: Expression, values: Values) -> Array:
    """Return the value of a formula, as float64. Raises UnknownError if it has none."""
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
    if [dim for dim in array.shape if dim != 1] == [dim for dim in shape if dim != 1]:
        return array.reshape(shape)
    return np.broadcast_to(array, shape)
