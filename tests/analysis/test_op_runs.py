"""Op runs in columns: the same records as in a list, and the same sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis.op_runs import OpRuns, concatenated, of, sums
from tflab.records.timed import OpRun

RUNS = [
    OpRun(0, "a", "Mul", "CPU:0", 1_005, 10, 64, ((1, 64, "cpu"), (2, -64, "cpu"))),
    OpRun(0, "b", "Add", "CPU:1", 1_000, 7),
    OpRun(1, "a", "Mul", "CPU:0", 5_001, 40, 100, ((5, 100, "mkl"),)),
    OpRun(0, "a", "_Fused", "CPU:0", 5_000, 16),
]
EVENTS = st.tuples(st.integers(0, 9), st.integers(-9, 9), st.sampled_from(["cpu", "mkl"]))
ANY_RUNS = st.lists(
    st.builds(
        OpRun,
        st.integers(0, 2),
        *(st.sampled_from(texts) for texts in (["a", "b"], ["Mul", "Add"], ["CPU:0", "CPU:1"])),
        *(st.integers(0, 2**62) for _ in range(3)),
        st.lists(EVENTS, max_size=3).map(tuple),
    ),
    max_size=8,
)


def test_a_run_is_made_when_it_is_asked_for():
    runs = of(RUNS)
    assert (len(runs), runs[0], runs[-1], list(runs)) == (4, RUNS[0], RUNS[3], RUNS)
    assert (runs[1:3], runs[::-1]) == (RUNS[1:3], RUNS[::-1])
    assert runs == RUNS and runs != RUNS[:3] and runs != [*RUNS[:3], RUNS[0]]
    with pytest.raises(IndexError):
        runs[4]


def test_runs_are_found_by_step_by_device_and_by_name():
    runs = of(RUNS)
    assert runs.by_step() == {0: [RUNS[0], RUNS[1], RUNS[3]], 1: [RUNS[2]]}
    assert runs[1:3].by_step() == {0: [RUNS[1]], 1: [RUNS[2]]}
    assert of([]).by_step() == {}
    assert runs.by_device() == {"CPU:0": [RUNS[0], RUNS[2], RUNS[3]], "CPU:1": [RUNS[1]]}
    assert runs.of_kinds(lambda kind: kind[0] == "b") == [RUNS[1]]
    assert runs.allocations.run.tolist() == [0, 0, 2]


@settings(max_examples=50)
@given(ANY_RUNS, st.data())
def test_columns_hold_what_lists_hold(runs, data):
    table = of(runs)
    assert list(table) == runs
    places = data.draw(st.lists(st.integers(0, len(runs) - 1))) if runs else []
    assert list(table.take(np.array(places, np.int64))) == [runs[place] for place in places]
    begin, end = (data.draw(st.integers(-9, 9)) for _ in range(2))
    assert list(table[begin:end]) == runs[begin:end]
    assert list(table[end:begin:-2]) == runs[end:begin:-2]
    wanted = np.array([run.name == "a" for run in runs], bool)
    parts: list[OpRuns] = [table.where(wanted), table.where(~wanted), table.where(wanted)]
    assert list(concatenated(parts)) == [run for part in parts for run in part]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**62), 2**62)), max_size=3))
def test_sums_are_exact(pairs):
    groups, values = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    expected = [sum(value for group, value in pairs if group == n) for n in range(3)]
    if all(abs(total) < 2**63 for total in expected):
        assert sums(groups, values, 3).tolist() == expected


def test_runs_with_tables_of_their_own_are_put_together():
    ones = [of([run]) for run in RUNS]
    assert concatenated(ones) == RUNS
    assert concatenated(ones).allocations.allocators == ["cpu", "mkl"]
    assert concatenated([]) == []


def test_kinds_are_in_the_order_of_their_first_runs():
    named = [OpRun(0, name, "Op", "", 0, 0) for name in "abc"]
    table = of(named).take(np.array([1, 0, 1]))
    assert [table.kinds[kind][0] for kind in table.kinds_in_order()] == ["b", "a"]
    assert table[:0].kinds_in_order() == []
