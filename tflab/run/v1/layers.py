"""tf.contrib.layers: layers with variables `weights` and `biases`, under the names of theirs.

Arguments, defaults and names are those of tensorflow/contrib/layers/python/layers/layers.py,
TensorFlow 1.15. Collections for outputs are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf

from tflab.run.v1.batch_norm import FIRST
from tflab.run.v1.batch_norm import batch_norm as batch_norm
from tflab.run.v1.layer_arguments import add_arg_scope, xavier_initializer

relu_function = tf.nn.relu
DEFAULT = object()  # an initialiser that is made again for each layer


@dataclass
class Weighted:
    """The arguments that all layers with weights have, last and in this order; and what such a
    layer does with them."""

    activation_fn: Any = relu_function
    normalizer_fn: Any = None
    normalizer_params: Any = None
    weights_initializer: Any = DEFAULT
    weights_regularizer: Any = None
    biases_initializer: Any = DEFAULT
    biases_regularizer: Any = None
    reuse: Any = None
    variables_collections: Any = None
    outputs_collections: Any = None
    trainable: bool = True
    scope: Any = None

    @classmethod
    def of(cls, layer: str, given: Sequence[Any], named: Mapping[str, Any]) -> Weighted:
        """The arguments of a call. Raises TypeError with the name of the layer."""
        try:
            return cls(*given, **named)
        except TypeError as error:
            _, _, wrong = str(error).partition("()")
            raise TypeError(f"{layer}(){wrong}") from None

    @contextmanager
    def scoped(self, name: str, inputs: Any) -> Iterator[Any]:
        """The layer's scope, and the inputs as a tensor."""
        with tf.variable_scope(self.scope, name, [inputs], reuse=self.reuse):
            yield tf.convert_to_tensor(inputs)

    def weights(self, inputs: Any, shape: Sequence[int]) -> Any:
        default = self.weights_initializer is DEFAULT
        first = xavier_initializer() if default else self.weights_initializer
        return self.variable("weights", inputs, shape, first, self.weights_regularizer)

    def finished(self, outputs: Any, size: int, layout: str | None = None) -> Any:
        """The outputs with biases or normalized, and activated."""
        if self.normalizer_fn is not None:
            outputs = self.normalizer_fn(outputs, **(self.normalizer_params or {}))
        elif self.biases_initializer is not None:
            default = self.biases_initializer is DEFAULT
            first = tf.zeros_initializer() if default else self.biases_initializer
            biases = self.variable("biases", outputs, [size], first, self.biases_regularizer)
            outputs = tf.nn.bias_add(outputs, biases, layout)
        return outputs if self.activation_fn is None else self.activation_fn(outputs)

    def variable(
        self, name: str, of: Any, shape: Sequence[int], initializer: Any, regularizer: Any
    ) -> Any:
        """A variable of the type of the tensor `of`, in the collections of contrib."""
        given = self.variables_collections
        added = given.get(name, []) if isinstance(given, dict) else (given or [])
        keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES, *added]
        dtype = of.dtype.base_dtype
        return tf.get_variable(name, shape, dtype, initializer, regularizer, self.trainable, keys)


@add_arg_scope
def fully_connected(inputs: Any, num_outputs: int, *given: Any, **named: Any) -> Any:
    """activation(inputs x weights + biases), over the last axis."""
    layer = Weighted.of("fully_connected", given, named)
    with layer.scoped("fully_connected", inputs) as inputs:
        weights = layer.weights(inputs, [inputs.shape.as_list()[-1], num_outputs])
        outputs = (
            tf.matmul(inputs, weights)
            if inputs.shape.ndims == 2
            else tf.tensordot(inputs, weights, [[inputs.shape.ndims - 1], [0]])
        )
        return layer.finished(outputs, num_outputs)


@add_arg_scope
def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    *given: Any,
    **named: Any,
) -> Any:
    """activation(the convolution of inputs and weights + biases)."""
    layer = Weighted.of("conv2d", given, named)
    with layer.scoped("Conv", inputs) as inputs:
        layout = data_format or "NHWC"
        weights = layer.weights(inputs, [*pair(kernel_size), channels(inputs, layout), num_outputs])
        outputs = tf.nn.conv2d(
            inputs, weights, window(stride, layout), padding, True, layout, window(rate, layout)
        )
        return layer.finished(outputs, num_outputs, layout)


@add_arg_scope
def conv2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    *given: Any,
    **named: Any,
) -> Any:
    """activation(the gradient of a convolution for its inputs, of such inputs, + biases)."""
    layer = Weighted.of("conv2d_transpose", given, named)
    with layer.scoped("Conv2d_transpose", inputs) as inputs:
        kernel, steps = pair(kernel_size), pair(stride)
        weights = layer.weights(inputs, [*kernel, num_outputs, channels(inputs, data_format)])
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
        return layer.finished(outputs, num_outputs, data_format)


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
    *("avg_pool2d", "batch_norm", "conv2d", "conv2d_transpose", "convolution2d", "dropout"),
    *("convolution2d_transpose", "embed_sequence", "flatten", "fully_connected", "linear"),
    *("max_pool2d", "one_hot_encoding", "relu"),
]
