"""A slow model: a walk ends after few steps more than those that were asked for."""

import json
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.commands import run_here
from tests.examples.models import model_of, numbers
from tflab.lifecycle import __main__ as command
from tflab.lifecycle import gradient_check, graph_copies

pytestmark = pytest.mark.tensorflow

STEP_S = 0.1
BUDGET_S = 1  # instead of 10 and 20 s: to this step it is as little as they are to longer ones
ASKED = 2 * (1 + 2)  # warm-up and measured steps, each once untraced and once traced
OTHERS = 48  # gradients and formulas that are checked, values, and captures of three batch sizes

begun = []


def pause(x):
    begun.append(None)
    time.sleep(STEP_S)
    return x


def loss_of(x, w):
    late = tf.ensure_shape(tf.numpy_function(pause, [x], tf.float32), [None, 4])
    return tf.reduce_mean(tf.square(tf.matmul(late, w)), name="loss")


build = model_of(loss_of, {"w": np.ones([4, 20], np.float32)}, numbers, shape=[None, 4])


def test_a_slow_model_runs_few_steps_that_nobody_asked_for(tmp_path, monkeypatch):
    for module in (gradient_check, graph_copies):
        monkeypatch.setattr(module, "SECONDS", BUDGET_S)
    model = ("--model", f"{__name__}:build", "--format", "json", "--logdir", str(tmp_path / "logs"))
    begun.clear()
    done = run_here(command.main, *model, "--steps", "2", "--warmup", "1")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["stages"]) == 4
    assert ASKED < len(begun) < ASKED + OTHERS
