"""Not finite: which nodes of a graph made NaN or Inf of finite inputs, and what went into them."""

import ml_dtypes
import numpy as np
import pytest

from tests.analysis.test_values import INF, LOOP, NAN, SENT, node
from tflab.analysis import not_finite
from tflab.analysis.not_finite import Bad
from tflab.records.values import Entered


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, ml_dtypes.bfloat16])
def test_nans_and_infinities_are_counted(dtype):
    array = np.array([1, NAN, INF, -INF, NAN, NAN]).astype(dtype)
    assert not_finite.record_of(array, 4) == Bad(call=4, nan=3, infinite=2, size=6)


@pytest.mark.parametrize(
    "array", [np.float32([1]), np.int32([1]), np.array([b"nan"], object), np.zeros(0)]
)
def test_what_is_finite_is_not_bad(array):
    assert not_finite.record_of(array, 0) is None


# Which nodes


def origins(graph, transfers=(), spoiled=(), **bads):
    """The outputs that are origins; a number is the call in which it is first bad."""
    bads = {name.replace("__", ":"): Bad(call, 2, 1, 8) for name, call in bads.items()}
    found = not_finite.origins(graph, bads, transfers, spoiled)
    return [tensor for _, tensor in found]


def test_an_origin_is_a_node_whose_inputs_are_finite():
    graph = [node("x"), node("log", "x", op="Log"), node("mul", "log", "x"), node("sum", "mul")]
    assert origins(graph, log=0, mul=0, sum=0) == ["log"]
    assert origins(graph) == []


def test_every_node_that_began_by_itself_is_an_origin():
    graph = [node("x"), node("a", "x"), node("b", "x"), node("c", "a", "b"), node("d", "x")]
    assert origins(graph, a=0, b=0, c=0, d=0) == ["a", "b", "d"]


def constant(infinite, nan):
    """The origins where a constant and what comes of it have so many NaNs."""
    graph = [node("x"), node("e", op="Const"), node("mask", "x", "e"), node("sub", "mask", "x")]
    graph.append(node("sum", "sub"))
    bads = {name: Bad(0, nan.get(name, 0), 1, 8) for name in infinite}
    return [tensor for _, tensor in not_finite.origins(graph, bads, ())]


def test_of_an_infinite_constant_the_origin_is_the_node_that_makes_nan_of_it():
    assert constant(("e", "mask", "sub", "sum"), {"sub": 2, "sum": 1}) == ["sub"]
    assert constant(("e", "mask", "sub"), {"mask": 1, "sub": 1}) == ["mask"]


def test_where_nothing_else_began_it_is_the_constant_itself():
    assert constant(("e", "mask", "sub"), {}) == ["e"]
    assert constant(("e", "mask", "sub"), {"e": 1, "mask": 1, "sub": 1}) == ["e"]
    assert constant(("e", "x", "sub"), {}) == ["x"]


def test_a_second_output_may_be_the_first():
    graph = [node("x"), node("split", "x"), node("a", "split"), node("b", "split:1")]
    assert origins(graph, split__1=0, b=0) == ["split:1"]


def test_of_several_outputs_the_first_to_be_bad_is_the_origin():
    graph = [node("x"), node("split", "x")]
    assert origins(graph, split=3, split__1=2) == ["split:1"]
    assert origins(graph, split__1=3, split=2) == ["split"]


def test_what_another_device_sent_does_not_begin_there():
    graph = [node("x"), node("send", "x"), node("recv", op="_Recv"), node("y", "recv")]
    assert origins(graph, [SENT], x=0, recv=0, y=0) == ["x"]


def test_in_a_loop_the_origin_is_that_of_its_own_turn():
    assert origins(LOOP, body=4, next=4, merge=5, switch__1=5, switch=0, exit=0) == ["body"]


def test_what_comes_into_a_loop_does_not_begin_in_it():
    bads = dict.fromkeys(("start", "enter", "merge", "switch", "switch__1", "body", "next"), 0)
    assert origins(LOOP, **bads, exit=0) == ["start"]


def test_a_turn_that_is_bad_before_its_input_was_is_an_origin():
    assert origins([node("a"), node("b", "a")], a=7, b=3) == ["a", "b"]


@pytest.mark.parametrize(
    "put, get",
    [("TensorListPushBack", "TensorListPopBack"), ("OptionalFromValue", "OptionalGetValue")],
)
def test_what_a_list_or_an_optional_gives_out_did_not_begin_there(put, get):
    kept = [node("log"), node("put", "log", op=put), node("get", "put", op=get)]
    kept.append(node("mul", "get:1"))
    assert origins(kept, log=0, get__1=0, mul=0) == ["log"]


UPDATED = [
    node("w", op="VarHandleOp"),
    node("g"),
    node("update", "w", "g", op="ResourceApplyGradientDescent"),
    node("read", "w", op="ReadVariableOp", after=["update"]),
]


def test_an_update_of_finite_inputs_is_the_origin_of_what_its_variable_becomes():
    assert origins(UPDATED, spoiled=("w",), update__w=0, read=0) == ["update:w"]


def test_an_update_by_what_was_not_finite_is_none_and_neither_is_who_reads_the_variable():
    assert origins(UPDATED, spoiled=("w",), g=0, update__w=0, read=0) == ["g"]


def test_of_several_updates_of_a_variable_only_those_given_what_is_not_finite_count():
    slot = [
        node("w", op="VarHandleOp"),
        node("decayed", "w", op="Mul"),
        node("assign", "w", "decayed", op="AssignVariableOp"),
        node("g"),
        node("add", "w", "g", op="ResourceScatterAdd"),
        node("read", "w", op="ReadVariableOp"),
    ]
    bads = {"assign__w": 0, "add__w": 0, "read": 0}
    assert origins(slot, spoiled=("w",), g=0, **bads) == ["g"]
    assert origins(slot, spoiled=("w",), **bads) == ["add:w"]
    # The update of finite inputs comes first, but the variable was spoiled by the other
    early = [
        slot[0],
        node("other"),
        node("first", "w", "other", op="ResourceScatterAdd"),
        *slot[3:],
    ]
    bads = {"first__w": 1, "g": 0, "add__w": 0, "read": 1}
    assert origins(early, spoiled=("w",), **bads) == ["g"]


# What went in


def entered(op, out, *inputs):
    named = [(f"in{number}", array) for number, array in enumerate(inputs)]
    return list(not_finite.inputs_at_fault(op, np.float32(out), named))


def test_of_an_op_by_elements_those_at_the_bad_places_went_in():
    x = np.float32([0, -2, 3, -1, 0])
    assert entered("Log", [-INF, NAN, 1, NAN, -INF], x) == [Entered("in0", 4, 5, 2, 2, -2, 0)]


def test_of_a_broadcast_input_each_element_counts_once():
    out = [[INF, 1, NAN], [INF, 1, 1]]
    rows, columns = np.float32([[1], [2]]), np.float32([0, 5, 0])
    assert entered("RealDiv", out, rows, columns) == [
        Entered("in0", 2, 2, 0, 0, 1, 2),
        Entered("in1", 2, 3, 2, 0, 0, 0),
    ]


def test_of_another_op_all_elements_went_in():
    x = np.float32([[1, -2], [3, 0]])
    assert entered("MatMul", [[INF, 1], [1, 1]], x) == [Entered("in0", 4, 4, 1, 1, -2, 3)]
    assert entered("Log", [INF, 1, 1], x) == [Entered("in0", 4, 4, 1, 1, -2, 3)]  # unlike shapes


def test_what_has_no_numbers_is_left_out():
    assert entered("Op", [NAN], None, np.array([b"a"], object), np.zeros(0, np.float32)) == []


@pytest.mark.parametrize(
    "op, divisor, over",
    [
        ("Mul", [1], True),
        ("Exp", [1], True),
        ("Log", [1], False),
        ("Sqrt", [1], False),
        ("RealDiv", [1e-30], True),
        ("RealDiv", [0], False),
        ("Sub", [-INF], False),
    ],
)
def test_an_op_that_is_defined_everywhere_has_overflowed(op, divisor, over):
    went_in = entered(op, [INF], np.float32([3e38]), np.float32(divisor))
    assert not_finite.overflowed(op, went_in) is over
