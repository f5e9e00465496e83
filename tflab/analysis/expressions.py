"""Expressions: what nodes compute, as trees that can be printed as formulas.

A formula is a tree of names, numbers, products, and operations. Products are kept flat, with their
number in front, so that `2 * (1 / n * a)` reads `2 * a / n`; nothing else is rearranged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd, isfinite
from typing import Any, TypeGuard

from tflab.records.graph import Shape


@dataclass(frozen=True)
class Name:
    """A value that has a name: a forward node, or a gradient such as `dL/d(mul)`."""

    text: str
    shape: Shape = field(default=None, compare=False, repr=False)
    # The tensor that has the value, without `:0`
    tensor: str = field(default="", compare=False, repr=False)
    size: int = 1


@dataclass(frozen=True)
class Number:
    value: float
    size: int = 1


@dataclass(frozen=True)
class Product:
    """`number * over[0] * over[1] / divisor / under[0]`."""

    number: float
    over: tuple[Expression, ...]
    divisor: float
    under: tuple[Expression, ...]

    @property
    def size(self) -> int:
        return sum(factor.size for factor in (*self.over, *self.under)) + 1


@dataclass(frozen=True)
class Operation:
    """An op of the arguments; `about` has its other parameters: the axes of a sum as text, the
    shape of a tensor of ones."""

    op: str
    args: tuple[Expression, ...]
    about: Any = None
    size: int = 1


Expression = Name | Number | Product | Operation


def operation(op: str, *args: Expression, about: Any = None) -> Expression:
    return Operation(op, args, about, 1 + sum(arg.size for arg in args))


def add(left: Expression, right: Expression) -> Expression:
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value + right.value)
    if left == Number(0):
        return right
    return left if right == Number(0) else operation("Add", left, right)


def subtract(left: Expression, right: Expression) -> Expression:
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value - right.value)
    if right == Number(0):
        return left
    return negative(right) if left == Number(0) else operation("Sub", left, right)


def negative(value: Expression) -> Expression:
    return times(Number(-1), value)


def times(left: Expression, right: Expression) -> Expression:
    one, other = factors(left), factors(right)
    return product(
        one.number * other.number,
        (*one.over, *other.over),
        one.divisor * other.divisor,
        (*one.under, *other.under),
    )


def divide(left: Expression, right: Expression) -> Expression:
    one, other = factors(left), factors(right)
    if other.number == 0:
        return operation("Div", left, right)
    return product(
        one.number * other.divisor,
        (*one.over, *other.under),
        one.divisor * other.number,
        (*one.under, *other.over),
    )


def power(value: Expression, exponent: Expression) -> Expression:
    return value if exponent == Number(1) else operation("Pow", value, exponent)


def factors(value: Expression) -> Product:
    """Any expression as a product."""
    if isinstance(value, Product):
        return value
    if isinstance(value, Number):
        return Product(value.value, (), 1, ())
    return Product(1, (value,), 1, ())


def product(
    number: float,
    over: tuple[Expression, ...],
    divisor: float,
    under: tuple[Expression, ...],
) -> Expression:
    """A product in its simplest form, which may be a single factor."""
    if number == 0:
        return Number(0)
    if is_whole(number) and is_whole(divisor):
        common = gcd(int(number), int(divisor)) * (-1 if divisor < 0 else 1)
        number, divisor = number / common, divisor / common
    if not under and divisor == 1:
        if not over:
            return Number(number)
        if number == 1 and len(over) == 1:
            return over[0]
    return Product(number, over, divisor, under)


def is_whole(number: float) -> bool:
    return isfinite(number) and number == int(number)


def collected(value: Expression) -> Expression:
    """The same with equal terms of a sum as one: `2 * a + b` for `a + b + a`."""
    if isinstance(value, Product):
        over, under = (tuple(map(collected, part)) for part in (value.over, value.under))
        return product(value.number, over, value.divisor, under)
    if not isinstance(value, Operation):
        return value
    value = Operation(value.op, tuple(map(collected, value.args)), value.about, value.size)
    listed = [factors(term) for term in terms(value)]
    counts: dict[object, Product] = {}
    for term in listed:
        key = tuple(sorted(map(repr, term.over))), tuple(sorted(map(repr, term.under)))
        same = counts.get(key, Product(0, term.over, 1, term.under))
        number = same.number * term.divisor + term.number * same.divisor
        counts[key] = Product(number, term.over, same.divisor * term.divisor, term.under)
    if len(counts) == len(listed):
        return value
    rest = [product(t.number, t.over, t.divisor, t.under) for t in counts.values() if t.number]
    return operation("Add", *rest) if len(rest) > 1 else rest[0] if rest else Number(0)


def terms(value: Expression) -> Iterator[Expression]:
    """The terms of a sum or a difference, at all depths."""
    if not isinstance(value, Operation) or value.op not in ("Add", "Sub"):
        yield value
        return
    for place, arg in enumerate(value.args):
        for term in terms(arg):
            yield negative(term) if place and value.op == "Sub" else term


KEPT = "keepdims=True"


def without_kept(value: Expression) -> Expression:
    """The same, but reductions do not keep the dimensions over which they go."""
    if isinstance(value, Product):
        over, under = (tuple(map(without_kept, part)) for part in (value.over, value.under))
        return product(value.number, over, value.divisor, under)
    if not isinstance(value, Operation):
        return value
    about = value.about
    if isinstance(about, tuple):
        about = tuple(option for option in about if option != KEPT)
    return Operation(value.op, tuple(map(without_kept, value.args)), about, value.size)


def repeated(value: Expression, count: Expression, shape: Shape) -> Expression:
    """One number, repeated `count` times. The text omits the repetition, but a sum counts it."""
    return times(value, operation("Ones", count, about=shape)) if shape != () else value


def total(value: Expression, shape: Shape) -> Expression:
    """The sum over all elements of a tensor of this shape; a mean if each of them is divided by
    their number. Dimensions that are known only at run time are assumed to be equal."""
    parts = factors(value)
    over = [factor for factor in parts.over if not is_ones(factor)]
    under = [factor for factor in parts.under if not is_size(factor, shape)]
    mean = len(under) < len(parts.under)
    rest = product(parts.number, tuple(over), parts.divisor, tuple(under))
    if any(name.shape != () for name in spanning(rest)) or not shape:
        return operation("Mean" if mean else "Sum", rest)
    if mean or len(over) == len(parts.over):  # all elements are equal, and so is their mean
        return rest if mean else operation("Sum", value)
    return times(next(factor for factor in parts.over if is_ones(factor)).args[0], rest)


def is_ones(value: Expression) -> TypeGuard[Operation]:
    return isinstance(value, Operation) and value.op == "Ones"


def is_size(value: Expression, shape: Shape) -> bool:
    return isinstance(value, Operation) and value.op == "Size" and value.about == shape


def spanning(value: Expression) -> set[Name]:
    """The names in an expression that decide its shape: not those inside sums over all elements."""
    if isinstance(value, Operation):
        is_full_reduction = (
            value.op in ("Sum", "Mean", "Max", "Min", "Prod") and value.about is None
        )
        if is_full_reduction or value.op in ("Size", "Shape", "Ones"):
            return set()
    return set().union(*map(spanning, parts_of(value))) | names(value, deep=False)


def names(value: Expression, deep: bool = True) -> set[Name]:
    """All names in an expression, or only those at its top level."""
    if isinstance(value, Name):
        return {value}
    return set().union(*map(names, parts_of(value))) if deep else set()


def tensors(value: Expression) -> set[str]:
    """The tensors that the names in an expression stand for."""
    if isinstance(value, Name):
        return {value.tensor}
    return set().union(*map(tensors, parts_of(value)))


def parts_of(value: Expression) -> tuple[Expression, ...]:
    if isinstance(value, Product):
        return (*value.over, *value.under)
    return value.args if isinstance(value, Operation) else ()
