"""tf.contrib.framework and tf.contrib.util: functions that are elsewhere in TensorFlow today."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

get_global_step, get_or_create_global_step = (
    tf.train.get_global_step,
    tf.train.get_or_create_global_step,
)
create_global_step = tf.train.create_global_step
list_variables, load_variable = tf.train.list_variables, tf.train.load_variable
load_checkpoint, init_from_checkpoint = tf.train.load_checkpoint, tf.train.init_from_checkpoint
nest, sort, argsort, is_tensor = tf.nest, tf.sort, tf.argsort, tf.is_tensor
make_tensor_proto, make_ndarray = tf.make_tensor_proto, tf.make_ndarray
constant_value = tf.get_static_value


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = tf.GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a scope, and with `suffix` those of this name in any inner one."""
    name = getattr(scope, "name", scope) or ""
    if suffix is not None:
        name = f"{name}.*{suffix if ':' in suffix else f'{suffix}:'}"
    return tf.get_collection(collection, name or None)


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: Any = None, **_: Any
) -> Any:
    """A variable of this process, which is in no checkpoint."""
    return tf.Variable(
        initial_value,
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES],
        validate_shape=validate_shape,
        name=name,
    )


def with_shape(expected_shape: Any, tensor: Any) -> Any:
    return tf.ensure_shape(tensor, np.asarray(expected_shape).tolist())


__all__ = [
    *("argsort", "constant_value", "create_global_step", "get_global_step", "get_variables"),
    *("get_or_create_global_step", "init_from_checkpoint", "is_tensor", "list_variables"),
    *("load_checkpoint", "load_variable", "local_variable", "make_ndarray", "make_tensor_proto"),
    *("nest", "sort", "with_shape"),
]
