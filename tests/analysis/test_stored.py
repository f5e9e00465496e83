"""Stored op runs: the same runs and the same tables, whether in memory or in a file."""

import pytest

from tflab.analysis import critical_path, lanes, memory, op_stats, stored, timeline
from tflab.analysis.columns import columns
from tflab.analysis.stored import Store, StoredRuns
from tflab.records.graph import Node
from tflab.records.timed import Capture, OpRun, StepTime

RUNS = [
    OpRun(0, "a", "Mul", "CPU:0", 1_000, 10, 64, ((1, 64, "cpu"), (2, -64, "cpu"))),
    OpRun(0, "b", "Add", "CPU:1", 1_010, 7),
    OpRun(2, "a", "Mul", "CPU:0", 5_001, 40, 100, ((5, 100, "mkl"),)),
    OpRun(1, "a", "Mul", "CPU:0", 9_000, 2**61, 7, ((9, 7, "cpu"),)),
    OpRun(1, "c", "Neg", "CPU:0", 9_000, 2**61),
]
STEPS = (StepTime(0, 1_000, 20), StepTime(2, 5_001, 40), StepTime(1, 9_000, 2**61))
NODES = (Node("a", "Mul"), Node("b", "Add", ("a",)), Node("c", "Neg"))


@pytest.fixture(params=[0, 300, 10**6])
def runs(request, monkeypatch):
    """The runs, with so many bytes in memory."""
    monkeypatch.setattr(stored, "IN_MEMORY", request.param)
    table, store = columns(RUNS), Store()
    for own in table.by_step().values():
        store.add(own)
    return StoredRuns(table.kinds, table.allocators, store)


def test_stored_runs_are_those_that_were_added(runs):
    assert (len(runs), list(runs), runs[3], runs[1:3]) == (5, RUNS, RUNS[3], RUNS[1:3])
    assert runs == RUNS and runs != RUNS[:4]
    assert runs.by_step() == {0: RUNS[:2], 2: RUNS[2:3], 1: RUNS[3:]}
    assert 3 not in runs.by_step()


def test_of_stored_runs_those_of_some_kinds_are_taken(runs):
    of_a = runs.of_kinds(lambda kind: kind[0] != "b")
    assert (len(of_a), list(of_a.of_kinds(lambda kind: kind[0] != "c"))) == (
        4,
        [run for run in RUNS if run.name == "a"],
    )


@pytest.mark.parametrize(
    "table",
    [
        op_stats.fold,
        lambda runs: lanes.steps_with_shape(runs, STEPS),
        lambda runs: timeline.time_ledger(runs, STEPS),
        lambda runs: memory.memory(runs, STEPS),
        lambda runs: critical_path.critical_path(NODES, runs),
    ],
)
def test_tables_of_stored_runs_are_those_of_runs_in_a_list(runs, table):
    assert table(runs) == table(RUNS)


def test_durations_are_counted_while_they_come(monkeypatch):
    monkeypatch.setattr(op_stats, "COUNTED", 2)
    runs = [OpRun(step, "ab"[step % 2], "Mul", "", step, step % 5) for step in range(40)]
    one_by_one = op_stats.fold(runs)
    monkeypatch.undo()
    assert one_by_one == op_stats.fold(runs)
    assert [(node.calls, node.total_ns, node.median_ns) for node in one_by_one] == [
        (20, 40, 2),
        (20, 40, 2),
    ]


def test_a_full_disk_is_told_in_a_sentence(monkeypatch):
    class Full:
        def seek(self, *_):
            return 0

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored, "IN_MEMORY", 0)
    monkeypatch.setattr(stored.tempfile, "TemporaryFile", lambda prefix: Full())
    with pytest.raises(stored.TflabError, match=r"cannot be written to .*: No space left on dev"):
        Store().add(columns(RUNS[:1]))


def test_a_capture_is_read_in_portions_of_whole_steps(runs, monkeypatch):
    monkeypatch.setattr(stored, "PORTION", 2)
    capture = Capture("x", STEPS, runs)
    parts = [part for (part,) in stored.portions(capture)]
    assert [[step.step for step in part.steps] for part in parts] == [[0], [2, 1]]
    assert [list(part.runs) for part in parts] == [RUNS[:2], RUNS[2:]]
    assert list(stored.in_memory(runs)) == RUNS == list(stored.in_memory(RUNS))
    (whole,) = stored.portions(Capture("x", STEPS, columns(RUNS)))
    assert whole == [Capture("x", STEPS, columns(RUNS))]
