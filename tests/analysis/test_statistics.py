"""Op statistics: runs that were kept are folded exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import op_table
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun


def test_kept_runs_are_folded_exactly():
    runs = [
        OpRun(0, "a", "Mul", "CPU:0", 1_005, 10, 64),
        OpRun(0, "b", "Add", "CPU:1", 1_000, 7),
        OpRun(1, "a", "Mul", "CPU:0", 5_001, 40, 100),
        OpRun(1, "a", "Mul", "CPU:0", 5_000, 16, 100),
        OpRun(0, "b", "Kernel", "CPU:1", 1_003, 4),  # the same node as another type
    ]
    assert op_table.fold(runs) == (
        NodeStats("a", "Mul", "CPU:0", 3, 66, 22, 16, 2, 88),
        NodeStats("b", "Add", "CPU:1", 1, 7, 7, 7, 0, 0),
        NodeStats("b", "Kernel", "CPU:1", 1, 4, 4, 4, 3, 0),
    )
    assert op_table.fold([]) == ()


# Many steps, of which only nodes and times are kept

RUNS = st.tuples(st.sampled_from("abcd"), st.integers(0, 2**20), st.integers(0, 2**42))
STEPS = st.lists(st.lists(RUNS, max_size=8), max_size=8)
NAMES = st.sets(st.sampled_from("abcde"))


def accumulated(*steps) -> op_table.Accumulator:
    """Statistics of steps, each a list of runs: (node, start, duration)."""
    accumulator = op_table.Accumulator()
    for step in steps:
        names, starts, durations = zip(*step, strict=True) if step else ((), (), ())
        accumulator.add(list(names), list(starts), list(durations))
    return accumulator


def rows(accumulator, names="abcd"):
    return accumulator.stats(dict.fromkeys(names, "Mul"), {"a": "CPU:0"}, {"a": 64})


def test_type_device_and_memory_are_looked_up_by_name_and_a_name_without_a_type_is_no_node():
    accumulator = accumulated([("_SOURCE", 0, 1), ("a", 5, 10), ("b", 20, 7)], [("a", 7, 30)])
    assert rows(accumulator) == (
        NodeStats("a", "Mul", "CPU:0", 2, 40, 20, 20, 6, 64),
        NodeStats("b", "Mul", "", 1, 7, 7, 7, 20, 0),
    )
    assert rows(accumulated()) == rows(accumulated([], [])) == ()


@settings(max_examples=40)
@given(STEPS, NAMES, st.sampled_from([1, 3, 16_384]), st.integers(0, 8))
def test_statistics_of_several_nodes_are_those_of_all_their_runs_and_steps(
    steps, names, chunk, asked
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(op_table, "CHUNK", chunk)
        accumulator = accumulated(*steps[:asked])
        rows(accumulator)  # to ask in between changes nothing
        for step in steps[asked:]:
            accumulator.add(*([run[place] for run in step] for place in range(3)))
    of_steps = sorted(sum(run[2] for run in step if run[0] in names) for step in steps)
    assert accumulator.steps == len(steps)
    alone = [range(number, number + 1) for number in range(len(steps))]
    assert sorted(accumulator.round_medians_ns(names, alone)) == of_steps
    for row in rows(accumulator):
        own = [run for step in steps for run in step if run[0] == row.name]
        assert (row.calls, row.total_ns) == (len(own), sum(run[2] for run in own))
        assert row.start_ns == pytest.approx(np.mean([run[1] for run in own]))


def test_runs_are_put_into_columns_as_soon_as_they_are_enough(monkeypatch):
    monkeypatch.setattr(op_table, "CHUNK", 3)
    accumulator = accumulated([("a", 0, 5), ("b", 0, 7)])
    assert len(accumulator._waiting) == 1
    accumulator.add(["a"], [0], [9])
    assert accumulator._waiting == []
    assert [row.total_ns for row in rows(accumulator)] == [14, 7]


def test_medians_of_rounds_are_those_of_their_steps():
    accumulator = accumulated(*([("a", 0, ns), ("b", 0, 1)] for ns in (1, 5, 3, 7, 9)))
    rounds = [range(3), range(3, 6), range(6, 9)]
    assert accumulator.round_medians_ns(["a", "b"], rounds) == (4.0, 9.0)
    assert accumulator.round_medians_ns(["c"], rounds) == (0.0, 0.0)


def test_ctrl_c_while_runs_are_put_into_columns_counts_nothing_twice(monkeypatch):
    accumulator = accumulated([("a", 0, 5)])

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(op_table.np, "repeat", interrupted)
        rows(accumulator)
    assert [(row.calls, row.total_ns) for row in rows(accumulator)] == [(1, 5)]
