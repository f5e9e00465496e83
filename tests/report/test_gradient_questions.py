"""Questions about gradients, and their answers from a step that was worked out by hand."""

from dataclasses import replace

import pytest

from tests.examples.histories import HISTORIES, MEANINGS, value
from tests.examples.lab import LAB
from tflab.follow import values
from tflab.report import questions
from tflab.report.contents import Question, Walked

NAN = float("nan")
TAKES = {
    **HISTORIES,
    "product": replace(HISTORIES["product"], op="Mul", inputs=("x", "gate_1")),
}
X = value("x:0", (0.5, -2.0), (2,), "Placeholder", "fed", mean=-0.75)
BACK = value("back:0", (3.0, 1.5), (2,), mean=2.25)
PRODUCT = value("product:0", (1.5, -3.0), (2,), mean=-0.75)
SUM = value("sum:0", (-1.5,), (), mean=-1.5)
Y = value("y", (0.5,), (), "VarHandleOp", "variable", after=(1.25,), mean=0.5)
ROW = Question(
    "In row 2 of the first batch of x*y + z, x is -2 and dL/d(mul) is 1.5. What does this row "
    "add to dL/dy?",
    ("-3", "-2", "-0.5", "1.5", "3"),
    "",
    "-3",
    "product computed x * dL/d(mul) -> dL/dy: -2 * 1.5 = -3.",
)
WAY = Question(
    "On the first batch of x*y + z, dL/dy is -1.5 where y is 0.5. Will the step make y larger "
    "or smaller?",
    ("larger", "smaller"),
    "",
    "larger",
    "The step moves against the gradient: after it, y was 1.25.",
)


def walked(*rows, histories=TAKES):
    # The gate hands on what `back` computes
    gates = [replace(row, tensor="gate_1:0", node="gate_1") for row in rows if row.node == "back"]
    return Walked("toy", (), values.with_values(histories, MEANINGS, [*rows, *gates]))


def asked(*rows):
    return list(questions.about_gradients(walked(*rows)))


def test_what_a_row_adds_and_where_the_step_goes_are_asked():
    assert asked(X, BACK, PRODUCT, SUM, Y) == [ROW, WAY]
    lab = replace(LAB, toy=walked(X, BACK, PRODUCT, SUM, Y))
    assert questions.questions(lab)[2:4] == (ROW, WAY)


@pytest.mark.parametrize(
    "rows",
    [
        (),
        (X, BACK),  # the product was not recorded
        (X, PRODUCT),
        (replace(X, values=(0.5, NAN), not_finite=1), BACK, PRODUCT),
        (replace(X, values=None), BACK, PRODUCT),
        (X, replace(BACK, values=(3.0, 1.0)), replace(PRODUCT, values=(1.5, -2.0))),  # as x
    ],
)
def test_no_row_is_asked_for_whose_answers_are_not_all_known_and_different(rows):
    assert asked(*rows) == []


def test_a_variable_that_did_not_go_against_its_gradient_is_not_asked_for():
    back = value("y", (0.5,), (), "VarHandleOp", "variable", after=(0.25,), mean=0.5)
    assert asked(back, SUM) == []
    assert asked(replace(Y, after=None), SUM) == []
    assert asked(Y) == []


def test_a_large_graph_is_not_asked_about():
    more = {
        f"n{number}": replace(HISTORIES["mul"], name=f"n{number}")
        for number in range(questions.SMALL)
    }
    rows = (X, BACK, PRODUCT, SUM, Y)
    large = walked(*rows, histories={**TAKES, **more})
    assert list(questions.about_gradients(large)) == []
