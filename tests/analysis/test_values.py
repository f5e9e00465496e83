"""Values: what elements come to in every type, in which order, and which are the same."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tflab.analysis import values
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.values import Statistics

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
    assert values.largest_change(before, after) == most


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


def test_a_node_without_a_record_comes_when_what_it_waited_for_was_recorded():
    graph = [node("early"), node("unrecorded", "early"), node("late"), node("later")]
    ordered = values.in_order(graph, (), {"early": 3, "late": 5, "later": 6})
    assert [n.name for n in ordered] == ["early", "unrecorded", "late", "later"]


def test_a_recv_comes_after_its_send():
    graph = [node("recv", op="_Recv"), node("send", "x", op="_Send"), node("x")]
    ordered = values.in_order(graph, [SENT], {"x": 5, "recv": 1})
    assert [n.name for n in ordered] == ["x", "send", "recv"]


def test_the_way_back_of_a_loop_is_no_dependency():
    ordered = values.in_order(LOOP, (), {})
    assert sorted(n.name for n in ordered) == sorted(n.name for n in LOOP)
    names = [n.name for n in ordered]
    assert names.index("merge") < names.index("body") < names.index("next")


SENT = Transfer("x", "send", "recv", "CPU:0", "CPU:1", "float32", (), 4)
LOOP = (
    node("start", op="_Arg"),
    node("enter", "start", op="Enter"),
    node("merge", "enter", "next", op="Merge"),
    node("switch", "merge", op="Switch"),
    node("body", "switch:1", op="Square"),
    node("next", "body", op="NextIteration"),
    node("exit", "switch", op="Exit"),
)


# Whether two tensors are the same but for rounding


@pytest.mark.parametrize(
    "one, other, same",
    [
        (np.float32([1, 100]), np.float32([1, 100.009]), True),
        (np.float32([1, 100]), np.float32([1, 100.011]), False),
        (np.float32([1e-9, 0]), np.float32([2e-9, 0]), False),
        (np.float64([1]), np.float64([1 + 2e-9]), False),
        (np.float16([1]), np.float16([1.02]), True),
        (np.float32([NAN, INF, 1]), np.float32([NAN, INF, 1]), True),
        (np.float32([NAN, 1]), np.float32([1, 1]), False),
        (np.float32([INF]), np.float32([-INF]), False),
        (np.float32([1, 2]), np.float32([[1, 2]]), False),
        (np.float32([1]), np.float64([1]), False),
        (np.int32([7]), np.int32([8]), False),
        (np.array([True, False]), np.array([True, False]), True),
        (np.array([b"a"], object), np.array([b"b"], object), False),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), True),
        (np.zeros(2, np.float32), np.zeros(2, np.float32), True),
    ],
)
def test_tensors_agree_within_the_rounding_of_their_type(one, other, same):
    assert values.agree(one, other) is same


def test_the_mean_is_that_of_exact_fractions():
    numbers = np.float32(np.random.default_rng(1).normal(size=50))
    exact = sum(map(Fraction, numbers.tolist()), Fraction()) / 50
    assert values.statistics(numbers).mean == pytest.approx(float(exact), rel=1e-12)
