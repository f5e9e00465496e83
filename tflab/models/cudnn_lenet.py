"""LeNet as it is written on a bare device library: about a thousand lines of C++ and cuDNN there.

For 28 x 28 input: conv 20, pool, conv 50, pool, dense 500 and 10, with 5 x 5 kernels and one ReLU,
between the dense layers: 431,080 parameters. Network, rate and batch size are those of
github.com/tbennun/cudnn-training, which has them from Caffe's LeNet. It trains for 1,000 steps.
A recipe counts in epochs: the one epoch here is 938 steps of 64 images.
"""

from __future__ import annotations

from functools import partial

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import mnist
from tflab.models import layers
from tflab.records.options import Model, Recipe


def build() -> Model:
    images = tf1.placeholder(tf.float32, [None, 28, 28, 1], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")

    hidden = layers.pool("pool1", layers.convolution("conv1", images, 20, side=5))
    hidden = layers.pool("pool2", layers.convolution("conv2", hidden, 50, side=5))
    hidden = layers.dense("dense1", layers.flatten(hidden), units=500)
    logits = layers.dense("dense2", tf.nn.relu(hidden, name="dense1/Relu"), units=10)
    return Model(
        output=logits,
        feeds={images: "images", labels: "labels"},
        data=partial(mnist.load, side=28),
        loss=layers.cross_entropy(labels, logits),
        optimizer=optimizer(rate(0, 0, 0)),
        recipe=Recipe(epochs=1, batch_size=64, optimizer=optimizer, rate=rate),
    )


def optimizer(rate: float | tf.Tensor) -> tf1.train.Optimizer:
    return tf1.train.GradientDescentOptimizer(rate)


def rate(step: int, epoch: int, steps: int) -> float:
    """Return Caffe's learning rate `inv`, which falls slowly, however long the training is."""
    return 0.01 * (1 + 1e-4 * step) ** -0.75
