"""Observing: what a measurement keeps of itself, on small real graphs."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tests.commands import in_one_process
from tests.measurements_by_hand import measurement
from tflab import lifecycle
from tflab.compare import __main__ as compare
from tflab.compare import observing
from tflab.datasets import Dataset
from tflab.errors import TflabError
from tflab.measurements import contrast, files
from tflab.records.options import Model, Options
from tflab.runtime import fingerprint, session

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """What needs processes of its own has none, and they are few and short."""
    in_one_process(monkeypatch)
    monkeypatch.setattr(observing, "MOST", 3)
    monkeypatch.setattr(observing, "A_PROCESS_S", 0.0)


def test_what_was_measured_is_kept_whole_and_can_be_compared(tmp_path, capsys):
    path = tmp_path / "toy.json.gz"
    line = f"--model toy --batch-sizes 4 16 --images 36 --trace-every 2 --save {path}"
    assert compare.main([*line.split(), "--by", "node"]) == 0
    out = capsys.readouterr().out
    assert out.endswith(
        f"\nThe measurement is in {path}, with 3 observations from separate processes\n"
    )
    kept = files.read(str(path))
    comparison, observed = kept.comparison, kept.observed
    assert (comparison.model, comparison.by, comparison.observed) == ("toy", "node", None)
    # 36 rows in rounds of 16: 4, 4 and 1 steps of 4, and 1, 1 and 1 of 16; every other one traced
    assert {size: [*map(len, turns)] for size, turns in observed.untraced_ns.items()} == {
        4: [4, 4, 1],
        16: [1, 1, 1],
    }
    assert {size: [*map(len, turns)] for size, turns in observed.traced_ns.items()} == {
        4: [2, 2, 1],
        16: [1, 1],
    }
    for process in observed.processes:
        for size in (4, 16):
            turns = process.untraced_ns[size]
            assert {len(turn) for turn in turns} == {observing.UNTRACED}
            assert {len(turn) for turn in process.traced_ns[size]} == {observing.TRACED}
            assert len(turns) >= observing.SESSIONS
            rows = {row.key for row in comparison.tables[size]}
            assert process.rows_ns[size].keys() == rows
            assert min(process.rows_ns[size].values()) > 0
    assert kept.environment["Framework"] == f"tensorflow {tf.__version__}"
    assert kept.options["graph passes off"] == "none"
    assert compare.main([str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "toy"
    again = replace(kept, when="2026-03-01T12:00:00Z")
    assert len(contrast.contrast({"a": kept, "b": again}).differences) == 0


def test_what_is_in_the_way_is_said_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare, "measured", None)
    (tmp_path / "a").write_text("mine")
    assert compare.main(["--model", "toy", "--save", str(tmp_path / "a")]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ending", "status", "interrupted"),
    [(KeyboardInterrupt(), 130, True), (TflabError("The process died."), 1, False)],
)
def test_the_processes_that_have_ended_are_kept(
    monkeypatch, tmp_path, capsys, ending, status, interrupted
):
    """Whether Ctrl-C came then, or one failed."""
    calls = []

    def call(*args):
        calls.append(args)
        if len(calls) == 2:
            raise ending
        return observing.observed_here(*args[1:])

    monkeypatch.setattr(observing.child, "call", call)
    monkeypatch.setattr("tflab.runtime.own_process.cold", lambda job, values, size: (1_000, []))
    path = tmp_path / "a.json.gz"
    line = f"--model toy --batch-sizes 4 --images 8 --save {path}"
    assert compare.main(line.split()) == status
    assert "with 1 observation from separate processes" in capsys.readouterr().out
    kept = files.read(str(path))
    assert (kept.comparison.interrupted, len(kept.observed.processes)) == (interrupted, 1)
    assert kept.comparison.failure == (None if interrupted else "The process died.")


def test_the_name_of_a_graph_from_a_file_is_kept_without_its_folder(tmp_path):
    (tmp_path / "graph.pb").write_bytes(b"")
    assert observing.without_folders(str(tmp_path / "graph.pb")) == "graph.pb"
    assert observing.without_folders("package.module:build") == "package.module:build"


def test_variables_that_matter_are_kept_and_others_are_not(monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    monkeypatch.setenv("MY_SECRET", "x")
    kept = measurement()
    whole = replace(kept.comparison, observed=kept.observed)
    environment = observing.measurement(whole, Options()).environment
    assert environment["TF_ENABLE_ONEDNN_OPTS"] == "0"
    assert "MY_SECRET" not in environment


# The fingerprint


def model(
    units: int = 3, weight: float = 1.0, axis: int = 1, name: str = "x", unused: bool = False
):
    """A product with a constant, and a sum along an axis, of which each part can be another."""

    def build() -> Model:
        x = tf1.placeholder(tf.float32, [None, 2], name=name)
        product = tf.matmul(x, tf.constant(weight, shape=[2, units], name="w"))
        if unused:
            tf.nn.relu(product)
        rows = np.arange(8, dtype=np.float32).reshape(4, 2)
        return Model(
            output=tf.reduce_sum(product, axis, name="out"),
            feeds={x: "x"},
            data=lambda split, _: Dataset("made up", split, {"x": rows}),
        )

    return build


def printed(monkeypatch, **changes):
    monkeypatch.setattr(f"{__name__}.chosen", model(**changes), raising=False)
    *_, backward = lifecycle.walk(f"{__name__}:chosen", stop="backward")
    step = session.step_of(backward.program, [backward.program.model.output.name])
    return fingerprint.of_step(backward.program, step, "test")


def test_a_fingerprint_counts_what_the_step_needs(monkeypatch):
    found = printed(monkeypatch)
    assert found.ops == {"Const": 2, "MatMul": 1, "Placeholder": 1, "Sum": 1}
    assert (found.nodes, found.edges) == (5, 4)
    assert found.feeds == ("x:0 float32 [?, 2]",)
    assert found == printed(monkeypatch)


@pytest.mark.parametrize(
    ("change", "differ"),
    [
        ({"units": 4}, {"weights"}),
        ({"axis": 0}, {"graph"}),
        ({"name": "y"}, {"graph", "feeds"}),
        ({"weight": 2.0}, {"weights"}),
        ({"unused": True}, set()),
    ],
)
def test_a_fingerprint_tells_structure_from_weights(monkeypatch, change, differ):
    usual, other = printed(monkeypatch), printed(monkeypatch, **change)
    names = ("graph", "nodes", "edges", "ops", "feeds", "data", "weights")
    assert {name for name in names if getattr(usual, name) != getattr(other, name)} == differ


def test_a_model_whose_weights_are_drawn_has_none_in_its_fingerprint():
    *_, backward = lifecycle.walk("lenet", stop="backward")
    step = session.step_of(backward.program, [backward.program.model.output.name])
    found = fingerprint.of_step(backward.program, step, "test")
    assert found.weights is None
    assert found.ops["Conv2D"] == 2
    train = fingerprint.of_step(backward.program, step, "train")
    assert (train.graph, train.data == found.data) == (found.graph, False)


def test_weights_in_a_file_are_known_by_what_is_in_it_and_not_by_where_it_is(tmp_path):
    def weights(folder):
        *_, backward = lifecycle.walk(str(folder), stop="backward")
        step = session.step_of(backward.program, backward.program.model.fetches)
        return fingerprint.of_step(backward.program, step, "test").weights

    graphs.saved_model_v1(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "same")
    found = weights(tmp_path / "one")
    assert found is not None and weights(tmp_path / "same") == found
    shutil.rmtree(tmp_path / "one")
    graphs.saved_model_v1(tmp_path / "one")  # its weights are drawn anew
    assert weights(tmp_path / "one") not in (found, None)


def test_a_quick_step_is_not_run_until_the_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(observing, "A_PROCESS_S", 1e9)
    monkeypatch.setattr(observing, "TURNS", 2)
    path = tmp_path / "toy.json.gz"
    line = f"--model toy --batch-sizes 4 --images 8 --save {path}"
    assert compare.main(line.split()) == 0
    for process in files.read(str(path)).observed.processes:
        assert len(process.untraced_ns[4]) == len(process.traced_ns[4]) == 2 * observing.SESSIONS
