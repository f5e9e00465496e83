"""A slow model: a walk ends after few steps more than those that were asked for."""

import json
import time

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.commands import run_here
from tflab.datasets import Dataset
from tflab.lifecycle import __main__ as command
from tflab.lifecycle import check_points, gradient_check
from tflab.records.options import Model

pytestmark = pytest.mark.tensorflow

STEP_S = 0.1
BUDGET_S = 1  # instead of 10 and 20 s: to this step it is as little as they are to longer ones
ASKED = 2 * (1 + 2)  # warm-up and measured steps, each once untraced and once traced
OTHERS = 42  # gradients and formulas that are checked, values, and captures of two batch sizes

begun = []


def pause(x):
    begun.append(None)
    time.sleep(STEP_S)
    return x


def build():
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    late = tf.ensure_shape(tf.numpy_function(pause, [x], tf.float32), [None, 4])
    w = tf1.get_variable("w", [4, 20], use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.matmul(late, w)), name="loss")
    sgd = tf1.train.GradientDescentOptimizer(0.1)
    return Model(output=loss, feeds={x: "x"}, data=ones, loss=loss, optimizer=sgd)


def ones(split, data_dir):
    return Dataset(name="ones", split=split, columns={"x": np.ones([64, 4], np.float32)})


def test_a_slow_model_runs_few_steps_that_nobody_asked_for(tmp_path, monkeypatch):
    for module in (gradient_check, check_points):
        monkeypatch.setattr(module, "SECONDS", BUDGET_S)
    model = ("--model", f"{__name__}:build", "--format", "json", "--logdir", str(tmp_path / "logs"))
    begun.clear()
    done = run_here(command.main, *model, "--steps", "2", "--warmup", "1")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["stages"]) == 4
    assert ASKED < len(begun) < ASKED + OTHERS
