"""Models with one planted problem each, small enough to run in a second, and one without."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import Dataset
from tflab.records.options import Model

IMAGES = 24


def model(x: tf.Tensor, output: tf.Tensor, images: int = IMAGES) -> Model:
    """Of data in the shape of x, made up."""

    def data(split, data_dir=None):
        shape = (images, *x.shape.as_list()[1:])
        return Dataset("made up", split, {"x": np.full(shape, 0.5, np.float32)})

    return Model(output, {x: "x"}, data)


def placeholder(*shape: int) -> tf.Tensor:
    return tf1.placeholder(tf.float32, [None, *shape], name="x")


def weights(name: str, *shape: int) -> tf.Variable:
    initializer = tf1.glorot_uniform_initializer()
    return tf1.get_variable(name, shape, initializer=initializer, use_resource=True)


def useless_transposes() -> Model:
    hidden = x = placeholder(64, 64)
    for turn in range(10):
        hidden = tf.transpose(hidden, [0, 2, 1] if turn % 2 else [2, 1, 0])  # planted
        hidden = tf.nn.relu(hidden + 0.1 * turn)
    return model(x, tf.reduce_sum(hidden))


def small_ops_in_a_loop() -> Model:
    x = placeholder(8)
    _, y = tf.while_loop(
        lambda turn, _: turn < 100,
        lambda turn, value: (turn + 1, tf.tanh(value * 0.5 + 0.1)),
        [tf.constant(0), x],
    )
    return model(x, tf.matmul(y, weights("w", 8, 8)))


def small_ops_one_by_one() -> Model:
    y = x = placeholder(8)
    for _ in range(150):
        y = tf.tanh(y * 0.5)  # planted
    return model(x, y)


def feed_too_large() -> Model:
    """Of 4 MB that are fed for every image, 32 bytes are used."""
    x = placeholder(1024, 1024)
    return model(x, tf.matmul(x[:, :8, 0], weights("w", 8, 8)))


def naive_softmax() -> Model:
    """Inputs of 0.5, 200 times as large: their exponential is more than a float32 holds."""
    x = placeholder(4)
    exponentials = tf.exp(200 * x, name="exponentials")  # planted
    softmax = exponentials / tf.reduce_sum(exponentials, 1, keepdims=True)
    return model(x, tf.reduce_mean(-tf.math.log(softmax), name="output"), images=64)


def one_op_on_the_chain() -> Model:
    """One product that others wait for, beside small ones that nobody waits for."""
    x = placeholder(64)
    hidden = tf.nn.relu(tf.matmul(x, weights("in", 64, 1024)))
    large = tf.matmul(hidden, weights("large", 1024, 4096), name="planted")
    others = [tf.nn.relu(tf.matmul(x, weights(f"w{n}", 64, 64))) for n in range(3)]
    return model(x, tf.concat([large, *others], 1))
