"""A step that calls a Python function: only the process that has the function can run it."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.compare import __main__ as command
from tflab.compare import prepare
from tflab.datasets import Dataset
from tflab.records.options import Model

pytestmark = pytest.mark.tensorflow


def ordered(rows: np.ndarray) -> np.ndarray:
    return np.sort(rows, 1)


def in_numpy(rows: tf.Tensor) -> tf.Tensor:
    return tf1.py_func(ordered, [rows], tf.float32)


CALLS = {
    "PyFunc": in_numpy,
    "PyFuncStateless": lambda rows: tf1.py_func(ordered, [rows], tf.float32, stateful=False),
    "EagerPyFunc": lambda rows: tf.py_function(lambda x: tf.sort(x, 1), [rows], tf.float32),
    "inside/PyFunc": lambda rows: tf.function(lambda: in_numpy(rows))(),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_node_that_calls_a_python_function_is_found_if_the_step_needs_it(name):
    with tf.Graph().as_default() as graph:
        rows = tf1.placeholder(tf.float32, [None, 4])
        ends = CALLS[name](rows), tf.identity(rows)
    start = SimpleNamespace(targets=())
    jobs = [
        SimpleNamespace(
            graph=graph, start=start, step=SimpleNamespace(fetches=[end.name], targets=())
        )
        for end in ends
    ]
    found, beside = map(prepare.python_caller, jobs)
    assert found.endswith(name.rpartition("/")[2])
    assert beside is None or "inside" in name  # functions of the graph count, whoever calls them


def of_numpy() -> Model:
    def load(split, data_dir=None):
        return Dataset("made", split, {"x": np.ones((64, 4), np.float32)})

    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    return Model(in_numpy(x), {x: "x"}, load)


def test_no_other_configuration_of_such_a_step_is_measured(capfd):
    line = f"--model {__name__}:of_numpy --batch-sizes 4 --images 16 --configs no-grappler"
    assert command.main([*line.split(), "--format", "json"]) == 0
    out, err = capfd.readouterr()
    assert "PyFunc calls a Python function that only this process has." in " ".join(err.split())
    compared = json.loads(out)
    assert (compared["steps"]["4"]["steps"], compared["configs"]) == (4, [])
    assert "Failed to dump" not in err
