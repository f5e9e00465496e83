"""Formula text: an expression as one reads it, with no more parentheses than it takes."""

from __future__ import annotations

from dataclasses import replace

from tflab.analysis.expressions import Expression, Name, Number, Operation, Product, is_ones

INFIX = {"Add": " + ", "Sub": " - ", "Greater": " > "}
FUNCTIONS = {  # op -> its name in formulas; every other op keeps its own
    **{op: op.lower() for op in ("Sum", "Mean", "Size", "Exp", "Log", "Tanh", "Sqrt", "Sigmoid")},
    **{op: op.lower() for op in ("Softmax", "Relu", "MatMul", "Transpose", "Abs", "Sin", "Cos")},
    **{op: op.lower() for op in ("Unbroadcast", "Reshape", "Shape")},
    "OneHot": "one_hot",
    "CrossEntropy": "cross_entropy",
}
COMPARISONS = 0  # precedence in text: a comparison within a sum needs parentheses
SUMS = 1
PRODUCTS = 2
POWERS = 3
ATOMS = 4


def text(value: Expression) -> str:
    return written(value)[0]


def written(value: Expression) -> tuple[str, int]:
    """The text of an expression, and how tightly it holds together."""
    if isinstance(value, Name):
        return value.text, ATOMS
    if isinstance(value, Number):
        return number(value.value), ATOMS if value.value >= 0 else SUMS
    if isinstance(value, Product):
        return fraction(value), SUMS if value.number < 0 else PRODUCTS
    if value.op == "Ones":
        return "1", ATOMS
    if value.op in INFIX:
        return infix(value), COMPARISONS if value.op == "Greater" else SUMS
    if value.op == "Pow":
        return f"{within(value.args[0], ATOMS)}**{within(value.args[1], ATOMS)}", POWERS
    arguments = ", ".join((*map(text, value.args), *axis(value)))
    return f"{FUNCTIONS.get(value.op, value.op)}({arguments})", ATOMS


def axis(value: Operation) -> list[str]:
    """`axis=0`, or `axis=(0, 1)`, of a sum or mean that leaves some axes."""
    if value.op not in ("Sum", "Mean") or not value.about:
        return []
    return [
        f"axis={value.about[0]}" if len(value.about) == 1 else f"axis=({', '.join(value.about)})"
    ]


def within(value: Expression, precedence: int) -> str:
    content, own = written(value)
    return content if own >= precedence else f"({content})"


def infix(value: Operation) -> str:
    """A sum of many; what is subtracted, or added with a minus, is written with a minus."""
    content = within(value.args[0], SUMS)
    for arg in value.args[1:]:
        if value.op == "Add" and isinstance(arg, Product) and arg.number < 0:
            content += f" - {within(replace(arg, number=-arg.number), PRODUCTS)}"
        else:
            content += INFIX[value.op] + within(arg, PRODUCTS if value.op == "Sub" else SUMS)
    return content


def fraction(value: Product) -> str:
    sign = "-" if value.number < 0 else ""
    over = [within(factor, PRODUCTS) for factor in value.over if not is_ones(factor)]
    if abs(value.number) != 1 or not over:
        over.insert(0, number(abs(value.number)))
    under = [within(factor, POWERS) for factor in value.under]
    if value.divisor != 1:
        under.insert(0, number(value.divisor))
    return sign + " / ".join((" * ".join(over), *under))


def number(value: float) -> str:
    return f"{value:.6g}"
