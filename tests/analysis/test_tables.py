"""Tables: a few op runs, folded by hand and by tflab."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import step_times, tables
from tflab.records import OpRun, OpTotal, Spread


def run(name: str, op: str, duration: int, step: int = 0) -> OpRun:
    return OpRun(step, name, op, "CPU:0", 0, duration)


RUNS = [
    run("conv1/Relu", "_FusedConv2D", 50),
    run("add", "AddV2", 10),
    run("conv2/Relu", "_FusedConv2D", 20),
    run("conv1/Relu", "_FusedConv2D", 30, step=1),
    run("add", "AddV2", 10, step=1),
    run("conv2/Relu", "_FusedConv2D", 40, step=1),
]


def test_top_ops_has_a_row_for_each_node_the_dearest_first():
    assert tables.top_ops(RUNS) == (
        OpTotal("conv1/Relu", "_FusedConv2D", 2, 80, 80, 40, 80 / 160),
        OpTotal("conv2/Relu", "_FusedConv2D", 2, 60, 60, 30, 60 / 160),
        OpTotal("add", "AddV2", 2, 20, 20, 10, 20 / 160),
    )


def test_top_types_has_a_row_for_each_type_that_ran():
    assert tables.top_types(RUNS) == (
        OpTotal("_FusedConv2D", "_FusedConv2D", 4, 140, 140, 35, 140 / 160),
        OpTotal("AddV2", "AddV2", 2, 20, 20, 10, 20 / 160),
    )


def test_equal_rows_stand_in_the_order_of_their_names():
    runs = [run("b", "Op", 5), run("a", "Op", 5), run("c", "Op", 5)]
    assert [row.name for row in tables.top_ops(runs)] == ["a", "b", "c"]


def test_a_node_that_ran_as_two_types_has_two_rows():
    runs = [run("x", "Conv2D", 5), run("x", "_FusedConv2D", 4)]
    assert [(row.name, row.op) for row in tables.top_ops(runs)] == [
        ("x", "Conv2D"),
        ("x", "_FusedConv2D"),
    ]


def test_ops_that_took_no_time_have_no_share():
    assert tables.top_ops([run("a", "Op", 0)]) == (OpTotal("a", "Op", 1, 0, 0, 0, 0),)


def test_without_runs_there_are_no_rows():
    assert tables.top_ops([]) == tables.top_types([]) == ()


OP_RUNS = st.builds(
    run, st.sampled_from("abc"), st.sampled_from(["Mul", "Add"]), st.integers(1, 2**40)
)


@settings(max_examples=30, deadline=None)
@given(st.lists(OP_RUNS, min_size=1))
def test_rows_add_up_to_all_runs(runs):
    for rows in (tables.top_ops(runs), tables.top_types(runs)):
        assert sum(row.calls for row in rows) == len(runs)
        assert sum(row.total_ns for row in rows) == sum(each.duration_ns for each in runs)
        assert sum(row.share for row in rows) == pytest.approx(1)


# Spread


def test_a_spread_is_median_and_tenths():
    assert step_times.spread(range(1, 12)) == Spread(median=6, p10=2, p90=10)


def test_one_time_is_its_own_spread():
    assert step_times.spread([7]) == Spread(7, 7, 7)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_a_spread_agrees_with_numpy(times):
    spread = step_times.spread(times)
    expected = np.percentile(times, [50, 10, 90])
    assert (spread.median, spread.p10, spread.p90) == pytest.approx(tuple(expected))
