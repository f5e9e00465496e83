"""The view of flowed derivatives: side by side, and a sentence where they are not the same."""

from dataclasses import replace

from tests.records_by_hand import read
from tflab.records.gradients import FlowedDerivative
from tflab.views import flowed

Y = FlowedDerivative("y", "mean(2 * x * error)", 7.0, "product:0", 7.0000004, 4e-7)
W = FlowedDerivative("w/kernel", "x + w", [[0.5, 2.0]], "sum:0", [[0.5, 2.0]], 0.0)
GONE = FlowedDerivative("z", "mean(2 * error)", 1.0, None, None, None)
TITLE = "The derivatives: as the backward stage computed them, and in one recorded step"
HEAD = ("variable", "derivative", "computed", "flowed", "differ by", "held by")


def blocks(*rows):
    return list(map(read, flowed.blocks(rows)))


def test_what_flowed_stands_beside_what_was_computed():
    assert blocks(Y, W, GONE) == [
        [
            TITLE,
            HEAD,
            ("y", "mean(2 * x * error)", "7", "7", "4.0e-07", "product"),
            ("w/kernel", "x + w", "0.5, ...", "0.5, ...", "0.0e+00", "sum"),
            ("z", "mean(2 * error)", "1", "not by itself", "", ""),
            "",
        ]
    ]


def test_another_number_is_said_to_be_another():
    wrong = replace(Y, flowed=5.5, difference=1.5)
    other = replace(W, flowed=[[0.5, -2.0]], difference=4.0)
    assert blocks(wrong, other)[1:] == [
        "dL/dy differs by more than rounding: the backward stage computed 7, and product had 5.5 "
        "in the recorded step.",
        "dL/d(w/kernel) differs by more than rounding: the backward stage computed 0.5, ..., and "
        "sum had 0.5, ... in the recorded step.",
    ]


def test_variables_that_start_at_random_are_said_to():
    assert blocks(replace(Y, difference=None), GONE)[1:] == [flowed.AT_RANDOM]
    assert len(blocks(GONE)) == 1


def test_without_a_derivative_nothing_is_said():
    assert blocks() == []
