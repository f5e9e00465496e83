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


def ordered(rows: np.ndarray) -> np.ndarray:
    return np.sort(rows, 1)


def in_numpy(rows: tf.Tensor) -> tf.Tensor:
    return tf1.py_func(ordered, [rows], tf.float32)


def of_numpy() -> Model:
    def load(split, data_dir=None):
        return Dataset("made", split, {"x": np.ones((64, 4), np.float32)})

    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    return Model(in_numpy(x), {x: "x"}, load)


def test_another_configuration_of_such_a_step_fails_with_a_sentence(capfd):
    line = f"--model {__name__}:of_numpy --batch-sizes 4 --images 16 --configs no-grappler"
    assert command.main([*line.split(), "--format", "json"]) == 1
    compared = json.loads(capfd.readouterr().out)
    assert (compared["steps"]["4"]["steps"], compared["configs"]) == (4, [])
    assert compared["failure"].startswith("The step calls a Python function, which the processes")
