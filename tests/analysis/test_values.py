"""Values: what elements come to in every type, and where the first NaN or Inf came from."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tflab.analysis import values
from tflab.analysis.values import Bad
from tflab.records import Node, NotFinite, Source, Statistics, Transfer, Value

NAN, INF = float("nan"), float("inf")
QINT8 = np.dtype([("qint8", np.int8)])  # as TensorFlow gives it


# What elements come to


def test_of_numbers_all_is_known():
    assert values.statistics(np.float32([[1, 0], [-2, 5]])) == Statistics(
        values=(1.0, 0.0, -2.0, 5.0), mean=1.0, std=math.sqrt(6.5), min=-2, max=5, zeros=0.25,
        not_finite=0,
    )  # fmt: skip


def test_of_sixty_four_elements_all_are_kept_and_of_more_none():
    ramp = np.arange(65, dtype=np.float64)
    assert values.statistics(ramp[:64]).values == tuple(map(float, range(64)))
    more = values.statistics(ramp)
    assert (more.values, more.mean, more.min, more.max) == (None, 32, 0, 64)


def test_what_is_not_finite_is_counted_and_left_out_of_the_statistics():
    row = values.statistics(np.float32([NAN, 0, 4, -INF, INF, 4]))
    assert (row.mean, row.min, row.max) == (pytest.approx(8 / 3), 0, 4)
    assert (row.std, row.zeros, row.not_finite) == (pytest.approx(math.sqrt(32) / 3), 1 / 6, 3)
    assert math.isnan(row.values[0]) and row.values[1:] == (0, 4, -INF, INF, 4)


def test_where_nothing_is_finite_there_is_no_mean():
    assert values.statistics(np.float32([INF])) == Statistics((INF,), None, None, None, None, 0, 1)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.uint8, np.int64, QINT8]
)
def test_every_type_of_number_has_its_mean(dtype):
    row = values.statistics(np.array([0, 1, 2, 5], np.int8).astype(dtype))
    assert (row.values, row.mean, row.min, row.max) == ((0, 1, 2, 5), 2, 0, 5)
    assert (row.std, row.zeros, row.not_finite) == (pytest.approx(math.sqrt(3.5)), 0.25, 0)


def test_a_mean_of_halves_is_not_computed_in_halves():
    row = values.statistics(np.full(100_000, 3, np.float16))  # whose sum no float16 can hold
    assert (row.mean, row.std, row.not_finite) == (3, 0, 0)


def test_the_largest_integers_stay_what_they_are():
    row = values.statistics(np.array([2**63 - 1, -(2**63)], np.int64))
    assert (row.min, row.max, row.values) == (-(2**63), 2**63 - 1, (2**63 - 1, -(2**63)))


def test_truth_values_are_kept_as_such_and_counted_as_ones():
    assert values.statistics(np.array([True, False, True, True])) == Statistics(
        (True, False, True, True), 0.75, math.sqrt(3) / 4, 0, 1, 0.25, 0
    )
    assert values.statistics(np.array([True])).values[0] is True


def test_complex_numbers_have_no_order_and_no_mean_here():
    row = values.statistics(np.array([1 + 2j, 0, complex(NAN, 1)], np.complex64))
    assert row == Statistics(("1+2j", "0j", "nan+1j"), None, None, None, None, 1 / 3, 1)


def test_texts_are_cut_and_have_no_statistics():
    texts = np.array([b"abc", b"\xff", b"x" * 100], object)
    assert values.statistics(texts) == Statistics(
        ("abc", "\ufffd", "x" * 63 + "…"), None, None, None, None, None, 0
    )


def test_an_empty_tensor_has_no_statistics():
    empty = Statistics((), None, None, None, None, None, 0)
    assert values.statistics(np.zeros((0, 3), np.float32)) == empty


@pytest.mark.parametrize(
    "before, after, most",
    [
        (np.float32([1, 2, 3]), np.float32([1, 1.5, 3.25]), 0.5),
        (np.uint8([200]), np.uint8([10]), 190),  # no overflow
        (np.float32([1, NAN]), np.float32([3, 1]), 2),
        (np.float32([NAN]), np.float32([3]), None),
        (np.float32([INF, 1]), np.float32([INF, 1.5]), 0.5),
        (np.zeros(0), np.zeros(0), None),
        (np.zeros(2), np.zeros(3), None),
        (np.array([b"a"], object), np.array([b"b"], object), None),
    ],
)
def test_a_variable_has_moved_by_its_largest_change(before, after, most):
    assert values.moved(before, after) == most


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, ml_dtypes.bfloat16])
def test_nans_and_infinities_are_counted(dtype):
    array = np.array([1, NAN, INF, -INF, NAN, NAN]).astype(dtype)
    assert values.bad(array, 4) == Bad(call=4, nan=3, infinite=2, size=6)


@pytest.mark.parametrize(
    "array", [np.float32([1]), np.int32([1]), np.array([b"nan"], object), np.zeros(0)]
)
def test_what_is_finite_is_not_bad(array):
    assert values.bad(array, 0) is None


# The order of execution


def node(name, *inputs, op="Op", after=()):
    return Node(name, op, inputs, tuple(after))


def test_a_node_comes_after_what_it_takes_whenever_it_was_noted():
    graph = [node("c", "b:1"), node("b", "a"), node("a"), node("d", after=["c"])]
    ordered = values.in_order(graph, (), {"a": 9, "b": 8, "c": 7, "d": 1})
    assert [n.name for n in ordered] == ["a", "b", "c", "d"]


def test_of_independent_nodes_the_earlier_comes_first():
    graph = [node("late"), node("early"), node("after early", "early")]
    ordered = values.in_order(graph, (), {"late": 5, "early": 3, "after early": 9})
    assert [n.name for n in ordered] == ["early", "late", "after early"]


def test_a_recv_comes_after_its_send():
    graph = [node("recv", op="_Recv"), node("send", "x", op="_Send"), node("x")]
    ordered = values.in_order(graph, [SENT], {"x": 5, "recv": 1})
    assert [n.name for n in ordered] == ["x", "send", "recv"]


def test_the_way_back_of_a_loop_is_no_dependency():
    ordered = values.in_order(LOOP, (), {})
    assert sorted(n.name for n in ordered) == sorted(n.name for n in LOOP)
    names = [n.name for n in ordered]
    assert names.index("merge") < names.index("body") < names.index("next")


# Where the first NaN or Inf came from

SENT = Transfer("x", "send", "recv", "CPU:0", "CPU:1", "float32", (), 4)
LINE = Source("model.py", 19, "build", "tf.math.log(x)")
LOOP = (
    node("start", op="_Arg"),
    node("enter", "start", op="Enter"),
    node("merge", "enter", "next", op="Merge"),
    node("switch", "merge", op="Switch"),
    node("body", "switch:1", op="Square"),
    node("next", "body", op="NextIteration"),
    node("exit", "switch", op="Exit"),
)


def first(graph, transfers=(), kinds=None, **bads):
    """The first of a graph in this order; a number is the call in which a node is first bad."""
    bads = {name.replace("__", ":"): Bad(call, 2, 1, 8) for name, call in bads.items()}
    rows = {}
    for tensor in bads:
        name = tensor.partition(":")[0]
        kind = (kinds or {}).get(name, "computed")
        known = {"dtype": "float32", "shape": (), "calls": 1, "after": None, "moved": None}
        none = dict.fromkeys(("values", "mean", "std", "min", "max", "zeros"))
        rows[tensor] = Value(
            **none, not_finite=3, tensor=f"{name}:out", node=name, op="Op", kind=kind, **known
        )
    return values.first_not_finite(graph, bads, transfers, rows, {"log": LINE})


def test_the_first_is_the_one_whose_inputs_are_finite():
    graph = [node("x"), node("log", "x", op="Log"), node("mul", "log", "x"), node("sum", "mul")]
    assert first(graph, log=0, mul=0, sum=0) == NotFinite(
        tensor="log:out", node="log", op="Log", kind="computed", nan=2, infinite=1, size=8, call=1,
        source=LINE, others=0,
    )  # fmt: skip


def test_where_all_is_finite_there_is_none():
    assert first([node("x"), node("log", "x")]) is None


def test_others_that_began_by_themselves_are_counted():
    graph = [node("x"), node("a", "x"), node("b", "x"), node("c", "a", "b"), node("d", "x")]
    row = first(graph, a=0, b=0, c=0, d=0)
    assert (row.node, row.others, row.source) == ("a", 2, None)


def test_a_second_output_may_be_the_first():
    graph = [node("x"), node("split", "x"), node("a", "split"), node("b", "split:1")]
    row = first(graph, split__1=0, b=0)
    assert (row.node, row.others) == ("split", 0)


@pytest.mark.parametrize("kind, name", [("fed", "x"), ("variable", "w"), ("constant", "log")])
def test_what_was_fed_or_held_goes_before_what_was_computed(kind, name):
    graph = [node("log"), node("x"), node("w"), node("sum", "log", "x", "w")]
    row = first(graph, kinds={name: kind}, **{"log": 0, name: 0, "sum": 0})
    assert (row.node, row.kind) == (name, kind)


def test_what_another_device_sent_does_not_begin_there():
    graph = [node("x"), node("send", "x"), node("recv", op="_Recv"), node("y", "recv")]
    row = first(graph, [SENT], x=0, recv=0, y=0)
    assert (row.node, row.others) == ("x", 0)


def test_in_a_loop_the_first_is_that_of_its_own_turn():
    row = first(LOOP, body=4, next=4, merge=5, switch__1=5, switch=0, exit=0)
    assert (row.node, row.call, row.others) == ("body", 5, 0)


def test_what_comes_into_a_loop_does_not_begin_in_it():
    row = first(LOOP, start=0, enter=0, merge=0, switch=0, switch__1=0, body=0, next=0, exit=0)
    assert (row.node, row.others) == ("start", 0)


def test_a_turn_that_is_bad_before_its_input_was_is_the_first():
    graph = [node("a"), node("b", "a")]
    assert first(graph, a=7, b=3).others == 1


def test_the_mean_is_that_of_exact_fractions():
    numbers = np.float32(np.random.default_rng(1).normal(size=50))
    exact = sum(map(Fraction, numbers.tolist()), Fraction()) / 50
    assert values.statistics(numbers).mean == pytest.approx(float(exact), rel=1e-12)
