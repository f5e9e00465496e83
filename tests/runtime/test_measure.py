"""Measure: what a turn hands to its observer, and what it costs the step."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.approval import refused
from tflab import lifecycle
from tflab.records.options import Options
from tflab.records.timed import Spread, StepTime
from tflab.runtime import measure, session

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    "gpus, level", [([], tf1.RunOptions.SOFTWARE_TRACE), (["GPU:0"], tf1.RunOptions.FULL_TRACE)]
)
def test_gpus_are_traced_where_there_are_any(gpus, level, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    assert session.trace_level.__wrapped__() == level


@pytest.fixture(scope="module")
def program():
    return list(lifecycle.walk("toy", stop="backward"))[-1].program


def observed(program, options, **turns):
    """What the observer got of training steps, each by what is said of its turn."""
    values = next(session.feed_batches(program, options.batch_size))
    step = session.step_of(program, session.default_fetches(program))
    given = [measure.Turn(values, options.batch_size, **how) for how in turns.values()]
    traces = []
    measure.run(
        measure.job_of(program, step, options),
        measure.Plan("steps", [given], 1),
        lambda turn, timed, trace: traces.append(trace),
    ).check(kept=False)
    return traces


def ran(recorded):
    devices = recorded.parsed().step_stats.dev_stats
    return {row.node_name for device in devices for row in device.node_stats}


def test_every_op_run_of_xla_stands_in_the_graph_that_was_asked_for_once(program):
    """Measured steps themselves return no graphs, and the first step is a warm-up."""
    options, traced = Options(batch_size=16, xla=True), {"traced": True}
    compiled = observed(
        program, options, first=traced | {"warmup": True}, second=traced, third=traced
    )
    assert len(compiled) == 2 and compiled[0].graphs is compiled[1].graphs
    for recorded in compiled:
        metadata = tf1.RunMetadata.FromString(recorded.serialized)
        assert metadata.step_stats.dev_stats
        assert not metadata.partition_graphs
        graphs = recorded.parsed().partition_graphs
        assert any("xla_run" in name for name in ran(recorded))
        assert ran(recorded) - {"_SOURCE"} <= {node.name for graph in graphs for node in graph.node}


def test_steps_without_xla_have_no_graphs_and_the_untraced_no_trace(program):
    turns = {"untraced": {}, "traced": {"traced": True}}
    untraced, traced = observed(program, Options(batch_size=4), **turns)
    assert untraced is None
    assert traced.graphs == ()
    assert not traced.parsed().partition_graphs


def test_a_signal_that_waits_ends_a_measurement_before_its_next_step(program, monkeypatch):
    monkeypatch.setattr(measure.interrupts.current, "waiting", True)
    with pytest.raises(KeyboardInterrupt):
        observed(program, Options(batch_size=4), untraced={})


def test_a_large_graph_is_built_once_and_runs_the_same_nodes(program, monkeypatch):
    options, turns = Options(batch_size=4), {"untraced": {}, "traced": {"traced": True}}
    _, usual = observed(program, options, **turns)
    compiled = []
    monkeypatch.setattr(measure, "LARGE", 0)
    monkeypatch.setattr(session.Step, "callable", lambda *_, **options: compiled.append(options))
    untraced, traced = observed(program, options, **turns)
    assert (untraced, ran(traced), compiled) == (None, ran(usual), [])


@pytest.mark.parametrize(
    ("values", "trace", "calls"),
    [
        (("fed",), b"1" * 90, ["traced", "plain", "plain", "plain", "plain"]),
        (("fed",), b"1" * 80, ["traced", "plain", "plain"]),
        ((), b"1" * 90, ["traced", "plain", "plain"]),
    ],
)
def test_after_a_long_trace_two_steps_are_not_counted(monkeypatch, values, trace, calls):
    made = []
    timed = StepTime(0, 0, 10_000), session.Unparsed(trace)
    monkeypatch.setattr(session, "timed_step", lambda *_: made.append("traced") or timed)
    runner = measure.Runner(lambda *_: made.append("plain"), lambda *_: None)
    runner.take(measure.Turn(values, 1, traced=True))
    for number in range(2):
        step, recorded = runner.take(measure.Turn(values, 1, number))
        assert (step.step, recorded) == (number, None)
    assert made == calls


JOBS = [measure.Job(None, None, None, Options(threads=threads)) for threads in range(5)]


def test_steps_of_another_process_are_sorted_by_job_and_leave_warm_ups_out(monkeypatch):
    """Each job's steps take 100 ns for each of its threads, and 1 ns for each row."""

    begun, taken, orders = [], [], set()

    @contextmanager
    def ready(job, traced):
        def take(turn):
            taken.append(job.options.threads)
            ns = 100 * job.options.threads + turn.batch_size
            return StepTime(0, 0, 9 if turn.number < 0 else ns), None

        begun.append(job.options.threads)
        yield SimpleNamespace(take=take)

    monkeypatch.setattr(measure, "ready", ready)
    stream = measure.untraced_here(JOBS, [np.arange(8)], (2, 4), rounds=3, turns=1)
    assert next(stream) == [{2: [], 4: []}] * 5
    for _ in range(3):  # whose sessions are created in another order each time
        assert next(stream) == [{2: [100 * at + 2] * 3, 4: [100 * at + 4] * 3} for at in range(5)]
        orders.add(tuple(begun))
        begun.clear()
    assert len(orders) == 3
    rounds = [taken[start : start + 5] for start in (0, 5, 10)]
    assert rounds[0] == rounds[1][::-1] == rounds[2]
    monkeypatch.setattr(measure.interrupts.current, "waiting", True)
    assert next(stream, None) is None


def test_a_step_that_fails_beside_others_is_a_sentence(monkeypatch):
    @contextmanager
    def ready(job, traced):
        def take(turn):
            raise tf.errors.InvalidArgumentError(None, None, "no such row")

        yield SimpleNamespace(take=take)

    monkeypatch.setattr(measure, "ready", ready)
    stream = measure.untraced_here(JOBS[:1], [np.arange(8)], (2,), rounds=3, turns=1)
    next(stream)
    assert "no such row" in refused(next, stream)


def clock(monkeypatch, seconds):
    readings = iter(seconds)
    monkeypatch.setattr(measure.time, "monotonic", lambda: next(readings))


def test_observations_end_when_the_time_is_over_but_not_before_the_least(monkeypatch):
    clock(monkeypatch, [100, 109.9, 110.1])
    assert list(measure.observations(least=3, budget_s=10)) == [0, 1, 2, 3]
    clock(monkeypatch, [100, 200])
    assert list(measure.observations(least=3, budget_s=10)) == [0, 1, 2]


def test_observations_end_where_there_are_enough():
    assert list(measure.observations(least=3, budget_s=10, most=5)) == [0, 1, 2, 3, 4]


def test_a_spread_is_median_and_tenths():
    assert measure.spread(range(1, 12)) == Spread(median=6, p10=2, p90=10)
    assert measure.spread([7]) == Spread(7, 7, 7)
