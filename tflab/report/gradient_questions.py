"""Questions about gradients: what a row adds to dL/dy, and which way a step moves a variable.

All numbers are those of the recorded step, which computes the same in every run. The wrong answers
are the results of common mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflab.analysis.gradient_graph import gradient_name
from tflab.follow import values
from tflab.records import Value, node_of
from tflab.report.contents import Question, Walked
from tflab.report.selection import called
from tflab.views.gradient_drawing import meaning
from tflab.views.values import number

SMALL = 100  # nodes of a graph that is shown node by node


def questions(walked: Walked) -> Iterator[Question]:
    """Questions about a small graph whose step was recorded."""
    if len(walked.histories) <= SMALL:
        yield from row_of_product(walked)
        yield from way_of_variable(walked)


def row_of_product(walked: Walked) -> Iterator[Question]:
    """The contribution of a row to a gradient that is a sum of products over the batch."""
    for history in walked.histories.values():
        node, own = history.meaning, values.only_value(history)
        if history.op != "Mul" or node is None or not node.formula or node.complete:
            continue
        factors = [factor(name, walked) for name in history.inputs]
        rows = numbers_of(own) if own else ()
        if not node.towards or not node.used or len(rows) < 2 or None in factors:
            continue
        (left, lefts), (right, rights) = (pair for pair in factors if pair)
        if not len(lefts) == len(rights) == len(rows):
            continue
        row = max(range(len(rows)), key=lambda place: abs(rows[place]))
        a, b, product = lefts[row], rights[row], rows[row]
        options = tuple(dict.fromkeys(map(number, (product, -product, a, b, a + b))))
        if len(options) == 5:
            yield Question(
                f"In row {row + 1} of the recorded batch of {called(walked.model)}, {left} is "
                f"{number(a)} and {right} is {number(b)}. What does this row add to "
                f"{node.towards}?",
                tuple(sorted(options, key=float)),
                "",
                number(product),
                f"{history.name} computed {meaning(node)}: {number(a)} * {number(b)} = "
                f"{number(product)}.",
            )
            return


def factor(tensor: str, walked: Walked) -> tuple[str, tuple[float, ...]] | None:
    """The name of a factor, and its numbers; those of a gradient as the node holds it that
    computes it or replaces it."""
    history = walked.histories.get(node_of(tensor))
    if history is None:
        return None
    name = history.meaning.towards if history.meaning else history.name
    value = values.only_value(history)
    return (name, numbers_of(value)) if name and value else None


def numbers_of(value: Value) -> tuple[float, ...]:
    """All numbers of a tensor; none if they are too many, or not all finite."""
    known = value.values is not None and value.mean is not None and not value.not_finite
    return tuple(map(float, value.values or ())) if known else ()


def way_of_variable(walked: Walked) -> Iterator[Question]:
    """Which way the step moved the first variable that is a number, against its gradient."""
    for history in walked.histories.values():
        held = history.values[0] if history.values else None
        if held is None or held.after is None or history.gradient is None:
            continue
        before, after = numbers_of(held), tuple(held.after.values or ())
        gradient = numbers_of(history.gradient)
        numbers = len(before) == len(after) == len(gradient) == 1
        if numbers and (after[0] - before[0]) * gradient[0] < 0:
            yield moved(called(walked.model), history.name, before[0], after[0], gradient[0])
            return


def moved(model: str, name: str, before: float, after: float, gradient: float) -> Question:
    return Question(
        f"On the recorded batch of {model}, {gradient_name(name)} is {number(gradient)} where "
        f"{name} is {number(before)}. Will the step make {name} larger or smaller?",
        ("larger", "smaller"),
        "",
        "larger" if after > before else "smaller",
        f"The step moves against the gradient: after it, {name} was {number(after)}.",
    )
