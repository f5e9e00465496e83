"""ResNet-20 for images like CIFAR-10's: a stem, nine residual blocks, and a dense layer.

From He et al., "Deep residual learning for image recognition" (2015), section 4.2, with the
projections of option B, each with batch norm: 272,474 parameters. Batch norm makes training
another computation than inference, so the graph has two heads. They share the stem's
convolution and all variables.

The recipe is the paper's: 64,000 steps of 128 images, about 164 epochs, which takes most of a
day on a few cores; `--epochs` shortens it, and the steps in the rate with it. The data are made up
(`datasets/synthetic.py`), so the accuracy says nothing about CIFAR-10.
"""

from __future__ import annotations

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import synthetic
from tflab.models import layers
from tflab.records.options import Model, Recipe

CHANNELS = (16, 32, 64)  # of each group
BLOCKS = 3  # in a group
WEIGHT_DECAY = 1e-4


def build() -> Model:
    images = tf1.placeholder(tf.float32, [None, 32, 32, 3], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")

    stem = convolution("conv1", images, CHANNELS[0])
    logits = head(stem, training=False)
    test_loss = layers.cross_entropy(labels, logits)

    with tf1.name_scope("training"):
        cross_entropy = layers.cross_entropy(labels, head(stem, training=True))
        loss = tf.add(cross_entropy, decay(), name="loss/Add")
    return Model(
        output=logits,
        feeds={images: "images", labels: "labels"},
        data=synthetic.load,
        loss=loss,
        test_loss=test_loss,
        updates=tuple(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)),
        optimizer=optimizer(0.1),
        recipe=Recipe(epochs=164, batch_size=128, optimizer=optimizer, rate=rate),
    )


def head(hidden: tf.Tensor, training: bool) -> tf.Tensor:
    """Add everything after the first convolution, up to the logits."""
    hidden = relu("relu1", layers.batch_norm("bn1", hidden, training))
    for group, channels in enumerate(CHANNELS, 1):
        with layers.scope(f"group{group}"):
            for block in range(1, BLOCKS + 1):
                with layers.scope(f"block{block}"):
                    hidden = residual(hidden, channels, training)
    with tf1.name_scope("pool"):
        hidden = tf.reduce_mean(hidden, axis=[1, 2], name="Mean")
    return layers.dense("dense1", hidden, units=10)


def residual(images: tf.Tensor, channels: int, training: bool) -> tf.Tensor:
    """Add two convolutions, then their input. Where there are more channels, the side is halved."""
    stride = 1 if images.shape[-1] == channels else 2
    hidden = convolution("conv1", images, channels, stride=stride)
    hidden = relu("relu1", layers.batch_norm("bn1", hidden, training))
    hidden = convolution("conv2", hidden, channels)
    hidden = layers.batch_norm("bn2", hidden, training)
    if stride > 1:
        images = convolution("projection", images, channels, side=1, stride=stride)
        images = layers.batch_norm("projection_bn", images, training)
    with tf1.name_scope("add"):
        hidden = tf.add(hidden, images, name="Add")
    return relu("relu2", hidden)


def convolution(
    name: str, images: tf.Tensor, channels: int, side: int = 3, stride: int = 1
) -> tf.Tensor:
    """Add a convolution without bias, because the batch norm that follows would remove it."""
    return layers.convolution(
        name, images, channels, side, stride=stride, padding="SAME", biased=False
    )


def relu(name: str, inputs: tf.Tensor) -> tf.Tensor:
    with tf1.name_scope(name):
        return tf.nn.relu(inputs, name="Relu")


def decay() -> tf.Tensor:
    """Return the weight decay, which keeps kernels small: WEIGHT_DECAY times half their squares."""
    with tf1.name_scope("decay"):
        kernels = [v for v in tf1.trainable_variables() if v.op.name.endswith("kernel")]
        return WEIGHT_DECAY * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])


def optimizer(rate: float | tf.Tensor) -> tf1.train.Optimizer:
    return tf1.train.MomentumOptimizer(rate, momentum=0.9)


def rate(step: int, epoch: int, steps: int) -> float:
    """Return 0.1; from half of the training on 0.01, and in its last quarter 0.001."""
    return 0.1 * 0.1 ** ((2 * step >= steps) + (4 * step >= 3 * steps))
