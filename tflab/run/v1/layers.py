"""tf.contrib.layers: layers with variables `weights` and `biases`, under the names of theirs.

Arguments, defaults and names are those of tensorflow/contrib/layers/python/layers/layers.py,
TensorFlow 1.15. Collections for outputs are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tflab.run.v1.layer_arguments import add_arg_scope, xavier_initializer

relu_function = tf.nn.relu
DEFAULT = object()  # an initialiser that is made anew for each layer
FIRST = "NC"  # of a data format with the channels after the rows: "NCHW"


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = relu_function,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = DEFAULT,
    weights_regularizer: Any = None,
    biases_initializer: Any = DEFAULT,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation(inputs x weights + biases), over the last axis."""
    with tf.variable_scope(scope, "fully_connected", [inputs], reuse=reuse):
        inputs = tf.convert_to_tensor(inputs)
        made = Maker(inputs, trainable, variables_collections)
        shape = [inputs.shape.as_list()[-1], num_outputs]
        weights = made.weights(shape, weights_initializer, weights_regularizer)
        outputs = (
            tf.matmul(inputs, weights)
            if inputs.shape.ndims == 2
            else tf.tensordot(inputs, weights, [[inputs.shape.ndims - 1], [0]])
        )
        if not normalizer_fn and biases_initializer is not None:
            biases = made.biases(num_outputs, biases_initializer, biases_regularizer)
            outputs = tf.nn.bias_add(outputs, biases)
        return finished(outputs, activation_fn, normalizer_fn, normalizer_params)


@add_arg_scope
def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = relu_function,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = DEFAULT,
    weights_regularizer: Any = None,
    biases_initializer: Any = DEFAULT,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation(the convolution of inputs and weights + biases)."""
    with tf.variable_scope(scope, "Conv", [inputs], reuse=reuse):
        inputs = tf.convert_to_tensor(inputs)
        layout = data_format or "NHWC"
        made = Maker(inputs, trainable, variables_collections)
        shape = [*pair(kernel_size), channels(inputs, layout), num_outputs]
        weights = made.weights(shape, weights_initializer, weights_regularizer)
        outputs = tf.nn.conv2d(
            inputs, weights, window(stride, layout), padding, True, layout, window(rate, layout)
        )
        if not normalizer_fn and biases_initializer is not None:
            biases = made.biases(num_outputs, biases_initializer, biases_regularizer)
            outputs = tf.nn.bias_add(outputs, biases, layout)
        return finished(outputs, activation_fn, normalizer_fn, normalizer_params)


@add_arg_scope
def conv2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    activation_fn: Any = relu_function,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = DEFAULT,
    weights_regularizer: Any = None,
    biases_initializer: Any = DEFAULT,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation(the gradient of a convolution for its inputs, of such inputs, + biases)."""
    with tf.variable_scope(scope, "Conv2d_transpose", [inputs], reuse=reuse):
        inputs = tf.convert_to_tensor(inputs)
        made = Maker(inputs, trainable, variables_collections)
        kernel, steps = pair(kernel_size), pair(stride)
        shape = [*kernel, num_outputs, channels(inputs, data_format)]
        weights = made.weights(shape, weights_initializer, weights_regularizer)
        first = 2 if data_format.startswith(FIRST) else 1
        sizes = [
            (inputs.shape.as_list()[first + at] or tf.shape(inputs)[first + at]) * steps[at]
            + (max(kernel[at] - steps[at], 0) if padding.upper() == "VALID" else 0)
            for at in range(2)
        ]
        rows = tf.shape(inputs)[0]
        whole = [rows, num_outputs, *sizes] if first == 2 else [rows, *sizes, num_outputs]
        outputs = tf.nn.conv2d_transpose(
            inputs,
            weights,
            tf.stack(whole),
            window(stride, data_format),
            padding.upper(),
            data_format,
        )
        known = [size if isinstance(size, int) else None for size in whole[1:]]
        outputs.set_shape([inputs.shape.as_list()[0], *known])
        if not normalizer_fn and biases_initializer is not None:
            biases = made.biases(num_outputs, biases_initializer, biases_regularizer)
            outputs = tf.nn.bias_add(outputs, biases, data_format)
        return finished(outputs, activation_fn, normalizer_fn, normalizer_params)


def pooling(pool: Callable[..., Any], name: str) -> Callable[..., Any]:
    def layer(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        with tf.name_scope(scope, name, [inputs]):
            sizes = window(kernel_size, data_format), window(stride, data_format)
            return pool(tf.convert_to_tensor(inputs), *sizes, padding, data_format)

    layer.__name__ = layer.__qualname__ = name
    return add_arg_scope(layer)


max_pool2d = pooling(tf.nn.max_pool, "MaxPool2D")
avg_pool2d = pooling(tf.nn.avg_pool, "AvgPool2D")


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: Any = None,
) -> Any:
    """Where it is training: zeros for some inputs, and the others / keep_prob."""
    with tf.variable_scope(scope, "Dropout", [inputs]):
        inputs = tf.convert_to_tensor(inputs)

        def thinned() -> Any:
            return tf.nn.dropout(inputs, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed)

        if not tf.is_tensor(is_training):
            return thinned() if is_training else tf.identity(inputs)
        return tf.cond(tf.cast(is_training, tf.bool), thinned, lambda: tf.identity(inputs))


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """[n, a, b, c] as [n, a * b * c]."""
    with tf.name_scope(scope, "Flatten", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        sizes = inputs.shape[1:].num_elements()
        flat = tf.reshape(inputs, tf.stack([tf.shape(inputs)[0], -1 if sizes is None else sizes]))
        flat.set_shape([inputs.shape.as_list()[0], sizes])
        return flat


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    with tf.name_scope(scope, "OneHotEncoding", [labels]):
        labels = tf.cast(labels, tf.int64)
        return tf.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The rows of a variable `embeddings` at these ids."""
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        embeddings = tf.get_variable(
            "embeddings",
            [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        return tf.nn.embedding_lookup(embeddings, ids)


class Maker:
    """Makes the variables of a layer."""

    def __init__(self, inputs: Any, trainable: bool, collections: Any) -> None:
        self.dtype, self.trainable, self.collections = (
            inputs.dtype.base_dtype,
            trainable,
            collections,
        )

    def weights(self, shape: Sequence[int], initializer: Any, regularizer: Any) -> Any:
        first = xavier_initializer() if initializer is DEFAULT else initializer
        return self.variable("weights", shape, first, regularizer)

    def biases(self, size: int, initializer: Any, regularizer: Any) -> Any:
        first = tf.zeros_initializer() if initializer is DEFAULT else initializer
        return self.variable("biases", [size], first, regularizer)

    def variable(self, name: str, shape: Sequence[int], initializer: Any, regularizer: Any) -> Any:
        added = (
            self.collections.get(name, [])
            if isinstance(self.collections, dict)
            else (self.collections or [])
        )
        keys = tf.GraphKeys
        return tf.get_variable(
            name,
            shape,
            self.dtype,
            initializer,
            regularizer,
            self.trainable,
            [keys.GLOBAL_VARIABLES, keys.MODEL_VARIABLES, *added],
        )


def finished(outputs: Any, activation: Any, normalizer: Any, params: Any) -> Any:
    if normalizer is not None:
        outputs = normalizer(outputs, **(params or {}))
    return outputs if activation is None else activation(outputs)


def pair(sizes: Any) -> list[int]:
    return [sizes] * 2 if isinstance(sizes, int) else [int(size) for size in sizes]


def window(sizes: Any, layout: str) -> list[int]:
    """A stride or the size of a window, for all four axes."""
    return [1, 1, *pair(sizes)] if layout.startswith(FIRST) else [1, *pair(sizes), 1]


def channels(inputs: Any, layout: str) -> int:
    return inputs.shape.as_list()[1 if layout.startswith(FIRST) else -1]


def linear(*given: Any, **named: Any) -> Any:
    return fully_connected(*given, **{"activation_fn": None, **named})


relu = fully_connected
convolution2d, convolution2d_transpose = conv2d, conv2d_transpose

__all__ = [
    *("avg_pool2d", "conv2d", "conv2d_transpose", "convolution2d", "dropout"),
    *("convolution2d_transpose", "embed_sequence", "flatten", "fully_connected", "linear"),
    *("max_pool2d", "one_hot_encoding", "relu"),
]
