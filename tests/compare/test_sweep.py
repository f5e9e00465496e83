"""Sweep: what takes turns, traces that are folded, and the records made of them."""

from collections import defaultdict
from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph_notation import graph
from tests.records_by_hand import a_placement, op_stats, source
from tflab.analysis.slow_steps import Evidence, Work
from tflab.compare import prepare, sweep
from tflab.records.graph import Node, Tensor
from tflab.records.measured import Compared, OpStats, StepTimes
from tflab.records.placed import Fate
from tflab.records.timed import OpRun, Spread, StepTime
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


def test_traces_wait_until_they_are_many_bytes_and_every_one_is_folded_in_the_end(monkeypatch):
    """Three traced steps of two rows, of which one op run took no time; two traces wait."""
    first = recorded("a", 5, 10)
    monkeypatch.setattr(sweep, "WAITING_BYTES", len(first.serialized))
    monkeypatch.setattr(sweep, "KEPT", 1)
    measured = sweep.MeasuredBatch(2, 6)
    turn = measure.Turn((np.zeros(2),), 2, traced=True)
    measured.fold(turn, StepTime(0, 1, 100), first, {"a": "Op"})
    monkeypatch.setattr(sweep, "WAITING_BYTES", 2**18)
    for number, trace in enumerate((recorded("a", 5, 0), recorded("b", 7, 30)), 1):
        measured.fold(turn, StepTime(number, 2, 200), trace, {})
    assert measured.accumulator.steps == 1
    assert (len(measured.waiting), measured.waiting_bytes > 0) == (2, True)
    assert (measured.rows, measured.traced_ns) == (6, [100, 200, 200])
    assert [run.name for run in measured.runs] == ["a"]
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
    ("seconds", "rows"), [(0.1, 64), (0.449, 64), (0.9, 128), (1.4, 192), (60, 1_000)]
)
def test_a_sweep_takes_as_many_whole_batches_as_there_is_time_for(seconds, rows, monkeypatch):
    def run(job, plan, observe):
        for (size, traced), ns in STEP_NS.items():
            observe(measure.Turn((), size, traced=traced), StepTime(0, 0, ns), None)
        return measure.Outcome()

    monkeypatch.setattr(measure, "run", run)
    assert prepare.affordable(seconds, None, (), (1, 64), 1_000) == rows


NODES = graph(
    "w=VarHandleOp; gradient=Mul; update=AssignSubVariableOp(w,gradient); loss=Mean;"
    "train=NoOp(^update)"
)


@pytest.mark.parametrize(
    ("train_op", "fetches", "updates", "trains"),
    [
        ("train", (), ("update",), True),  # by the optimiser of the model
        (None, ("loss:0", "train"), ("update",), True),  # by updates of the program's own
        (None, ("loss:0",), ("update",), False),  # which nothing that is fetched depends on
        (None, ("train",), (), False),  # the update is no optimiser's
        (None, (), ("update",), False),
    ],
)
def test_a_step_trains_if_what_it_fetches_depends_on_updates(train_op, fetches, updates, trains):
    program = SimpleNamespace(train_op=train_op, model=SimpleNamespace(fetches=fetches))
    stage = SimpleNamespace(program=program, nodes=NODES, update_nodes=updates)
    assert prepare.trains(stage) is trains


# What takes turns


@settings(max_examples=30)
@given(st.sets(st.integers(1, 70), min_size=1, max_size=3), st.integers(70, 1_000))
def test_every_row_is_worked_on_once_and_only_the_last_batch_is_smaller(sizes, images):
    worked = defaultdict(list)
    for turns in measure.sweep([np.arange(images)], images, sorted(sizes), warmup=2).rounds:
        for turn in turns:
            if not turn.warmup:
                worked[turn.batch_size, turn.traced].append(turn.values[0])
    assert worked.keys() == {(size, traced) for size in sizes for traced in (False, True)}
    for (size, _), batches in worked.items():
        assert [len(rows) for rows in batches[:-1]] == [size] * (ceil(images / size) - 1)
        assert np.concatenate(batches).tolist() == [*range(images)]


@settings(max_examples=30)
@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 5))
def test_every_shape_that_will_come_is_warmed_up(size, rows, count):
    size = min(size, rows)
    turns = list(measure.warmups([np.arange(rows)], rows, size, count))
    fed = [(len(turn.values[0]), turn.traced, turn.warmup) for turn in turns]
    shapes = [size] * count + [rows % size] * (count if rows % size else 0)
    assert fed == [(shape, traced, True) for shape in shapes for traced in (False, True)]


# Records by hand


def row_of(key: str, **values) -> OpStats:
    names = {"ops": (key,), "nodes": (f"{key}_1",), "fused_from": (f"{key}_0",)}
    return op_stats(key, **names | values)


def test_every_field_of_the_steps_of_a_batch_size():
    measured = sweep.MeasuredBatch(
        batch_size=4,
        planned_rows=22,  # six steps, of which the last has two rows
        rounds=(range(2), range(2, 5), range(5, 6), range(6, 9)),
        untraced_ns=[100, 200, 300, 400, 500, 700],
        rows=12,
        traced_ns=[1_000, 2_000, 6_000],
        kept=[StepTime(0, 10_000, 900_000)],
        runs=[OpRun(0, "a", "A", "CPU:0", 11_000, 5, 64, ((12, 64, "cpu"), (14, -64, "cpu")))],
    )
    for _ in range(3):
        measured.accumulator.add(["a"], [0], [5])
    rows_of_step = (row_of("A", total_ns=1_500), row_of("B", total_ns=900))
    assert sweep.times(measured, rows_of_step) == StepTimes(
        steps=3,
        images=12,
        untraced_ns=Spread(median=350, p10=150, p90=600),
        traced_ns=Spread(median=2_000, p10=1_200, p90=5_200),
        mean_images_per_second=1e7,  # 22 in 2,200 ns
        ops_ns=800,
        untraced_steps=6,
        peak_bytes=64,
        # 8 rows in 300 ns, 12 in 1,200, 2 in 700; the last round was not measured
        round_rates=(8e9 / 300, 1e7, 2e9 / 700),
    )


def test_every_field_of_the_rows_side_by_side():
    measured = {"requested_bytes": 64, "gflops": 1.5, "share": 0.25, "step_ns": 17}
    small = row_of("A", calls=6, total_ns=660, mean_ns=110, median_ns=99, **measured)
    large = replace(small, calls=4, total_ns=1_000, mean_ns=250, gflops=None)
    alone = row_of("B", calls=9, total_ns=90, mean_ns=10, median_ns=8, **measured)
    compared = sweep.side_by_side({4: (alone, small), 16: (large,)})
    assert compared == (
        Compared(key="A", ops=("A",), fused_from=("A_0",), cells={4: small, 16: large}),
        Compared("B", ("B",), ("B_0",), {4: alone}),
    )
    assert [list(row.cells) for row in compared] == [[4, 16], [4]]


def test_the_work_of_a_call_is_its_mean_over_all_steps_also_the_smaller_last_one(monkeypatch):
    whole, rest = {"a": 100, "b": None, "c": 7}, {"a": 50, "b": None}
    monkeypatch.setattr(sweep.costs, "flops_of_nodes", lambda placed: placed)
    batch = sweep.MeasuredBatch(4, 18, rows=18)
    batch.accumulator.steps = 5
    assert sweep.mean_flops(batch, whole, rest) == {"a": 90, "b": None, "c": 7}
    batch.rows = 16  # the steps so far were whole
    assert sweep.mean_flops(batch, whole, rest) == whole


# The evidence for a diagnosis


def node(name: str, op: str, shape: tuple[int, ...], *inputs: str) -> Node:
    return Node(name, op, inputs, outputs=(Tensor("float32", shape),))


FIRST, LAST = (4, 3, 8, 16), (4, 8, 16, 3)  # where the channels are


def test_every_field_of_the_evidence():
    user = (
        node("x", "Placeholder", FIRST),
        Node("t", "Transpose", ("x", "perm")),
        Node("c", "Conv2D", ("t", "w")),
    )
    ran = (
        node("_arg_x_0_0", "_Arg", FIRST),
        replace(node("t", "_MklTranspose", LAST, "_arg_x_0_0", "perm"), source=source(19)),
        replace(node("c", "_MklConv2D", LAST, "t", "w"), source=source(20)),
    )
    fates = tuple(Fate(name, "executed", None, name) for name in ("t", "c"))
    placed = a_placement(None, ran, user_nodes=user, ledger=fates)
    batch = sweep.MeasuredBatch(4, 24, untraced_ns=[900, 700, 800], traced_ns=[950, 1_100, 900])
    batch.ops_span_ns += [600, 500, 650]
    batch.accumulator.steps = 3
    rows = (
        op_stats("c", ops=("Conv2D",), calls=3, median_ns=400.0),
        op_stats("t", ops=("_MklTranspose",), calls=6, median_ns=100.5),
        op_stats("_arg_x_0_0", ops=("_Arg",), calls=3, median_ns=20.0),
    )
    assert sweep.evidence(batch, placed, rows) == Evidence(
        batch_size=4,
        steps=3,
        step_ns=800,
        quick_ns=720,
        ops_span_ns=600,
        traced_outside_ns=350,
        fed_bytes=4 * 3 * 8 * 16 * 4,
        copied_bytes=0,
        tables=(),
        nodes=(
            Work("c", "Conv2D", "model.py:20", 1, 400.0, False, False),
            Work("t", "_MklTranspose", "model.py:19", 2, 100.5, True, False),
            Work("_arg_x_0_0", "_Arg", "", 1, 20.0, False, True),
        ),
    )


def test_the_span_of_a_step_is_from_its_first_op_to_the_end_of_its_last():
    names = ["_SOURCE", "a", "b", "c"]
    assert sweep.span_of(names, [0, 30, 10, 40], [1, 50, 5, 10]) == 70
    assert sweep.span_of(["_SOURCE"], [3], [1]) == 0
