"""Toy: `x*y + z`, small enough to follow every node by eye.

x is fed; y and z are trainable scalars that start as 2 and 1. The targets were made with y = 3 and
z = 2: the line 2x + 1 learns to be 3x + 2.
"""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import Dataset
from tflab.records.options import Model

FIRST_Y, FIRST_Z = 2.0, 1.0
TRUE_Y, TRUE_Z = 3.0, 2.0
ROWS = {"train": 1024, "test": 6400}


def build() -> Model:
    x = tf1.placeholder(tf.float32, [None], name="x")
    y = tf1.get_variable("y", initializer=FIRST_Y, use_resource=True)
    z = tf1.get_variable("z", initializer=FIRST_Z, use_resource=True)
    output = x * y + z

    targets = tf1.placeholder(tf.float32, [None], name="targets")
    error = tf.math.squared_difference(output, targets, name="error")
    loss = tf.reduce_mean(error, name="loss")
    return Model(
        output=output,
        feeds={x: "x", targets: "targets"},
        data=line,
        loss=loss,
        optimizer=tf1.train.GradientDescentOptimizer(0.5),
    )


def line(split: str, data_dir: str | None = None) -> Dataset:
    """Return points of the line that training has to find. `data_dir` is not used."""
    rng = np.random.default_rng(sorted(ROWS).index(split))
    x = rng.uniform(-1, 1, ROWS[split]).astype(np.float32)
    return Dataset(
        name=f"points of {TRUE_Y:g}x + {TRUE_Z:g}",
        split=split,
        columns={"x": x, "targets": TRUE_Y * x + TRUE_Z},
    )
