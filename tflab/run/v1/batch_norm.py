"""batch_norm of tf.contrib.layers, by the layer of tf.layers.

Arguments, defaults and names are those of tensorflow/contrib/layers/python/layers/layers.py,
TensorFlow 1.15.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tflab.run.v1.layer_arguments import add_arg_scope

FIRST = "NC"  # of a data format with the channels after the rows: "NCHW"
PARAMETERS = ("beta", "gamma", "moving_mean", "moving_variance")


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = tf.GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: Any = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    **renorm: Any,
) -> Any:
    """(inputs - mean) / sqrt(variance + epsilon), times gamma, plus beta, of each channel.

    Where it is training, mean and variance are those of the batch, and the moving averages are
    updated: at once where `updates_collections` is None, else by the ops in that collection.
    """
    if batch_weights is not None or zero_debias_moving_mean or any(renorm.values()):
        raise NotImplementedError(
            "The replacement for contrib.layers.batch_norm takes no batch_weights, no "
            "zero_debias_moving_mean and no renorm."
        )
    initializers, regularizers = param_initializers or {}, param_regularizers or {}
    with tf.variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as variables:
        inputs = tf.convert_to_tensor(inputs)
        given = {
            f"{name}_initializer": initializers[name] for name in PARAMETERS if name in initializers
        }
        given |= {
            f"{name}_regularizer": regularizers[name]
            for name in ("beta", "gamma")
            if name in regularizers
        }
        layer = tf.layers.BatchNormalization(
            axis=1 if data_format.startswith(FIRST) and inputs.shape.ndims > 2 else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            trainable=trainable,
            fused=fused,
            name=variables.name,
            _scope=variables,
            _reuse=reuse,
            **given,
        )
        outputs = applied(layer, inputs, is_training, updates_collections)
        return outputs if activation_fn is None else activation_fn(outputs)


def applied(layer: Any, inputs: Any, is_training: Any, updates_collections: Any) -> Any:
    """The outputs of the layer; its updates and variables are in the collections of contrib."""
    waiting = tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
    before = len(waiting)
    outputs = layer.apply(inputs, training=is_training)
    for variable in layer.variables:
        if variable not in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES):
            tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, variable)
    updates = waiting[before:]
    del waiting[before:]
    if updates_collections is None:
        with tf.control_dependencies(updates):
            return tf.identity(outputs)
    for update in updates:
        tf.add_to_collections(updates_collections, update)
    return outputs
