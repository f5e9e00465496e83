"""Compare: every image is worked on once at each batch size, and every nanosecond has one row."""

import csv
import io
import json
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands import in_one_process, run_here
from tests.records_by_hand import op_stats
from tests.shown import without_progress
from tflab import models
from tflab.analysis import memory, step_times
from tflab.analysis.row_labels import KEYS, RUNTIME
from tflab.cli import terminal
from tflab.compare import (
    SweepOptions,
    compare_batch_sizes,
    comparison,
    configurations,
    prepare,
    sweep,
)
from tflab.compare import __main__ as compare
from tflab.datasets import Dataset, files
from tflab.errors import UsageError
from tflab.records.measured import Compared, OpStats, StepTimes
from tflab.records.options import Model, Options
from tflab.records.timed import Holder, LiveBytes, OpRun, Spread, StepTime
from tflab.records.verdicts import Experiments
from tflab.runtime import dumps, measure, own_process

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
IMAGES, SIZES = 40, (1, 16)  # the third batch of 16 is a half one
SOURCE = "_SOURCE"  # the executor's own start, a node of no graph

every_grouping = pytest.mark.parametrize("by", KEYS)
every_size = pytest.mark.parametrize("size", SIZES)


@pytest.fixture(scope="module", autouse=True)
def known_machine():
    """No benchmark and no other process runs, and the toy is built and differentiated once."""
    build = prepare.with_gradients

    @cache
    def toy(options):
        return build("toy", options)

    def build_once(model, options):
        return toy(options) if model == "toy" else build(model, options)

    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        patch.setattr(prepare, "with_gradients", build_once)
        yield


@pytest.fixture(scope="module")
def lenet():
    """LeNet, swept once: the sweep, its StepStats by batch size, and a comparison by each key."""
    step_stats, sweeps, ready = defaultdict(list), [], []
    sweep_run, prepare_once, fold = sweep.run, prepare.prepare, sweep.MeasuredBatch.fold

    def watched(measured, turn, step, recorded, types):
        if turn.traced:
            step_stats[measured.batch_size].append(recorded.parsed().step_stats)
        fold(measured, turn, step, recorded, types)

    def once(*args):
        if not sweeps:
            sweeps.append(sweep_run(*args))
        return sweeps[0]

    def prepared(model, sizes, chosen, options):
        if not ready:
            ready.append(prepare_once(model, sizes, chosen, options))
        return replace(ready[0], chosen=chosen)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep.MeasuredBatch, "fold", watched)
        patch.setattr(sweep, "run", once)
        patch.setattr(prepare, "prepare", prepared)
        by = {
            key: compare_batch_sizes("lenet", SIZES, SweepOptions(by=key, images=IMAGES))
            for key in KEYS
        }
    return SimpleNamespace(sweep=sweeps[0], step_stats=step_stats, by=by)


def rows(found) -> dict:
    return {row.key: row for row in found.rows}


def run(line: str) -> int:
    """The exit status of a command line."""
    return compare.main(line.split())


# What is worked on


@every_size
def test_every_node_runs_once_for_each_batch(lenet, size):
    steps = ceil(IMAGES / size)
    found = lenet.by["node"]
    assert {row.cells[size].calls for row in found.rows} == {steps}
    assert (found.steps[size].steps, found.steps[size].images) == (steps, IMAGES)
    assert len(lenet.sweep.batches[size].untraced_ns) == steps


def test_the_last_batch_is_smaller_where_it_does_not_come_out_even(lenet):
    def rows_fed(stats):
        (feed,) = (n for d in stats.dev_stats for n in d.node_stats if "_arg_" in n.node_name)
        return feed.output[0].tensor_description.shape.dim[0].size

    assert [rows_fed(stats) for stats in lenet.step_stats[16]] == [16, 16, 8]
    assert [rows_fed(stats) for stats in lenet.step_stats[1]] == [1] * IMAGES


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


def test_the_op_runs_of_the_first_whole_batches_are_kept_one_by_one(lenet):
    kept = {size: batch.kept for size, batch in lenet.sweep.batches.items()}
    assert {size: [step.step for step in steps] for size, steps in kept.items()} == {
        1: [0, 1, 2],
        16: [0, 1],
    }
    for size, batch in lenet.sweep.batches.items():
        assert {run.step for run in batch.runs} == {step.step for step in kept[size]}


@settings(max_examples=30)
@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 5))
def test_every_shape_that_will_come_is_warmed_up(size, rows, count):
    size = min(size, rows)
    turns = list(measure.warmups([np.arange(rows)], rows, size, count))
    fed = [(len(turn.values[0]), turn.traced, turn.warmup) for turn in turns]
    shapes = [size] * count + [rows % size] * (count if rows % size else 0)
    assert fed == [(shape, traced, True) for shape in shapes for traced in (False, True)]


def test_the_last_smaller_batch_is_warmed_up_before_anything_is_measured():
    rounds = measure.sweep([np.arange(40)], 40, [16], warmup=1).rounds
    turns = [turn for turns in rounds for turn in turns]
    warm = [(size, traced, True) for size in (16, 8) for traced in (False, True)]
    measured = [(size, traced, False) for size in (16, 16, 8) for traced in (False, True)]
    fed = [(len(turn.values[0]), turn.traced, turn.warmup) for turn in turns]
    assert fed == warm + measured


def test_counts_and_times_an_image_are_those_of_the_traced_steps():
    found = compare_batch_sizes("toy", (1, 16), SweepOptions(by="node", images=64))
    assert found.images == 64
    assert {
        size: (steps.steps, steps.images, steps.untraced_steps)
        for size, steps in found.steps.items()
    } == {1: (64, 64, 64), 16: (4, 64, 4)}
    for row in found.rows:
        for size, cell in row.cells.items():
            steps = found.steps[size]
            assert cell.calls == steps.steps
            assert cell.image_ns == pytest.approx(cell.total_ns / steps.images)


# A record by hand


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
    rows_of_step = (row_of("A", self_ns=1_500, total_ns=9), row_of("B", self_ns=900, total_ns=9))
    assert sweep.times(measured, rows_of_step) == StepTimes(
        steps=3,
        images=12,
        untraced_ns=Spread(median=350, p10=150, p90=600),
        traced_ns=Spread(median=2_000, p10=1_200, p90=5_200),
        mean_images_per_second=1e7,  # 22 in 2,200 ns
        ops_ns=800,
        untraced_steps=6,
        peak_bytes=64,
        curve=LiveBytes(0, ((2_000, 64), (4_000, 0)), 64, 2_000, (Holder("a", "A", 64, False),)),
        # 8 rows in 300 ns, 12 in 1,200, 2 in 700; the last round was not measured
        round_rates=(8e9 / 300, 1e7, 2e9 / 700),
    )


def test_every_field_of_the_rows_side_by_side():
    spread = Spread(1, 1, 1)
    steps = {4: StepTimes(3, 12, spread, spread, 1, 1), 16: StepTimes(2, 32, spread, spread, 1, 1)}
    measured = {"requested_bytes": 64, "gflops": 1.5, "share": 0.25, "step_ns": 17}
    small = row_of("A", calls=6, total_ns=660, self_ns=600, mean_ns=110, median_ns=99, **measured)
    large = replace(small, calls=4, total_ns=1_000, self_ns=960, mean_ns=250, gflops=None)
    alone = row_of("B", calls=9, total_ns=90, self_ns=84, mean_ns=10, median_ns=8, **measured)
    compared = sweep.side_by_side({4: (alone, small), 16: (large,)}, steps, "op")
    assert compared == (
        Compared(key="A", ops=("A",), fused_from=("A_0",), cells={4: small, 16: large}, fit=None),
        Compared("B", ("B",), ("B_0",), {4: alone}, None),
    )
    assert [list(row.cells) for row in compared] == [[4, 16], [4]]


# What it adds up to


@every_size
def test_totals_are_plain_sums_over_the_step_stats(lenet, size):
    sums = Counter()
    for stats in lenet.step_stats[size]:
        for device in stats.dev_stats:
            for node in device.node_stats:
                sums[node.node_name] += node.all_end_rel_nanos
    del sums[SOURCE]
    found = rows(lenet.by["node"])
    assert {name: row.cells[size].total_ns for name, row in found.items()} == sums


@every_grouping
@every_size
def test_rows_of_every_grouping_add_up_to_the_same_time(lenet, by, size):
    cells = [row.cells[size] for row in lenet.by[by].rows]
    same = [row.cells[size] for row in lenet.by["node"].rows]
    for name in ("total_ns", "calls", "image_ns"):
        total = sum(getattr(cell, name) for cell in same)
        assert sum(getattr(cell, name) for cell in cells) == pytest.approx(total)
    assert sum(cell.share for cell in cells) == pytest.approx(1)


@every_size
def test_the_ops_of_a_step_are_those_of_the_rows(lenet, size):
    found = lenet.by["op"]
    steps, total = found.steps[size], sum(row.cells[size].total_ns for row in found.rows)
    assert steps.ops_ns * steps.steps == pytest.approx(total)


@every_size
def test_means_are_totals_by_calls_and_by_images(lenet, size):
    for row in lenet.by["op"].rows:
        cell = row.cells[size]
        assert cell.mean_ns == pytest.approx(cell.total_ns / cell.calls)
        assert cell.image_ns == pytest.approx(cell.total_ns / IMAGES)


# Whose it is

LAYERS = ["conv1", "pool1", "conv2", "pool2", "dense1", "dense2", "dense3"]


def test_layers_stand_in_the_order_in_which_data_pass_through_them(lenet):
    found = [row.key for row in lenet.by["layer"].rows]
    assert {*found} == {*LAYERS, "flatten", RUNTIME}
    assert [key for key in found if key in LAYERS] == LAYERS


def test_what_is_fused_belongs_to_its_layer(lenet):
    found = rows(lenet.by["layer"])
    assert found["conv1"].fused_from == ("conv1/Conv2D", "conv1/BiasAdd")
    assert found["dense3"].fused_from == ("dense3/MatMul",)


def test_every_row_is_a_line_of_the_model_or_the_runtimes(lenet):
    keys = [row.key for row in lenet.by["line"].rows]
    assert [key for key in keys if not key.startswith("lenet.py:")] == [RUNTIME]


def test_nodes_of_the_runtime_stand_apart(lenet):
    assert rows(lenet.by["layer"])[RUNTIME].ops == ("_Arg", "_Retval")


def test_the_cold_step_is_in_no_row_and_shown_from_its_slowest_op_on(lenet):
    found = lenet.by["op"]
    times = [row.self_ns for row in found.cold]
    assert times == sorted(times, reverse=True)
    assert len(times) == prepare.COLD
    assert found.cold_step_ns > times[0]
    assert sum(row.cells[1].calls for row in found.rows) == len(lenet.by["node"].rows) * IMAGES
    assert SOURCE not in [row.key for row in found.cold]


def test_ops_of_the_cold_step_are_held_against_their_warm_mean(lenet):
    means = {row.key: row.cells[1].mean_ns for row in lenet.by["node"].rows}
    found = lenet.by["op"]
    assert found.warm_ns == {row.key: pytest.approx(means[row.key]) for row in found.cold}


def test_the_cold_step_runs_the_same_ops_as_the_warm_ones(monkeypatch):
    monkeypatch.setattr(prepare, "COLD", 1_000)
    options = Options(without=("remapper",))
    found = compare_batch_sizes("lenet", (16,), SweepOptions(by="node", images=16), options=options)
    warm = {row.key: row.ops for row in found.rows}
    assert {row.key: row.ops for row in found.cold} == warm
    assert warm["dense1/Relu"] == ("Relu",)


def test_gflops_are_those_of_every_image_over_the_measured_time(lenet):
    # An image: a multiply-add counts as 2, then come the bias and the comparison with 0.
    flops = 28 * 28 * 6 * (2 * 5 * 5 + 1 + 1)
    for cell in rows(lenet.by["node"])["conv1/Relu"].cells.values():
        assert cell.gflops == pytest.approx(IMAGES * flops / cell.total_ns)


# Memory


@every_size
def test_a_step_has_the_peak_and_the_curve_of_the_kept_steps(lenet, size):
    steps, batch = lenet.by["op"].steps[size], lenet.sweep.batches[size]
    peaks = {
        step.step: memory.memory(run for run in batch.runs if run.step == step.step).peak_bytes
        for step in batch.kept
    }
    assert steps.peak_bytes == max(peaks.values()) > 0
    assert steps.curve.step == step_times.median_step(batch.kept).step
    assert steps.curve.peak_bytes == peaks[steps.curve.step]


@every_grouping
@every_size
def test_the_peak_of_a_row_is_what_its_nodes_alone_had_alive(lenet, by, size):
    runs, found = lenet.sweep.batches[size].runs, lenet.by[by]
    for row in found.tables[size]:
        alone = memory.memory(run for run in runs if run.name in row.nodes)
        assert row.peak_bytes == alone.peak_bytes <= found.steps[size].peak_bytes
    assert max(row.peak_bytes for row in found.tables[size]) > 0


# Training


def test_training_runs_the_training_step_on_the_training_images():
    found = compare_batch_sizes(
        "toy", (4, 16), SweepOptions(phase="training", by="line", images=32)
    )
    assert (found.phase, found.steps[16].images, found.steps[4].steps) == ("training", 32, 8)
    assert {row.key for row in found.rows} == {
        RUNTIME,
        *(f"toy.py:{line}" for line in (21, 22, 23, 26, 27)),
        "toy.py:33",  # that of the optimiser
    }


def test_training_without_a_number_takes_some_of_the_training_images(monkeypatch):
    monkeypatch.setattr(prepare, "TRAINING_IMAGES", 64)
    assert compare_batch_sizes("toy", (16,), SweepOptions(phase="training")).steps[16].images == 64


def test_a_sweep_of_so_many_seconds_takes_no_more_images_than_there_is_time_for():
    compared = compare_batch_sizes("toy", (1, 16), SweepOptions(seconds=1e-9))
    assert {size: row.images for size, row in compared.steps.items()} == {1: 16, 16: 16}
    assert (
        compare_batch_sizes("toy", (16,), SweepOptions(images=48, seconds=100)).steps[16].images
        == 48
    )


def test_inference_without_a_number_takes_all_test_images():
    assert compare_batch_sizes("toy", (64,)).steps[64].images == 256


def test_the_batch_sizes_share_the_seconds_of_the_experiments(monkeypatch):
    asked = []

    def run(placed, nodes, options, split):
        asked.append((options.batch_size, options.experiments, split))
        return Experiments((), None, ())

    monkeypatch.setattr(comparison.experiments, "run", run)
    found = compare_batch_sizes(
        "toy", (1, 4, 16), SweepOptions(images=32), options=Options(experiments=60)
    )
    assert asked == [(1, 20, "test"), (4, 20, "test"), (16, 20, "test")]
    assert [*found.experiments] == [1, 4, 16]


# Interrupted


@pytest.fixture
def interrupt(monkeypatch):
    """`interrupt(20)`: Ctrl-C when the 20th traced step is folded."""

    def when(step):
        steps = iter(range(1, step))
        fold = sweep.MeasuredBatch.fold

        def folding(measured, turn, *args):
            if turn.traced and next(steps, None) is None:
                raise KeyboardInterrupt
            fold(measured, turn, *args)

        monkeypatch.setattr(sweep.MeasuredBatch, "fold", folding)

    return when


def test_ctrl_c_keeps_what_was_measured_and_says_so(interrupt):
    interrupt(20)  # a round is 16 steps of batch 1 and one of batch 16
    found = compare_batch_sizes("toy", SIZES, SweepOptions(by="node", images=64))
    assert found.interrupted
    assert {size: (steps.steps, steps.images) for size, steps in found.steps.items()} == {
        1: (18, 18),
        16: (1, 16),
    }
    for row in found.rows:
        assert {size: cell.calls for size, cell in row.cells.items()} == {1: 18, 16: 1}


def test_ctrl_c_prints_what_was_measured_and_no_batch_size_that_was_not_reached(interrupt, capsys):
    interrupt(10)
    assert run("--model toy --batch-sizes 1 16 --images 64 --format json") == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["interrupted"], [*found["steps"]], err) == (True, ["1"], "")


def test_ctrl_c_before_anything_was_measured_is_only_that(interrupt, capsys):
    interrupt(1)
    assert run("--model toy --batch-sizes 1 --images 64") == 130
    assert capsys.readouterr() == ("", "tflab: interrupted.\n")


def test_ctrl_c_among_the_configurations_keeps_the_sweep(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(own_process, "untraced_here", interrupted)
    line = "--model toy --batch-sizes 16 --images 64 --configs no-grappler --format json"
    assert run(line) == 130
    out, err = capsys.readouterr()
    assert err == ""
    found = json.loads(out)
    assert (found["interrupted"], found["steps"]["16"]["steps"], found["configs"]) == (True, 4, [])


# Steps that fail


def lookup(column: str, values: np.ndarray) -> Model:
    """A model that looks the 'index' of its data up in a table of ten."""

    def load(split, data_dir=None):
        return Dataset("indices", split, {column: values.astype(np.int32)})

    indices = tf1.placeholder(tf.int32, [None], name="indices")
    return Model(tf.gather(tf.range(10.0), indices), {indices: "index"}, load)


def good() -> Model:
    return lookup("index", np.arange(64) % 10)


def bad_row() -> Model:
    """The bad row is the 51st, beyond the steps that warm up."""
    return lookup("index", np.where(np.arange(64) == 50, 99, 0))


def bad_shape() -> Model:
    return lookup("index", np.zeros((64, 2)))


def bad_column() -> Model:
    return lookup("another", np.zeros(64))


@pytest.mark.parametrize(
    "model, said",
    [
        (
            "bad_shape",
            "The column 'index' of indices holds int32 of shape (64, 2), which cannot be fed to "
            "'indices:0': int32 of shape (None,).",
        ),
        (
            "bad_column",
            "The model 'tests.compare.test_command:bad_column' feeds from a column 'index', but "
            "its data (indices) have another.",
        ),
    ],
)
def test_a_step_that_fails_is_one_sentence_and_status_1(model, said, capsys):
    assert run(f"--model tests.compare.test_command:{model} --batch-sizes 4 16 --images 64") == 1
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", f"tflab: {said}")


def test_a_step_that_fails_half_way_keeps_what_was_measured(capsys):
    assert run("--model tests.compare.test_command:bad_row --batch-sizes 4 16 --images 64") == 1
    out, err = capsys.readouterr()
    said = "The runtime refused the step: indices[2] = 99 is not in [0, 10)."
    assert err.splitlines()[-1] == f"tflab: {said}"
    assert "Partial: these are the measurements before this error:" in out
    found = compare_batch_sizes(
        "tests.compare.test_command:bad_row", (4, 16), SweepOptions(images=64)
    )
    assert found.failure == said
    assert 0 < found.steps[4].images < 64


def test_a_model_without_a_loss_has_no_training_to_compare():
    assert (
        compare_batch_sizes("tests.compare.test_command:good", (16,), SweepOptions(images=64))
        .steps[16]
        .steps
        == 4
    )
    with pytest.raises(
        UsageError,
        match=r"'tests\.compare\.test_command:good' names no loss for tflab to train with",
    ):
        compare_batch_sizes(
            "tests.compare.test_command:good", (16,), SweepOptions(phase="training")
        )


# Wrong arguments

SEE = "See `python -m tflab.compare --help`."


@pytest.mark.parametrize(
    "line, said",
    [
        ("--batch-sizes 0", "The batch size is '0'; it has to be a whole number of at least 1."),
        (
            "--batch-sizes few",
            "The batch size is 'few'; it has to be a whole number of at least 1.",
        ),
        (
            "--batch-sizes 16 1 16",
            "The batch sizes [1, 16, 16] contain duplicates; list each once.",
        ),
        ("--images 0", "The number of images is '0'; it has to be a whole number of at least 1."),
        (
            "--images 8 --steps 8",
            f"Argument --steps: not allowed with argument --images. {SEE}",
        ),
        (
            "--model toy --batch-sizes 1 512",
            "The largest batch size is 512, but by default only 256 rows of the test split of "
            "points of 3x + 2 are used. Give smaller batches with --batch-sizes.",
        ),
        (
            "--model toy --batch-sizes 16 --steps 17",
            "You requested 17 steps of 16 rows = 272 rows, but the test split of points of 3x + 2 "
            "has 256. Give a smaller batch size or fewer steps.",
        ),
        (
            "--model toy --batch-sizes 16 --images 8",
            "You requested 8 rows in batches of up to 16, but the test split of points of 3x + 2 "
            "has 256. Give a smaller batch size or fewer rows.",
        ),
        (
            "--configs xlaa",
            "No configuration named 'xlaa'. Did you mean 'xla'? Choose from "
            "default, xla, no-onednn, no-grappler, one-thread, gpu.",
        ),
        (
            "--phase inferense",
            "No phase named 'inferense'. Did you mean 'inference'? Choose from inference, "
            "training.",
        ),
        (
            "--model toy --plots /dev/null/plots",
            "The folder '/dev/null/plots' cannot be written: '/dev/null' is not a folder. Give "
            "--plots a folder that you may write to.",
        ),
        ("--by color", "No grouping named 'color'. Choose from op, node, layer, line."),
        ("--format yaml", "No format named 'yaml'. Choose from text, json, csv, markdown."),
        (
            "--model lenat",
            "No model named 'lenat'. Did you mean 'lenet'? Choose from "
            f"{', '.join(models.MODELS)}, or give package.module:function, or the path of a saved "
            "graph.",
        ),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_status_2(line, said, capsys):
    assert run(line) == 2
    assert capsys.readouterr() == ("", f"tflab: {said}\n")


def test_a_gpu_that_is_not_there_is_one_sentence_and_status_2(monkeypatch, capsys):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [])
    assert run("--model toy --configs gpu") == 2
    assert capsys.readouterr() == (
        "",
        "tflab: This machine has no GPU; remove `gpu` from --configs.\n",
    )


# Configurations


@pytest.fixture
def short_race(monkeypatch):
    for name, value in {"ROUNDS": 1, "TURNS": 2, "A_SESSION": 1, "OBSERVATIONS": 3}.items():
        monkeypatch.setattr(configurations, name, value)


def test_configurations_are_measured_at_every_batch_size_against_default(short_race):
    configs = ("default", "no-grappler", "one-thread")
    chosen = SweepOptions(images=64, configs=configs)
    found = compare_batch_sizes("toy", (4, 16), chosen).configs
    assert [(row.batch_size, row.config) for row in found] == [
        (size, config) for size in (4, 16) for config in configs
    ]
    for row in found:
        rate = 1e9 * row.batch_size / row.untraced_ns.median
        assert row.median_images_per_second == pytest.approx(rate)
        assert (row.verdict is None) == (row.config == "default")
        assert row.verdict is None or row.verdict.observations == 3


def test_progress_counts_the_observations(short_race, monkeypatch):
    labels = []

    def track(label, items, total, about=None):
        labels.append((label, total))
        return items

    monkeypatch.setattr(terminal, "track", track)
    chosen = SweepOptions(images=16, configs=("default", "no-grappler"))
    compare_batch_sizes("toy", (16,), chosen)
    assert ("configurations", configurations.OBSERVATIONS) in labels


# The command


def printed(capsys, options: str) -> str:
    assert run(f"--model toy --batch-sizes 16 4 --images 32 {options}") == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_steps_are_those_of_the_largest_batch(capsys):
    assert run("--model toy --batch-sizes 4 16 --steps 3 --format json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {size: steps["steps"] for size, steps in found["steps"].items()} == {"4": 12, "16": 3}


def test_csv_has_a_line_for_each_row_and_batch_size(capsys):
    lines = list(csv.DictReader(io.StringIO(printed(capsys, "--format csv --by node"))))
    assert {line["batch_size"] for line in lines} == {"4", "16"}
    assert {(line["key"], line["calls"]) for line in lines if line["batch_size"] == "4"} >= {
        ("mul", "8"),
        ("add", "8"),
    }


def pictures(folder: Path) -> list[str]:
    """The names in a folder of plots, each of which is there as both kinds."""
    names = sorted(path.stem for path in folder.glob("*.png"))
    kinds = {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == kinds
    return names


def test_plots_go_to_a_new_folder_and_nothing_is_overwritten(tmp_path, capsys):
    folder = tmp_path / "plots"
    line = "--model toy --batch-sizes 4 --images 8 --by layer --without remapper"
    line += f" --plots {folder}"
    assert run(line) == 0
    assert "take" in (folder / "batch-4-layers.svg").read_text()
    out = capsys.readouterr().out
    assert "Graph passes switched off: remapper." in " ".join(out.split())
    assert out.endswith(f"\nThe plots are in {folder}\n")
    assert pictures(folder) == ["batch-4-layers"]
    assert run(line) == 2
    assert "give --plots a new folder" in capsys.readouterr().err


def test_only_several_batch_sizes_are_drawn_against_one_another(tmp_path):
    assert run(f"--model toy --batch-sizes 4 8 --images 8 --plots {tmp_path / 'plots'}") == 0
    assert pictures(tmp_path / "plots") == ["batch-4-ops", "batch-8-ops", "batch_sizes"]


def test_text_and_markdown_tell_the_same_story(capsys):
    text = printed(capsys, "--full --top 2")
    page = printed(capsys, "--full --top 2 --format markdown")
    for said in (
        "Batch 4: times, the most expensive first",
        "Batch 4: work per step, in the same order",
        "Cold: the first step, at batch 4, took",
    ):
        assert said in " ".join(text.split())
        assert said in page
    assert page.startswith("# toy by batch size\n")
    assert max(map(len, text.splitlines())) <= 100


def test_tensorflow_is_made_ready_to_dump_before_a_model_imports_it(monkeypatch):
    """Otherwise each placement needs a process of its own, which imports TensorFlow again."""
    order = []

    def find(*_):
        order.append("import")
        raise UsageError("Enough.")

    monkeypatch.setattr(dumps, "prepare", lambda: order.append("prepare"))
    monkeypatch.setattr(models, "find", find)
    run("--model lenet")
    assert order == ["prepare", "import"]


@pytest.mark.parametrize(
    "data", ["digits, not MNIST", pytest.param("MNIST", marks=pytest.mark.mnist)]
)
def test_json_goes_to_standard_output_and_nothing_to_standard_error(tmp_path, data, monkeypatch):
    monkeypatch.setattr(files, "announced", set())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    line = "--model lenet --batch-sizes 4 16 --images 32 --by layer --format json"
    done = run_here(compare.main, *line.split())
    # Except the one line that says that these are not the data one would expect.
    stood_in = (
        "Using the digits of scikit-learn, not MNIST; set TFLAB_DATA_DIR to a folder with its "
        f"four files. {tmp_path}/tflab/mnist lacks train-images-idx3-ubyte, "
        "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (tflab looked "
        "for each name as it is and with .gz). TFLAB_OFFLINE forbids downloads.\n"
    )
    said = "" if data == "MNIST" else stood_in
    assert (done.returncode, without_progress(done.stderr)) == (0, said)
    found = json.loads(done.stdout)
    assert found["data"] == data
    assert [*found["steps"]] == ["4", "16"]
    assert found["environment"]["packages"]["tensorflow"]
    (conv1,) = (row for row in found["rows"] if row["key"] == "conv1")
    assert conv1["cells"]["16"]["calls"] == 5 * found["steps"]["16"]["steps"]
    assert conv1["cells"]["16"].keys() == {
        "calls",
        "total_ns",
        "mean_ns",
        "ns_per_image",
        "share",
        "bytes",
        "gflops",
        "forward_ns",
        "backward_ns",
        "update_ns",
    }


def few_rows() -> Model:
    return lookup("index", np.arange(40) % 10)


def test_default_batches_that_are_too_large_are_said_to_be_the_default():
    with pytest.raises(UsageError) as error:
        compare_batch_sizes(f"{__name__}:few_rows", (1, 16, 64))
    assert str(error.value).startswith(
        "The largest default batch size is 64, but by default only 40 rows of the "
    )


@pytest.mark.parametrize("sizes", [16, ()])
def test_batch_sizes_that_are_no_sequence_are_a_sentence(sizes):
    with pytest.raises(UsageError) as error:
        compare_batch_sizes("toy", sizes)
    assert str(error.value) == (
        f"The batch sizes are {sizes!r}; give a sequence of whole numbers from 1, such as (1, 16, "
        "64)."
    )
