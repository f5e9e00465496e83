"""Convnet: the network of PyTorch's MNIST sample, for 28 x 28 input, with its dropout and Adadelta.

Convolutions of 32 and 64 channels with 3 x 3 kernels, pool, dense 128 and 10: 1,199,882
parameters. Dropout is for training only, so the graph has two heads. They share everything before
the first dropout and all variables.

As in the sample (github.com/pytorch/examples, mnist/main.py), the images are normalised before
they are fed: a measured step does not include that.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import Dataset, mnist
from tflab.models import layers
from tflab.records.options import Model, Recipe

MEAN, DEVIATION = 0.1307, 0.3081  # of all pixels of MNIST's training images


def build() -> Model:
    images = tf1.placeholder(tf.float32, [None, 28, 28, 1], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")

    hidden = tf.nn.relu(layers.convolution("conv1", images, 32, side=3), name="conv1/Relu")
    hidden = tf.nn.relu(layers.convolution("conv2", hidden, 64, side=3), name="conv2/Relu")
    hidden = layers.flatten(layers.pool("pool", hidden))
    logits = head(hidden)
    test_loss = layers.cross_entropy(labels, logits)

    step = tf1.get_variable("step", initializer=np.int64(0), trainable=False, use_resource=True)
    with tf1.name_scope("training"):
        loss = layers.cross_entropy(labels, head(hidden, step))
        with tf1.control_dependencies([loss]):  # after all masks have been drawn
            next_step = step.assign_add(1, read_value=False)
    return Model(
        output=logits,
        feeds={images: "images", labels: "labels"},
        data=load,
        loss=loss,
        test_loss=test_loss,
        updates=(next_step,),
        optimizer=optimizer(1.0),
        recipe=Recipe(epochs=14, batch_size=64, optimizer=optimizer, rate=rate),
    )


def head(hidden: tf.Tensor, step: tf.Variable | None = None) -> tf.Tensor:
    """Add the dense layers; if a step is given, also dropout, whose masks follow from it."""
    if step is not None:
        hidden = layers.dropout("dropout1", hidden, percent=25, seed=(1, step))
    hidden = tf.nn.relu(layers.dense("dense1", hidden, units=128), name="dense1/Relu")
    if step is not None:
        hidden = layers.dropout("dropout2", hidden, percent=50, seed=(2, step))
    return layers.dense("dense2", hidden, units=10)


def load(split: str, data_dir: str | Path | None = None) -> Dataset:
    dataset = mnist.load(split, data_dir, side=28)
    images = (np.asarray(dataset.columns["images"]) - MEAN) / DEVIATION
    return replace(dataset, columns={**dataset.columns, "images": images})


def optimizer(rate: float | tf.Tensor) -> tf1.train.Optimizer:
    return tf1.train.AdadeltaOptimizer(rate, rho=0.9, epsilon=1e-6)  # PyTorch's defaults


def rate(step: int, epoch: int, steps: int) -> float:
    """Return 1.0, and 0.7 times as much after every epoch."""
    return 0.7 ** (step // epoch)
