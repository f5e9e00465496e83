"""Measure: what a turn hands to its observer, and what it costs the step."""

from dataclasses import dataclass, field

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.lifecycle import placement
from tflab.records.options import Options
from tflab.records.timed import StepTime
from tflab.runtime import measure, session

pytestmark = pytest.mark.tensorflow

OPTIONS = Options(batch_size=16, devices=1, xla=True)


@dataclass
class Traced:
    """A traced step that stands in: it says when its trace is handed over."""

    given: list = field(default_factory=list)

    def __call__(self, *values, run_metadata):
        run_metadata.ParseFromString(b"no RunMetadata at all")
        self.given.append(run_metadata)


def test_a_traced_step_does_not_parse_its_trace():
    step = Traced()
    timed, recorded = session.timed_step(step, [], 7)
    assert (timed.step, recorded.serialized) == (7, b"no RunMetadata at all")
    assert step.given == [recorded]


@pytest.mark.parametrize(
    "gpus, level", [([], tf1.RunOptions.SOFTWARE_TRACE), (["GPU:0"], tf1.RunOptions.FULL_TRACE)]
)
def test_gpus_are_traced_where_there_are_any(gpus, level, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    assert session.trace_level.__wrapped__() == level


@pytest.fixture(scope="module")
def compiled():
    """The traces of three steps that XLA compiled, one of them a warm-up."""
    program = list(lifecycle.walk("toy", stop="backward"))[-1].program
    values = next(session.feed_batches(program, OPTIONS.batch_size))
    job = measure.job_of(
        program, session.step_of(program, placement.default_fetches(program)), OPTIONS
    )
    turns = [
        measure.Turn(values, OPTIONS.batch_size, number, traced=True, warmup=number < 0)
        for number in (-1, 0, 1)
    ]
    recorded = []
    plan = measure.Plan("steps", [turns], 1)
    measure.run([job], plan, lambda turn, timed, trace: recorded.append(trace)).check(kept=False)
    return recorded


def test_measured_steps_of_xla_return_no_graphs(compiled):
    assert len(compiled) == 2
    for recorded in compiled:
        metadata = tf1.RunMetadata.FromString(recorded.serialized)
        assert metadata.step_stats.dev_stats
        assert not metadata.partition_graphs


def test_every_op_run_of_xla_stands_in_the_graph_that_was_asked_for_once(compiled):
    assert compiled[0].graphs is compiled[1].graphs
    for recorded in compiled:
        metadata = recorded.parsed()
        names = {node.name for graph in metadata.partition_graphs for node in graph.node}
        ran = {
            row.node_name for device in metadata.step_stats.dev_stats for row in device.node_stats
        }
        assert any("xla_run" in name for name in ran)
        assert ran - {"_SOURCE"} <= names


def toy():
    return list(lifecycle.walk("toy", stop="backward"))[-1].program


def steps_of(program):
    """An untraced and a traced step: what the observer got, and the nodes that ran."""
    values = next(session.feed_batches(program, 4))
    job = measure.job_of(
        program, session.step_of(program, (program.model.output.name,)), Options(batch_size=4)
    )
    recorded = []
    turns = [measure.Turn(values, 4), measure.Turn(values, 4, traced=True)]
    plan = measure.Plan("steps", [turns], 1)
    measure.run([job], plan, lambda turn, timed, trace: recorded.append(trace)).check(kept=False)
    stats = recorded[-1].parsed().step_stats
    return recorded, {row.node_name for device in stats.dev_stats for row in device.node_stats}


def test_steps_without_xla_have_no_graphs_and_the_untraced_no_trace():
    (untraced, traced), _ = steps_of(toy())
    assert untraced is None
    assert traced.graphs == ()
    assert not traced.parsed().partition_graphs


def test_a_large_graph_is_built_once_and_runs_the_same_nodes(monkeypatch):
    program = toy()
    _, usual = steps_of(program)
    compiled = []
    monkeypatch.setattr(measure, "LARGE", 0)
    monkeypatch.setattr(session.Step, "callable", lambda *_, **options: compiled.append(options))
    (untraced, _), ran = steps_of(program)
    assert (untraced, ran, compiled) == (None, usual, [])


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


def job(threads: int) -> measure.Job:
    return measure.Job(None, None, None, Options(threads=threads))


JOBS = [job(threads) for threads in range(5)]


def places_and_times(monkeypatch, seed: int) -> tuple[list[int], list[list[int]]]:
    """Which job took which place, and the times that are handed back; a job's steps take 100 ns
    for each of its threads, and 1 ns more every round."""
    places: list[int] = []

    def run(jobs, plan, observe):
        places.extend(job.options.threads for job in jobs)
        for number in range(3):
            for at, job in enumerate(jobs):
                ns = 100 * job.options.threads + number
                observe(measure.Turn((), 1, job=at), StepTime(number, 0, ns), None)
        observe(measure.Turn((), 1, job=2), StepTime(3, 0, 9), None)  # then comes Ctrl-C
        return measure.Outcome(interrupted=True)

    monkeypatch.setattr(measure, "run", run)
    times = measure.in_rotation(JOBS, measure.Plan("rounds", (), 3), seed)
    return places, times


def test_a_job_gets_its_own_times_whatever_its_place(monkeypatch):
    orders = set()
    for seed in range(5):
        places, times = places_and_times(monkeypatch, seed)
        orders.add(tuple(places))
        assert times == [[100 * at + number for number in range(3)] for at in range(5)]
    assert len(orders) == 5
    assert len({order[0] for order in orders}) > 1


def test_the_same_seed_gives_the_same_places(monkeypatch):
    assert places_and_times(monkeypatch, 3) == places_and_times(monkeypatch, 3)


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
