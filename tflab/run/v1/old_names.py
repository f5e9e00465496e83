"""Old names: functions that TensorFlow renamed before 1.0, or whose arguments it changed.

The changes are those of tensorflow/tools/compatibility/tf_upgrade.py, TensorFlow 1.0.
"""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow.compat.v1 as tf

from tflab.run.v1 import note

mul, sub, neg = tf.multiply, tf.subtract, tf.negative
pack, unpack = tf.stack, tf.unstack
inv, complex_abs, listdiff = tf.reciprocal, tf.abs, tf.setdiff1d
batch_cholesky, batch_matrix_inverse = tf.linalg.cholesky, tf.linalg.inv
batch_matrix_diag, batch_matrix_determinant = tf.linalg.diag, tf.linalg.det
# Of tf.nn and tensorflow.models.rnn.rnn
rnn, bidirectional_rnn = tf.nn.static_rnn, tf.nn.static_bidirectional_rnn
state_saving_rnn = tf.nn.static_state_saving_rnn
SummaryWriter = tf.summary.FileWriter  # which was tf.train.SummaryWriter
merge_summary = tf.summary.merge


def select(condition: Any, t: Any, e: Any, name: str | None = None) -> Any:
    """tf.where, which was tf.select."""
    return tf.where(condition, t, e, name=name)


def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: Any = None) -> Any:
    """tf.matmul of all but the last two axes, which was a function of its own."""
    return tf.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


# Arguments had another order. Each function is noted only where it is called as it was then.


def concat(*given: Any, **named: Any) -> Any:
    """tf.concat, whose axis came first: `concat(concat_dim, values)`."""
    if "concat_dim" in named:
        named["axis"] = named.pop("concat_dim")
    elif given and isinstance(given[0], numbers.Integral):
        named["axis"] = given[0]
        named.update(zip(("values", "name"), given[1:], strict=False))
        given = ()
    else:
        return tf.concat(*given, **named)
    note("concat(axis, values)")
    return tf.concat(*given, **named)


def split(*given: Any, **named: Any) -> Any:
    """tf.split, whose axis and number came first: `split(split_dim, num_split, value)`."""
    renamed = {"split_dim": "axis", "num_split": "num_or_size_splits"}
    if not (given and isinstance(given[0], numbers.Integral)) and not {*renamed} & {*named}:
        return tf.split(*given, **named)
    note("split(axis, number, value)")
    named = {renamed.get(name, name): value for name, value in named.items()}
    named.update(zip((*renamed.values(), "value", "name"), given, strict=False))
    return tf.split(**named)


# Losses took logits and labels without their names. These too are noted only where that is used.


def softmax_cross_entropy_with_logits(*given: Any, **named: Any) -> Any:
    """tf.nn.softmax_cross_entropy_with_logits(logits, labels, dim=-1, name=None)."""
    return loss("softmax_cross_entropy_with_logits", ("dim", "name"), given, named)


def sparse_softmax_cross_entropy_with_logits(*given: Any, **named: Any) -> Any:
    """tf.nn.sparse_softmax_cross_entropy_with_logits(logits, labels, name=None)."""
    return loss("sparse_softmax_cross_entropy_with_logits", ("name",), given, named)


def sigmoid_cross_entropy_with_logits(*given: Any, **named: Any) -> Any:
    """tf.nn.sigmoid_cross_entropy_with_logits(logits, targets, name=None)."""
    if "targets" in named:
        named["labels"] = named.pop("targets")
    return loss("sigmoid_cross_entropy_with_logits", ("name",), given, named)


def loss(name: str, others: tuple[str, ...], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A loss that takes only named arguments from TensorFlow 1.0 on, where it got others."""
    if given and given[0] is not None:
        note(f"nn.{name}(logits, labels)")
        named = {**dict(zip(("logits", "labels", *others), given, strict=False)), **named}
        given = ()
    return getattr(tf.nn, name)(*given, **named)


# Functions of their own, which became tf.summary


def merge_all_summaries(key: str = tf.GraphKeys.SUMMARIES) -> Any:
    """tf.summary.merge_all."""
    return tf.summary.merge_all(key)


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: Any = None) -> Any:
    """tf.summary.scalar, for one tag or as many as there are values."""
    if isinstance(tags, str):
        return tf.summary.scalar(tags, values, collections)
    parts = [
        tf.summary.scalar(tag, value, collections=[])
        for tag, value in zip(tags, tf.unstack(values, len(tags)), strict=True)
    ]
    return tf.summary.merge(parts, collections or [tf.GraphKeys.SUMMARIES], name)


def histogram_summary(tag: str, values: Any, collections: Any = None, name: Any = None) -> Any:
    """tf.summary.histogram."""
    return tf.summary.histogram(tag, values, collections)


def image_summary(
    tag: str, tensor: Any, max_images: int = 3, collections: Any = None, name: Any = None
) -> Any:
    """tf.summary.image, whose max_outputs were max_images."""
    return tf.summary.image(tag, tensor, max_images, collections)


def audio_summary(
    tag: str,
    tensor: Any,
    sample_rate: float,
    max_outputs: int = 3,
    collections: Any = None,
    name: Any = None,
) -> Any:
    """tf.summary.audio."""
    return tf.summary.audio(tag, tensor, sample_rate, max_outputs, collections)


# The names that tf, tf.nn and tf.train have
SUMMARIES = [
    *("SummaryWriter", "audio_summary", "histogram_summary", "image_summary"),
    *("merge_all_summaries", "merge_summary", "scalar_summary"),
]
TF = [
    *("mul", "sub", "neg", "pack", "unpack", "inv", "complex_abs", "listdiff", "select"),
    *("batch_cholesky", "batch_matrix_inverse", "batch_matrix_diag", "batch_matrix_determinant"),
    *("batch_matmul", "concat", "split", *SUMMARIES),
]
LOSSES = [
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
]
NN = ["bidirectional_rnn", "rnn", "state_saving_rnn", *LOSSES]
NOTE_THEMSELVES = ["concat", "split", *LOSSES]
