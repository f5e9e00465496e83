"""The program's values in a node's history: from records worked out by hand."""

from dataclasses import replace

import pytest

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


@pytest.mark.parametrize("change", [{"complete": False}, {"used": False}])
def test_a_part_of_a_gradient_or_one_that_nobody_needs_is_not_the_gradient(change):
    later = replace(MEANINGS[2], name="loss", **change)
    known = values.with_values(HISTORIES, (*MEANINGS, later), VALUES)
    assert known["y"].gradient == SUM


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


def test_of_many_inputs_and_outputs_the_first_four_have_their_values():
    many = replace(KNOWN["back"], values=(BACK, *[replace(BACK, tensor="back:1")] * 5))
    lines = view.value_lines(replace(many, taken=(LOSS,) * 6))
    assert list(map(view.line_text, lines)) == [
        *["input loss: 7"] * 4,
        "and 2 more inputs",
        "value: all 6 (2)",
        *["value of back:1: all 6 (2)"] * 3,
        "and 2 more outputs",
    ]
    assert list(map(view.line_text, view.value_lines(KNOWN["x"]))) == ["fed: 1, 2"]
