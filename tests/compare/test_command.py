"""Compare: every image is worked on once at each batch size, and every nanosecond has one row."""

import json
import os
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, partial
from math import ceil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.approval import approve
from tests.commands import in_one_process
from tflab.analysis import memory
from tflab.analysis.row_labels import KEYS, RUNTIME
from tflab.compare import SweepOptions, compare_batch_sizes, configurations, prepare, sweep
from tflab.compare import __main__ as compare
from tflab.datasets import Dataset
from tflab.errors import TflabError
from tflab.records.options import Model

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


def run(line: str) -> int:
    """The exit status of a command line."""
    return compare.main(line.split())


@every_size
def test_every_node_runs_once_for_each_batch_and_totals_are_plain_sums_of_step_stats(lenet, size):
    found, sums = lenet.by["node"], Counter()
    for stats in lenet.step_stats[size]:
        for device in stats.dev_stats:
            for node in device.node_stats:
                sums[node.node_name] += node.all_end_rel_nanos
    del sums[SOURCE]
    assert {row.key: row.cells[size].total_ns for row in found.rows} == sums
    steps = ceil(IMAGES / size)
    assert {row.cells[size].calls for row in found.rows} == {steps}
    assert (found.steps[size].steps, found.steps[size].images) == (steps, IMAGES)
    assert len(lenet.sweep[0][size].untraced_ns) == steps


@every_grouping
@every_size
def test_rows_of_every_grouping_add_up_to_the_same_time(lenet, by, size):
    found = lenet.by[by]
    cells = [row.cells[size] for row in found.rows]
    same = [row.cells[size] for row in lenet.by["node"].rows]
    for name in ("total_ns", "calls", "image_ns"):
        total = sum(getattr(cell, name) for cell in same)
        assert sum(getattr(cell, name) for cell in cells) == pytest.approx(total)
    assert sum(cell.share for cell in cells) == pytest.approx(1)
    steps, total = found.steps[size], sum(cell.total_ns for cell in cells)
    assert steps.ops_ns * steps.steps == pytest.approx(total)
    for cell in cells:
        assert cell.mean_ns == pytest.approx(cell.total_ns / cell.calls)
        assert cell.image_ns == pytest.approx(cell.total_ns / IMAGES)
    assert steps.peak_bytes == memory.peak_bytes(lenet.sweep[0][size].runs) > 0


LAYERS = ["conv1", "pool1", "conv2", "pool2", "dense1", "dense2", "dense3"]


def test_every_row_has_its_nodes(lenet):
    layers = {row.key: row for row in lenet.by["layer"].rows}
    assert {*layers} == {*LAYERS, "flatten", RUNTIME}
    assert [key for key in layers if key in LAYERS] == LAYERS  # as data pass through them
    assert layers["conv1"].fused_from == ("conv1/Conv2D", "conv1/BiasAdd")
    assert layers["dense3"].fused_from == ("dense3/MatMul",)
    assert layers[RUNTIME].ops == ("_Arg", "_Retval")
    lines = [row.key for row in lenet.by["line"].rows]
    assert [key for key in lines if not key.startswith("lenet.py:")] == [RUNTIME]


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


def test_how_many_images_are_processed_without_a_number(monkeypatch):
    monkeypatch.setattr(prepare, "TRAINING_IMAGES", 64)
    for sizes, chosen, images in (
        ((16,), SweepOptions(phase="training"), {16: 64}),
        ((64,), None, {64: 6400}),  # all of the test split
        ((1, 16), SweepOptions(seconds=1e-9), {1: 16, 16: 16}),
        ((16,), SweepOptions(images=48, seconds=100), {16: 48}),
        ((4, 16), SweepOptions(steps=3), {4: 48, 16: 48}),
    ):
        found = compare_batch_sizes("toy", sizes, chosen)
        assert {size: row.images for size, row in found.steps.items()} == images


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


@pytest.mark.parametrize(
    "stop, images", [(20, {"1": 18, "16": 16}), (10, {"1": 9})], ids=["second round", "first"]
)
def test_ctrl_c_prints_what_was_measured_of_every_batch_size(interrupt, capsys, stop, images):
    """A round is 16 steps of batch 1 and one of batch 16."""
    interrupt(stop)
    assert run("--model toy --batch-sizes 1 16 --images 64 --by node --format json") == 130
    out, err = capsys.readouterr()
    found = json.loads(out)
    steps = {size: row["steps"] for size, row in found["steps"].items()}
    assert (found["interrupted"], err) == (True, "")
    assert {size: row["images"] for size, row in found["steps"].items()} == images
    for row in found["rows"]:
        assert {size: cell["calls"] for size, cell in row["cells"].items()} == steps


def test_ctrl_c_before_anything_was_measured_is_only_that(interrupt, capsys):
    interrupt(1)
    assert run("--model toy --batch-sizes 1 --images 64") == 130
    assert capsys.readouterr() == ("", "tflab: interrupted.\n")


@pytest.mark.parametrize(
    "error, status, said",
    [
        (KeyboardInterrupt(), 130, ""),
        (TflabError("It ended with status -9."), 1, "tflab: It ended with status -9.\n"),
    ],
)
def test_what_ends_the_configurations_keeps_the_sweep_and_the_observations(
    monkeypatch, capsys, error, status, said
):
    def once(jobs, *_):
        """Two observations, each of a process with default, its control and the others."""
        place = {(0, name): {16: [100, 110]} for name in jobs}
        yield place
        yield place
        raise error

    monkeypatch.setattr(configurations, "observations", once)
    line = "--model toy --batch-sizes 16 --images 64 --configs passes no-grappler --format json"
    assert run(line) == status
    out, err = capsys.readouterr()
    assert err == said
    found = json.loads(out)
    assert (found["interrupted"], found["steps"]["16"]["steps"]) == (status == 130, 4)
    names = [(row["config"], row["untraced_ns"]["median"]) for row in found["configs"]]
    raced = [f"without {one['name']}" for one in found["passes"] if one["has_switch"]]
    assert {"without model_pruner", "without constant_folding"} & {*raced}
    assert names == [(name, 105) for name in ("default", "no-grappler", *raced)]
    assert all(one["changed_nodes"] and one["first_run_ns"] > 0 for one in found["passes"])


# Steps that fail


def lookup(values: np.ndarray) -> Model:
    """A model that looks the 'index' of its data up in a table of ten."""

    def load(split, data_dir=None):
        return Dataset("indices", split, {"index": values.astype(np.int32)})

    indices = tf1.placeholder(tf.int32, [None], name="indices")
    return Model(tf.gather(tf.range(10.0), indices), {indices: "index"}, load)


good, few_rows = partial(lookup, np.arange(64) % 10), partial(lookup, np.arange(40) % 10)
# The bad row is the 51st, beyond the steps that warm up
bad_row = partial(lookup, np.where(np.arange(64) == 50, 99, 0))
bad_shape = partial(lookup, np.zeros((64, 2)))


def test_a_step_that_fails_is_one_sentence_and_status_1(capsys):
    assert run(f"--model {__name__}:bad_shape --batch-sizes 4 16 --images 64") == 1
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == (
        "",
        "tflab: The column 'index' of indices holds int32 of shape (64, 2), which cannot be fed to "
        "'indices:0': int32 of shape (None,).",
    )


def test_a_step_that_fails_half_way_keeps_what_was_measured(capsys):
    line = "--model tests.compare.test_command:bad_row --batch-sizes 4 16 --images 64"
    assert run(f"{line} --format json") == 1
    out, err = capsys.readouterr()
    said = "The runtime refused the step: indices[2] = 99 is not in [0, 10) (in node 'GatherV2')."
    assert err.splitlines()[-1] == f"tflab: {said}"
    found = json.loads(out)
    assert found["failure"] == said
    assert 0 < found["steps"]["4"]["images"] < 64


def of_four() -> Model:
    model = lookup(np.zeros(64))
    return replace(model, output=tf.reshape(model.output, [4], "four"))


def test_a_batch_size_that_is_refused_leaves_the_others(capsys):
    line = f"--model {__name__}:of_four --batch-sizes 2 4 --steps 3 --format json"
    assert run(line) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert ([*found["steps"]], found["images"]) == (["4"], 12)
    assert found["failure"].startswith("Batch size 2: The runtime refused the step: Input to resh")
    assert err.splitlines()[-1] == f"tflab: {found['failure']}"


WRONG = (
    *("--batch-sizes 0", "--batch-sizes few", "--batch-sizes 16 1 16", "--images 0"),
    *("--images 8 --steps 8", "--model toy --batch-sizes 1 6401"),
    *(f"--model toy --batch-sizes 16 {rest}" for rest in ("--steps 401", "--images 8")),
    "--model tests.compare.test_command:few_rows",
    "--model tests.compare.test_command:good --phase training",
    *("--configs xlaa", "--phase inferense", "--model toy --plots /dev/null/plots"),
    *("--by color", "--format yaml", "--model lenat", "--model toy --configs gpu"),
)


def test_a_wrong_argument_is_one_sentence_and_status_2(capsys, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [])
    said = []
    for line in WRONG:
        assert run(line) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        said.append(f"compare {line}\n  {err}")
    approve("compare-errors.txt", "".join(said))


def test_configurations_are_measured_at_every_batch_size_against_default(monkeypatch):
    for name, value in {"ROUNDS": 1, "TURNS": 2, "A_SESSION": 1, "OBSERVATIONS": 3}.items():
        monkeypatch.setattr(configurations, name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    configs = ("default", "no-grappler", "one-thread")
    chosen = SweepOptions(images=64, configs=configs)
    found = compare_batch_sizes("toy", (4, 16), chosen).configs
    assert [(row.batch_size, row.config) for row in found] == [
        (size, config) for size in (4, 16) for config in configs
    ]
    for row in found:
        assert (row.verdict is None) == (row.config == "default")
        assert row.verdict is None or row.verdict.observations == 3


# The command


@pytest.mark.thorough
def test_plots_go_to_a_new_folder_and_nothing_is_overwritten(tmp_path, capsys):
    folder = tmp_path / "plots"
    line = f"--model toy --batch-sizes 4 8 --images 8 --by layer --plots {folder}"
    assert run(line) == 0
    assert "of the op time" in (folder / "batch-4-layers.svg").read_text()
    assert capsys.readouterr().out.endswith(f"\nThe plots are in {folder}\n")
    names = ("batch-4-layers", "batch-8-layers", "batch_sizes")
    kinds = {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == kinds
    assert run(line) == 2
    assert "remove it or give another path" in capsys.readouterr().err


def test_plots_stay_if_the_comparison_cannot_be_saved(tmp_path, capsys, monkeypatch):
    file, folder = tmp_path / "saved.json", tmp_path / "plots"
    measured = compare.compare_batch_sizes

    def meanwhile(*given, options):
        file.write_text("of another")
        return measured(*given, options=options)

    monkeypatch.setattr(compare, "compare_batch_sizes", meanwhile)
    options = f"--save {file} --plots {folder}"
    assert run(f"--model toy --batch-sizes 4 --images 8 {options}") == 2
    assert f"The comparison '{file}' exists already" in capsys.readouterr().err
    assert file.read_text() == "of another"
    assert {path.name for path in folder.iterdir()} == {"batch-4-ops.png", "batch-4-ops.svg"}


@pytest.mark.parametrize(
    "data", ["digits, not MNIST", pytest.param("MNIST", marks=pytest.mark.mnist)]
)
def test_json_goes_to_standard_output(capsys, data, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("--model lenet --batch-sizes 4 16 --images 32 --by layer --format json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["data"], [*found["steps"]]) == (data, ["4", "16"])
    assert found["environment"]["packages"]["tensorflow"]
    (conv1,) = (row for row in found["rows"] if row["key"] == "conv1")
    assert conv1["cells"]["16"]["calls"] == 5 * found["steps"]["16"]["steps"]
    assert {"calls", "total_ns", "mean_ns", "ns_per_image", "share", "bytes", "gflops"} <= {
        *conv1["cells"]["16"]
    }
