"""tensorflow.examples.tutorials.mnist.mnist: the network of the tutorial "TensorFlow Mechanics"."""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v1 as tf

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """The logits of images [n, 784]: two layers with relu, and a linear one."""
    flowing, rows = images, IMAGE_PIXELS
    for name, columns in (("hidden1", hidden1_units), ("hidden2", hidden2_units)):
        flowing, rows = tf.nn.relu(layer(flowing, rows, columns, name)), columns
    return layer(flowing, rows, NUM_CLASSES, "softmax_linear")


def layer(inputs: Any, rows: int, columns: int, name: str) -> Any:
    with tf.name_scope(name):
        first = tf.truncated_normal([rows, columns], stddev=1 / math.sqrt(rows))
        weights = tf.Variable(first, name="weights")
        biases = tf.Variable(tf.zeros([columns]), name="biases")
        return tf.matmul(inputs, weights) + biases


def loss(logits: Any, labels: Any) -> Any:
    labels = tf.cast(labels, tf.int64)
    return tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    tf.summary.scalar("loss", loss)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many of the labels are the largest logit."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
