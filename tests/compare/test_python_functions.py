"""A step that calls a Python function: only the process that has the function can run it."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.compare import __main__ as command
from tflab.datasets import Dataset
from tflab.records.options import Model

pytestmark = pytest.mark.tensorflow

HERE = "tests.compare.test_python_functions"


def ordered(rows: np.ndarray) -> np.ndarray:
    return np.sort(rows, 1)


def in_numpy(rows: tf.Tensor) -> tf.Tensor:
    return tf1.py_func(ordered, [rows], tf.float32)


def stateless(rows: tf.Tensor) -> tf.Tensor:
    return tf1.py_func(ordered, [rows], tf.float32, stateful=False)


def eager(rows: tf.Tensor) -> tf.Tensor:
    return tf.py_function(lambda values: tf.sort(values, 1), [rows], tf.float32)


def in_function(rows: tf.Tensor) -> tf.Tensor:
    inside = tf.function(lambda: in_numpy(rows))
    return inside()


def model(function, also=None) -> Model:
    def load(split, data_dir=None):
        values = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
        return Dataset("made", split, {"x": values, "t": values[:, :1]})

    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    t = tf1.placeholder(tf.float32, [None, 1], name="t")
    rows = function(x)
    rows.set_shape([None, 4])
    output = rows @ tf1.get_variable("w", [4, 1])
    loss = tf.reduce_mean(tf.square(output - t))
    if also:
        also(x)
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    return Model(output, {x: "x", t: "t"}, load, loss=loss, optimizer=optimizer)


def of_numpy() -> Model:
    return model(in_numpy)


def of_stateless() -> Model:
    return model(stateless)


def of_eager() -> Model:
    return model(eager)


def of_function() -> Model:
    return model(in_function)


def beside() -> Model:
    """The step does not need its Python function."""
    return model(tf.identity, also=in_numpy)


def compare(name: str, *options: str) -> int:
    line = f"--model {HERE}:{name} --batch-sizes 4 --images 16"
    return command.main([*line.split(), *options])


@pytest.mark.parametrize(
    "name, node, phase",
    [
        ("of_numpy", "PyFunc", "training"),
        ("of_stateless", "PyFuncStateless", "inference"),
        ("of_eager", "EagerPyFunc", "training"),
        ("of_function", "PyFunc", "inference"),
    ],
)
def test_only_this_process_runs_a_step_that_calls_a_python_function(
    name, node, phase, capfd, tmp_path
):
    file = tmp_path / "saved.json"
    line = ["--phase", phase, "--configs", "no-grappler", "--format", "json"]
    assert compare(name, *line, "--save", str(file)) == 0
    out, err = capfd.readouterr()
    compared = json.loads(out)
    assert json.loads(file.read_text()) == compared
    assert compared["calls_python"].endswith(node)
    assert compared["steps"]["4"]["steps"] == 4
    assert (compared["cold"], compared["cold_step_ns"], compared["configs"]) == ([], None, [])
    assert "Failed to dump" not in err


def test_a_python_function_that_the_step_does_not_need_changes_nothing(capsys):
    assert compare("beside", "--format", "json") == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["calls_python"] is None
    assert compared["cold_step_ns"] > 0
