"""Layers: the building blocks of the larger models, each in a scope that the model names.

A model whose training differs from its inference has two heads over the same variables. Each head
calls the same layers: a second call with the same name uses the variables of the first.
"""

from __future__ import annotations

import tensorflow as tf
import tensorflow.compat.v1 as tf1

# Of batch norm, as in the authors' own ResNets for CIFAR-10 (github.com/facebookarchive/
# fb.resnet.torch), which take Torch's defaults: 1e-5, and a tenth of each batch.
EPSILON = 1.001e-5  # the smallest that cuDNN and therefore TensorFlow accept
NEWEST = 0.1  # weight of the newest batch in a moving average


def scope(name: str) -> tf1.variable_scope:
    """Open a scope for the names of nodes and variables. Existing variables are reused."""
    return tf1.variable_scope(name, use_resource=True, reuse=tf1.AUTO_REUSE)


def convolution(
    name: str,
    images: tf.Tensor,
    channels: int,
    side: int,
    *,
    stride: int = 1,
    padding: str = "VALID",
    biased: bool = True,
) -> tf.Tensor:
    """Add a convolution with kernels of `side` x `side`. `SAME` pads an odd zero at the end."""
    with scope(name):
        shape = [side, side, images.shape[-1], channels]
        kernel = tf1.get_variable("kernel", shape, initializer=he())
        sums = tf.nn.conv2d(images, kernel, strides=stride, padding=padding, name="Conv2D")
        return add_bias(sums) if biased else sums


def dense(name: str, inputs: tf.Tensor, units: int) -> tf.Tensor:
    with scope(name):
        kernel = tf1.get_variable("kernel", [inputs.shape[-1], units], initializer=he())
        return add_bias(tf.matmul(inputs, kernel, name="MatMul"))


def add_bias(sums: tf.Tensor) -> tf.Tensor:
    bias = tf1.get_variable("bias", [sums.shape[-1]], initializer=tf1.zeros_initializer())
    return tf.nn.bias_add(sums, bias, name="BiasAdd")


def pool(name: str, images: tf.Tensor) -> tf.Tensor:
    """Return the largest of each 2 x 2 pixels: [n, h, w, c] becomes [n, h/2, w/2, c]."""
    with tf1.name_scope(name):
        return tf.nn.max_pool2d(images, ksize=2, strides=2, padding="VALID", name="MaxPool")


def flatten(images: tf.Tensor) -> tf.Tensor:
    with tf1.name_scope("flatten"):
        return tf.reshape(images, [-1, images.shape[1:].num_elements()], name="Reshape")


def dropout(name: str, inputs: tf.Tensor, percent: int, seed: tuple) -> tf.Tensor:
    """Set about `percent` % of the elements to zero; the others grow to keep the mean.

    (Hinton et al. 2012, "Improving neural networks by preventing co-adaptation of feature
    detectors".) The mask follows from `seed`, two whole numbers, and is drawn as whole numbers, so
    that it is the same in a graph of another precision.
    """
    with tf1.name_scope(name):
        drawn = tf.random.stateless_uniform(
            tf.shape(inputs), tf.stack(seed), minval=0, maxval=100, dtype=tf.int32, name="drawn"
        )
        kept = tf.cast(drawn >= percent, inputs.dtype, name="kept")
        grown = tf.multiply(inputs, 100 / (100 - percent), name="grown")
        return tf.multiply(grown, kept, name="Mul")


def batch_norm(name: str, images: tf.Tensor, training: bool) -> tf.Tensor:
    """Give each channel the mean `beta` and the deviation `gamma` (Ioffe and Szegedy 2015).

    In training it uses the statistics of the batch and adds the updates of the moving averages to
    the graph's collection UPDATE_OPS; else it uses the moving averages. The variance is averaged
    over the unbiased variances of the batches, as in the paper.
    """
    with scope(name):
        ones, zeros = tf1.ones_initializer(), tf1.zeros_initializer()
        channels = [images.shape[-1]]
        gamma = tf1.get_variable("gamma", channels, initializer=ones)
        beta = tf1.get_variable("beta", channels, initializer=zeros)
        mean = tf1.get_variable("moving_mean", channels, initializer=zeros, trainable=False)
        variance = tf1.get_variable("moving_variance", channels, initializer=ones, trainable=False)
        normed, new_mean, new_variance = tf1.nn.fused_batch_norm(
            images,
            gamma,
            beta,
            mean,
            variance,
            epsilon=EPSILON,
            is_training=training,
            exponential_avg_factor=NEWEST if training else 1.0,
            name="FusedBatchNorm",
        )
        if training:
            for moving, new in ((mean, new_mean), (variance, new_variance)):
                update = moving.assign(new, read_value=False)
                tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
        return normed


def cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return the cross entropy in nats, as the mean over the batch."""
    with tf1.name_scope("loss"):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="CrossEntropy"
        )
        return tf.reduce_mean(losses, name="mean")


def he() -> tf1.keras.initializers.Initializer:
    """Return initial weights that preserve the variance through ReLU (He et al. 2015, eq. 10)."""
    return tf1.variance_scaling_initializer(scale=2.0)
