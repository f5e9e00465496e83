"""Functions: names of executed nodes, followed into the functions that they came from."""

import pytest

from tflab.records.graph import Call, Function, Node, Source
from tflab.runtime import functions

pytestmark = pytest.mark.tensorflow


def at(line: int) -> Source:
    return Source("a.py", line, "f", "")


NODES = (Node("call", "PartitionedCall", source=at(1)), Node("cond", "If", source=at(2)))
FUNCTIONS = (
    Function(
        "outer",
        (Call("call", "f"),),
        (Node("mul", "Mul", source=at(10)), Node("deep/call", "PartitionedCall", source=at(11))),
    ),
    Function(
        "inner",
        (Call("deep/call", "f", "outer"), Call("again", "f", "inner")),
        (Node("add", "Add", source=at(20)), Node("again", "PartitionedCall"), Node("x", "_Arg")),
    ),
    Function("yes", (Call("cond", "then_branch"),), (Node("mul", "Mul", source=at(30)),)),
    Function("no", (Call("cond", "else_branch"),), (Node("mul", "Mul", source=at(40)),)),
)


LINES = {
    "call/mul": 10,
    "call/deep/call/add": 20,
    "call/deep/call/again/add": 20,  # a function that calls itself
    "cond/then/_3/mul": 30,
    "cond/else/_14/mul": 40,
    "cond/merge/_5": 2,  # made by the runtime, because of the call
    "Func/call/input/_7": 1,
    "call/deep/call/x": 11,  # nobody knows its own line
    "call/deep/call/new": 11,
}
PHASES = {
    "gradients/loop/body/_3/mul": "backward",
    "gradients/loop/body/_3/push": "forward",
    "gradients/loop/enter/_4": "backward",
}


def test_a_node_has_the_line_of_its_function_or_of_the_call():
    origins = dict(functions.origins(LINES, NODES, FUNCTIONS))
    assert {name: node.source.line for name, node in origins.items()} == LINES


def test_what_came_out_of_no_call_has_no_line():
    names = ("_arg_x_0_0", "other/mul", "mul", "then/_3/mul")
    assert dict(functions.origins(names, NODES, FUNCTIONS)) == {}


def test_a_node_has_the_phase_of_its_function_s_node_or_of_the_call():
    loop = Node("gradients/loop", "While", source=at(1), phase="backward")
    body = (Node("mul", "Mul", phase="backward"), Node("push", "TensorListPushBack"))
    function = Function("f", (Call("gradients/loop", "body"),), body)
    found = dict(functions.origins(PHASES, [loop], [function]))
    assert {name: node.phase for name, node in found.items()} == PHASES
    assert {node.source for node in found.values()} == {at(1)}
