"""Old rnn: the functions of tf.nn and tensorflow.models.rnn.rnn, before TensorFlow 1.0."""

from __future__ import annotations

import tensorflow.compat.v1 as tf

rnn, bidirectional_rnn = tf.nn.static_rnn, tf.nn.static_bidirectional_rnn
state_saving_rnn = tf.nn.static_state_saving_rnn

__all__ = ["bidirectional_rnn", "rnn", "state_saving_rnn"]
