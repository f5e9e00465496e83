"""Flowed derivatives: each finds the tensor that held it, and is compared with its numbers."""

from dataclasses import replace

import pytest

from tests.views.test_values import value
from tflab.analysis import flowed
from tflab.records.gradients import Derivative, FlowedDerivative
from tflab.records.values import Defined

# dL/dy of mean((2 x + 1 - targets)**2) for the rows (1, 5) and (3, 4) is mean(2 * (1 * -2, 3 * 3))
Y = Derivative("y", "mean(2 * x * error)", 7.0, 1e-8, 0.0, (), "gate:0", 2.0)
Z = Derivative("z", "mean(2 * error)", 1.0, 1e-8, 0.0, (), "sum:0", 1.0)


def defined(tensor, held_by):
    return Defined(**vars(value(tensor, (0.0,))), held_by=held_by)


DEFINED = (defined("gate:0", "product"), defined("sum:0", "sum"), defined("m:0", "m:1"))
STARTS = (
    value("y", (2.0,), op="VarHandleOp", kind="variable"),
    value("z", (1.0,), op="VarHandleOp", kind="variable"),
)
VALUES = (*STARTS, value("product:0", (7.0,)), value("sum:0", (1.0,)))


def told(derivatives, reference=DEFINED, values=VALUES):
    return list(flowed.flowed(derivatives, reference, values))


def test_a_derivative_is_held_by_its_own_node_or_by_the_one_that_stands_in_for_it():
    assert told((Y, Z)) == [
        FlowedDerivative("y", "mean(2 * x * error)", 7.0, "product:0", 7.0, 0.0),
        FlowedDerivative("z", "mean(2 * error)", 1.0, "sum:0", 1.0, 0.0),
    ]
    assert all(map(flowed.agrees, told((Y, Z))))


@pytest.mark.parametrize("number, same", [(7.0006, True), (7.0008, False), (-7.0, False)])
def test_a_number_that_is_more_than_rounded_does_not_agree(number, same):
    (row,) = told((Y,), values=(*STARTS, value("product:0", (number,))))
    assert row.difference == pytest.approx(abs(number - 7))
    assert flowed.agrees(row) is same


def test_what_no_tensor_of_the_graph_that_ran_holds_flowed_nowhere_by_itself():
    (row,) = told((Y,), (defined("gate:0", None),))
    assert (row.tensor, row.flowed, row.difference) == (None, None, None)
    assert not flowed.agrees(row)


def test_where_a_variable_starts_otherwise_nothing_is_compared():
    rows = told((Y, replace(Z, start=1.5)))
    assert [(row.flowed, row.difference) for row in rows] == [(7.0, None), (1.0, None)]


def test_a_matrix_flows_as_it_is_written():
    matrix = replace(Y, variable="w", value=[[1.0, 2.0], [3.0, 4.0]], start=None, tensor="m:0")
    (row,) = told((matrix,), values=(value("m:1", (1.0, 2.0, 3.0, 4.5), (2, 2)),))
    assert (row.flowed, row.difference) == ([[1.0, 2.0], [3.0, 4.5]], 0.5)
    (other,) = told((matrix,), values=(value("m:1", (1.0, 2.0), (2,)),))
    assert (other.flowed, other.difference) == ([1.0, 2.0], None)
