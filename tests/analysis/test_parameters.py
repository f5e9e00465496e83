"""Parameters: variables, their elements, and those that an optimiser trains, counted by hand."""

import pytest

from tflab.analysis import parameters
from tflab.analysis.parameters import Parameters, Variable
from tflab.records.graph import Node

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
KERNEL = Variable("kernel", "kernel", (3, 4))
SLOT = Variable("kernel/Adam", "kernel/Adam", (3, 4))
RATE = Variable("rate", "rate", ())
OPEN = Variable("open", "open", (None, 4))
UNKNOWN = Variable("unknown", "unknown", None)
EMPTY = Variable("empty", "empty", (0, 4))


def update(op, *inputs):
    return Node(f"update {inputs[0]}", op, inputs)


@pytest.mark.parametrize(
    "nodes, variables, counted",
    [
        ((), (), Parameters(0, 0, 0, 0, 0, 0, True)),
        ((Node("x", "Neg"),), (KERNEL, RATE, EMPTY), Parameters(3, 13, 0, 0, 0, 0, False)),
        ((Node("x", "Neg", device=CPU),), (KERNEL,), Parameters(1, 12, 0, 0, 0, 0, True)),
        (
            (update("ResourceApplyAdam", "kernel", "kernel/Adam"),),
            (KERNEL, SLOT, RATE),
            Parameters(3, 25, 1, 12, 0, 0, False),
        ),
        (
            (update("SparseApplyAdagrad", "kernel:0"), update("AssignVariableOp", "rate")),
            (KERNEL, RATE),
            Parameters(2, 13, 1, 12, 0, 0, False),
        ),
        (
            (update("ApplyMomentum", "open"), update("ApplyMomentum", "kernel")),
            (KERNEL, OPEN, UNKNOWN),
            Parameters(3, 12, 2, 12, 0, 2, False),
        ),
    ],
)
def test_what_an_optimiser_updates_first_is_trained(nodes, variables, counted):
    assert parameters.count(nodes, variables) == counted


def graph(*updates):
    """An embedding `table` with a slot, a moving average, and the loss of what was taken."""
    return [
        Node("table", "VarHandleOp"),
        Node("slot", "VarHandleOp"),
        Node("average", "VarHandleOp"),
        Node("ids", "Placeholder"),
        Node("taken", "ResourceGather", ("table", "ids")),
        Node("loss", "L2Loss", ("taken",)),
        Node("gradient", "Mul", ("taken", "taken")),
        Node("read", "ReadVariableOp", ("average",)),
        Node("change", "Sub", ("read", "taken")),
        Node("old", "ReadVariableOp", ("slot",)),
        Node("next", "AddV2", ("old", "gradient")),
        *updates,
    ]


def trained(*updates):
    names = ("table", "slot", "average")
    found = parameters.count(graph(*updates), [Variable(name, name, (5,)) for name in names])
    return found.trained_variables, found.trained_elements


SCATTER = Node("add", "ResourceScatterAdd", ("table", "ids", "gradient"))


def test_a_table_that_a_scatter_changes_by_a_gradient_is_trained():
    assert trained(SCATTER) == (1, 5)


def test_a_scatter_by_what_is_no_gradient_trains_nothing():
    assert trained(Node("add", "ResourceScatterAdd", ("table", "ids", "old"))) == (0, 0)


def test_a_moving_average_a_counter_and_a_slot_are_not_trained():
    average = Node("moved", "AssignSubVariableOp", ("average", "change"))
    slot = Node("kept", "AssignVariableOp", ("slot", "next"))
    count = Node("count", "AssignAddVariableOp", ("average", "read"))
    assert trained(average, slot, count) == (0, 0)
    assert trained(average, slot, count, SCATTER) == (1, 5)


def test_what_a_variable_computes_from_itself_alone_does_not_train_it():
    nodes = [
        *graph(),
        Node("half", "Const"),
        Node("square", "Square", ("read",)),
        Node("penalty", "L2Loss", ("square",)),
        Node("decay", "Mul", ("square", "half")),
        Node("decayed", "AssignSubVariableOp", ("average", "decay")),
    ]
    variable = [Variable("average", "average", (5,))]
    assert parameters.count(nodes, variable).trained_variables == 0
    nodes[-2] = Node("decay", "Mul", ("square", "taken"))
    assert parameters.count(nodes, variable).trained_variables == 1


def test_a_gradient_that_comes_by_way_of_a_slot_trains():
    slot = Node("kept", "ResourceScatterAdd", ("slot", "ids", "gradient"))
    new = Node("new", "ReadVariableOp", ("slot",), ("kept",))
    assert trained(slot, new, Node("sub", "AssignSubVariableOp", ("table", "new"))) == (1, 5)
    early = Node("new", "ReadVariableOp", ("slot",))  # before the slot changed
    assert trained(slot, early, Node("sub", "AssignSubVariableOp", ("table", "new"))) == (0, 0)


def test_nodes_of_one_shared_name_are_one_variable():
    again = Variable("kernel_1", "kernel", (3, 4))
    nodes = (update("ApplyAdam", "kernel"), update("ApplyAdam", "kernel_1"))
    assert parameters.count(nodes, (KERNEL, again)) == Parameters(1, 12, 1, 12, 0, 0, False)
