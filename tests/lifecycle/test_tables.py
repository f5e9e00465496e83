"""A model with a table and with local variables: all stages start with their initial values."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.options import Model, Options

pytestmark = pytest.mark.tensorflow

NAME = f"{__name__}:build"


def build() -> Model:
    def load(split, data_dir=None):
        random = np.random.default_rng(0)
        return Dataset("made", split, {"id": random.integers(0, 9, 64), "t": random.random(64)})

    ids = tf1.placeholder(tf.int64, [None], name="ids")
    target = tf1.placeholder(tf.float32, [None], name="target")
    keys = tf.range(9, dtype=tf.int64)
    pairs = tf.lookup.KeyValueTensorInitializer(keys, keys % 3)
    weights = tf1.get_variable("weights", [3])
    output = tf.gather(weights, tf.lookup.StaticHashTable(pairs, 0).lookup(ids))
    loss = tf.reduce_mean(tf.square(output - target))
    _, mean = tf1.metrics.mean(loss)
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    feeds = {ids: "id", target: "t"}
    return Model(output, feeds, load, loss=loss, optimizer=optimizer, updates=[mean])


def test_its_gradients_are_checked_and_its_steps_run():
    *_, backward, _, execution = lifecycle.walk(NAME, Options(batch_size=8, steps=3, warmup=1))
    (check,) = backward.gradient_checks
    assert check.max_relative_error < 1e-5
    assert execution.steps == 3
