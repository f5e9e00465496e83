"""Sweep: traces wait to be folded together, and none is lost."""

import numpy as np
import pytest

from tflab.compare import prepare, sweep
from tflab.records.timed import StepTime
from tflab.runtime import measure, session

pytestmark = pytest.mark.tensorflow


def recorded(name: str, start_ns: int, duration_ns: int) -> session.Unparsed:
    """The trace of one op run; a duration of 0 ns is not written."""
    from tensorflow.core.protobuf import config_pb2

    metadata = config_pb2.RunMetadata()
    rows = metadata.step_stats.dev_stats.add().node_stats
    rows.add(node_name=name, all_start_nanos=start_ns, all_end_rel_nanos=duration_ns)
    made = session.Unparsed()
    made.ParseFromString(metadata.SerializeToString())
    return made


@pytest.fixture
def measured(monkeypatch):
    """Three traced steps of two rows, of which one op run took no time; two traces wait."""
    first = recorded("a", 5, 10)
    monkeypatch.setattr(sweep, "WAITING_BYTES", len(first.serialized))
    monkeypatch.setattr(sweep, "KEPT", 1)
    steps = sweep.MeasuredBatch(2, 6)
    turn = measure.Turn((np.zeros(2),), 2, traced=True)
    steps.fold(turn, StepTime(0, 1, 100), first, {"a": "Op"})
    monkeypatch.setattr(sweep, "WAITING_BYTES", 2**18)
    for number, trace in enumerate((recorded("a", 5, 0), recorded("b", 7, 30)), 1):
        steps.fold(turn, StepTime(number, 2, 200), trace, {})
    return steps


def test_traces_wait_until_they_are_many_bytes(measured):
    assert measured.accumulator.steps == 1
    assert (len(measured.waiting), measured.waiting_bytes > 0) == (2, True)
    assert (measured.rows, measured.traced_ns) == (6, [100, 200, 200])
    assert [run.name for run in measured.runs] == ["a"]


def test_every_trace_is_folded_in_the_end_also_one_of_a_run_without_duration(measured):
    measured.settle()
    measured.settle()
    assert (measured.accumulator.steps, len(measured.waiting), measured.waiting_bytes) == (3, 0, 0)
    stats = {row.name: row for row in measured.accumulator.stats({"a": "A", "b": "B"}, {}, {})}
    assert (stats["a"].calls, stats["a"].total_ns) == (2, 10)
    assert (stats["b"].calls, stats["b"].total_ns, stats["b"].start_ns) == (1, 30, 5)


def test_an_untraced_step_is_only_its_time():
    steps = sweep.MeasuredBatch(2, 6)
    steps.fold(measure.Turn((np.zeros(2),), 2), StepTime(0, 1, 100), None, {})
    assert (steps.untraced_ns, steps.rows, len(steps.waiting)) == ([100], 0, 0)


STEP_NS = {
    (1, False): 1_000_000,
    (1, True): 3_000_000,
    (64, False): 64_000_000,
    (64, True): 128_000_000,
}  # 7 ms a row


@pytest.mark.parametrize(
    ("seconds", "rows"),
    [(0.1, 64), (0.449, 64), (0.9, 128), (1.4, 192), (60, 1_000)],
)
def test_a_sweep_takes_as_many_whole_batches_as_there_is_time_for(seconds, rows):
    assert prepare.rows_within(seconds, STEP_NS, 1_000) == rows
