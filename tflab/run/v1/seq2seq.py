"""tf.contrib.seq2seq.sequence_loss: the cross entropy of sequences in one tensor.

As in tensorflow/contrib/seq2seq/python/ops/loss.py, TensorFlow 1.15.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

TINY = 1e-12  # keeps a sum of no weights from dividing by zero


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The loss of logits [batch, time, classes] and targets [batch, time], weighted.

    Averaged over both axes it is a scalar, over one of them a vector of the other, else it is
    [batch, time]. Of the time the average is by weight; so is that of both, together.
    """
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = tf.shape(logits)[2]
        flat, labels = tf.reshape(logits, [-1, classes]), tf.reshape(targets, [-1])
        entropy = (
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat)
            if softmax_loss_function is None
            else softmax_loss_function(labels=labels, logits=flat)
        )
        if average_across_timesteps and average_across_batch:
            by_weight = entropy * tf.reshape(weights, [-1])
            return tf.reduce_sum(by_weight) / (tf.reduce_sum(weights) + TINY)
        losses = tf.reshape(entropy, tf.shape(logits)[:2]) * weights
        losses.set_shape(logits.shape[:2])
        if average_across_timesteps or average_across_batch:
            axis = 1 if average_across_timesteps else 0
            return tf.reduce_sum(losses, axis) / (tf.reduce_sum(weights, axis) + TINY)
        return losses


__all__ = ["sequence_loss"]
