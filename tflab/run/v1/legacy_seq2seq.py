"""tf.contrib.legacy_seq2seq, which was tf.nn.seq2seq: sequences as lists, one tensor a step.

As in tensorflow/contrib/legacy_seq2seq/python/ops/seq2seq.py, TensorFlow 1.15.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

TINY = 1e-12  # keeps a sum of no weights from dividing by zero


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of each row of the batch, over all steps."""
    if not len(logits) == len(targets) == len(weights):
        lengths = f"{len(logits)}, {len(weights)}, {len(targets)}"
        raise ValueError(f"Lengths of logits, weights, and targets must be the same {lengths}.")
    with tf.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        entropy = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
        total = tf.add_n(
            [
                entropy(
                    labels=target if softmax_loss_function else tf.reshape(target, [-1]),
                    logits=logit,
                )
                * weight
                for logit, target, weight in zip(logits, targets, weights, strict=True)
            ]
        )
        return total / (tf.add_n(weights) + TINY) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Any:
    """The sum of all rows' losses, over the size of the batch where it is averaged."""
    with tf.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        total = tf.reduce_sum(
            sequence_loss_by_example(
                logits, targets, weights, average_across_timesteps, softmax_loss_function
            )
        )
        if not average_across_batch:
            return total
        return total / tf.cast(tf.shape(targets[0])[0], total.dtype)


def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A cell step by step; `loop_function(output, step)` makes the next input of an output."""
    with tf.variable_scope(scope or "rnn_decoder"):
        state, outputs = initial_state, list[Any]()
        for step, given in enumerate(decoder_inputs):
            if loop_function is not None and outputs:
                with tf.variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], step)
            if step:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
        return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder, and a decoder of a cell of its own that begins with the encoder's last state."""
    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf.nn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


__all__ = ["basic_rnn_seq2seq", "rnn_decoder", "sequence_loss", "sequence_loss_by_example"]
