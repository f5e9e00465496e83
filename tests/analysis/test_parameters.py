"""Parameters: variables, their elements, and those that an optimiser trains, counted by hand."""

import pytest

from tflab.analysis import parameters
from tflab.analysis.parameters import Parameters, Variable
from tflab.records import Node

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
KERNEL = Variable("kernel", "kernel", (3, 4))
SLOT = Variable("kernel/Adam", "kernel/Adam", (3, 4))
RATE = Variable("rate", "rate", ())
OPEN = Variable("open", "open", (None, 4))
UNKNOWN = Variable("unknown", "unknown", None)
EMPTY = Variable("empty", "empty", (0, 4))


def update(op, *inputs):
    return Node("update", op, inputs)


@pytest.mark.parametrize(
    "nodes, variables, counted",
    [
        ((), (), Parameters(0, 0, 0, 0, 0, True)),
        ((Node("x", "Neg"),), (KERNEL, RATE, EMPTY), Parameters(3, 13, 0, 0, 0, False)),
        ((Node("x", "Neg", device=CPU),), (KERNEL,), Parameters(1, 12, 0, 0, 0, True)),
        (
            (update("ResourceApplyAdam", "kernel", "kernel/Adam"),),
            (KERNEL, SLOT, RATE),
            Parameters(3, 25, 1, 12, 0, False),
        ),
        (
            (update("SparseApplyAdagrad", "kernel:0"), update("AssignVariableOp", "rate")),
            (KERNEL, RATE),
            Parameters(2, 13, 1, 12, 0, False),
        ),
        (
            (update("ApplyMomentum", "open"), update("ApplyMomentum", "kernel")),
            (KERNEL, OPEN, UNKNOWN),
            Parameters(3, 12, 2, 12, 2, False),
        ),
    ],
)
def test_what_an_optimiser_updates_first_is_trained(nodes, variables, counted):
    assert parameters.count(nodes, variables) == counted


def test_nodes_of_one_shared_name_are_one_variable():
    again = Variable("kernel_1", "kernel", (3, 4))
    nodes = (update("ApplyAdam", "kernel"), update("ApplyAdam", "kernel_1"))
    assert parameters.count(nodes, (KERNEL, again)) == Parameters(1, 12, 1, 12, 0, False)
