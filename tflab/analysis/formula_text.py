"""Formula text: the text of an expression, with as few parentheses as possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tflab.analysis.expressions import (
    Expression,
    Name,
    Number,
    Operation,
    Product,
    is_ones,
    is_whole,
)

SUMS = 1  # precedence: a sum within a product needs parentheses
PRODUCTS = 2
POWERS = 3
ATOMS = 4
COMPARISONS = 0
INFIX = {  # op -> its sign and precedence
    "Add": (" + ", SUMS),
    "Sub": (" - ", SUMS),
    "Mod": (" % ", PRODUCTS),
    "FloorDiv": (" // ", PRODUCTS),
    "Div": (" / ", PRODUCTS),
    "Greater": (" > ", COMPARISONS),
    "GreaterEqual": (" >= ", COMPARISONS),
    "Less": (" < ", COMPARISONS),
    "LessEqual": (" <= ", COMPARISONS),
    "Equal": (" == ", COMPARISONS),
    "NotEqual": (" != ", COMPARISONS),
}
FUNCTIONS = {"OneHot": "one_hot", "CrossEntropy": "cross_entropy", "SumTo": "sum_to"}

Called = Callable[[Name], str]


def own_name(name: Name) -> str:
    return name.text


def text(value: Expression, called: Called = own_name) -> str:
    """The text of a formula; `called` maps each name to the text that stands for it."""
    return text_and_precedence(value, called)[0]


def text_and_precedence(value: Expression, called: Called) -> tuple[str, int]:
    """The text of an expression, and its precedence."""
    if isinstance(value, Name):
        return called(value), ATOMS
    if isinstance(value, Number):
        return number(value.value), ATOMS if value.value >= 0 else SUMS
    if isinstance(value, Product):
        return fraction(value, called), SUMS if value.number < 0 else PRODUCTS
    if value.op == "Ones":
        return "1", ATOMS
    if value.op == "Tuple":
        return f"({', '.join(map(str, value.about))}{',' * (len(value.about) == 1)})", ATOMS
    if value.op in INFIX:
        return infix(value, called), INFIX[value.op][1]
    if value.op == "Pow":
        base, exponent = (operand(arg, ATOMS, called) for arg in value.args)
        return f"{base}**{exponent}", POWERS
    options = value.about if isinstance(value.about, tuple) and value.op not in UNWRITTEN else ()
    arguments = ", ".join((*map(partial(text, called=called), value.args), *options))
    return f"{FUNCTIONS.get(value.op, value.op.lower())}({arguments})", ATOMS


UNWRITTEN = ("Size", "Shape")  # their parameters are not printed


def operand(value: Expression, precedence: int, called: Called) -> str:
    content, inner_precedence = text_and_precedence(value, called)
    return content if inner_precedence >= precedence else f"({content})"


def infix(value: Operation, called: Called) -> str:
    """A sum of many terms; a term that is subtracted, or has a negative number, gets a minus."""
    sign, own_precedence = INFIX[value.op]
    content = operand(
        value.args[0], SUMS if own_precedence == COMPARISONS else own_precedence, called
    )
    for arg in value.args[1:]:
        if value.op == "Add" and isinstance(arg, Product) and arg.number < 0:
            content += f" - {operand(replace(arg, number=-arg.number), PRODUCTS, called)}"
        else:
            least = own_precedence + 1 if value.op != "Add" else SUMS
            content += sign + operand(arg, least, called)
    return content


def fraction(value: Product, called: Called) -> str:
    sign = "-" if value.number < 0 else ""
    over = [operand(factor, PRODUCTS, called) for factor in value.over if not is_ones(factor)]
    if abs(value.number) != 1 or not over:
        over.insert(0, number(abs(value.number)))
    under = [operand(factor, POWERS, called) for factor in value.under]
    if value.divisor != 1:
        under.insert(0, number(value.divisor))
    return sign + " / ".join((" * ".join(over), *under))


def number(value: float) -> str:
    """The fewest digits that distinguish a float32 from its neighbours."""
    if is_whole(value) and abs(value) < 2**53:
        return str(int(value))
    import numpy as np  # here, because `--help` does not need it

    with np.errstate(all="ignore"):
        short = np.float32(value)
    return str(short) if abs(float(short) - value) <= abs(value) * 1e-7 else repr(float(value))
