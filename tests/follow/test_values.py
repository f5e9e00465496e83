"""The program's values in a node's history: from records worked out by hand."""

from dataclasses import replace

from tests.examples.histories import (
    BACK,
    GATE,
    HISTORIES,
    KNOWN,
    LOSS,
    MEANINGS,
    MUL,
    ONE,
    SEED,
    SUM,
    VALUES,
    X,
    Y,
)
from tflab.follow import values, view
from tflab.follow.view import Aside, Code, NodeLink


def texts(known):
    return [
        "".join(part if isinstance(part, str) else part.text for part in line)
        for line in view.value_lines(known)
    ]


def lines(name):
    return texts(KNOWN[name])


def test_a_node_has_the_program_s_values_of_its_outputs_and_inputs():
    assert {name: node.values for name, node in KNOWN.items() if node.values} == {
        row.node: (row,) for row in VALUES if row is not ONE
    }
    assert KNOWN["mul"].taken == (X, Y)


def test_a_gradient_is_the_value_of_the_last_node_that_computes_it():
    assert {name: node.gradient for name, node in KNOWN.items() if node.gradient} == {
        "y": SUM,
        "mul": GATE,
        "loss": SEED,
    }


def test_a_gradient_has_as_many_elements_as_what_it_is_the_gradient_of():
    rows = replace(BACK, shape=(1,), values=(6.0,))  # as of a lookup, that are for some rows only
    assert values.with_values(HISTORIES, MEANINGS, (MUL, rows))["mul"].gradient is None


def test_a_node_that_has_no_value_says_what_became_of_it():
    assert {name: values.missing(node) for name, node in KNOWN.items()} == {
        **dict.fromkeys(("x", "y", "mul", "loss", "seed", "product", "sum", "back", "gate_1")),
        "gate": "unreached",
        "fused": "fused",
    }
    assert values.missing(replace(KNOWN["gate"], outputs=())) is None  # it had none to have


def test_the_values_and_the_gradient_read_as_lines():
    assert lines("y") == [
        "before the step: 0.5",
        "after the step: 2.25",
        "dL/dy, computed by sum: -3.5",
    ]
    assert lines("x") == ["fed: 1, 2"]
    assert lines("mul") == [
        "input x: 1, 2",
        "input y: 0.5",
        "value: 0.5, 1",
        "dL/d(mul), computed by gate_1: all 6 (2)",
    ]
    second = replace(BACK, tensor="back:1")
    many = replace(KNOWN["back"], values=(BACK, *[second] * 5), taken=(LOSS,) * 6)
    assert ["".join((a, *names, b)) for a, names, b in values.sentences(many)] == [
        *["input loss: 7"] * 4,
        "and 2 more inputs",
        "value: all 6 (2)",
        *["value of back:1: all 6 (2)"] * 3,
        "and 2 more outputs",
    ]


def test_a_formula_says_where_it_leads_and_who_made_it():
    made = ("made by math_grad.py:1433  ", Code("gy = mul(x, grad)"))
    assert list(view.meaning_lines(MEANINGS[1])) == [
        ("computes ", Code("x * dL/d(mul)"), ", which leads to dL/dy"),
        made,
    ]
    assert list(view.meaning_lines(replace(MEANINGS[6], line=None))) == [
        ("computes ", Code("mul * 2"), ", which is dL/dx; no variable needs it"),
    ]


def test_bookkeeping_is_an_aside_with_its_reason():
    gate = "These nodes wait until all gradients of an op are ready, and pass them on unchanged."
    assert list(view.backward_lines(KNOWN["gate"])) == [
        (Aside(f"bookkeeping (gate): {gate}"),),
        ("is dL/dy",),
        ("made by math_grad.py:1433  ", Code("gy = mul(x, grad)")),
    ]


def test_the_values_stand_among_what_was_executed():
    executed = view.sections(KNOWN["mul"])[-1]
    assert executed.title == "Executed"
    assert executed.lines[:3] == (
        ("input ", NodeLink("x", "x"), ": 1, 2"),
        ("input ", NodeLink("y", "y"), ": 0.5"),
        ("value: 0.5, 1",),
    )
    assert executed.lines[3][1] == NodeLink("gate_1", "gate_1")
