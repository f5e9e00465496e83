"""Old names: functions that TensorFlow renamed before 1.0.

The changes are those of tensorflow/tools/compatibility/tf_upgrade.py, TensorFlow 1.0.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

mul, sub, neg = tf.multiply, tf.subtract, tf.negative
pack, unpack = tf.stack, tf.unstack
inv, complex_abs, listdiff = tf.reciprocal, tf.abs, tf.setdiff1d
batch_cholesky, batch_matrix_inverse = tf.linalg.cholesky, tf.linalg.inv
batch_matrix_diag, batch_matrix_determinant = tf.linalg.diag, tf.linalg.det


def select(condition: Any, t: Any, e: Any, name: str | None = None) -> Any:
    """tf.where, which was tf.select."""
    return tf.where(condition, t, e, name=name)


def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: Any = None) -> Any:
    """tf.matmul of all but the last two axes, which was a function of its own."""
    return tf.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


__all__ = [
    *("mul", "sub", "neg", "pack", "unpack", "inv", "complex_abs", "listdiff", "select"),
    *("batch_cholesky", "batch_matrix_inverse", "batch_matrix_diag", "batch_matrix_determinant"),
    "batch_matmul",
]
