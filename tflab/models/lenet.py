"""LeNet-5 on MNIST, for 32 x 32 input: conv 6, pool, conv 16, pool, dense 120, 84 and 10.

The layers are those of LeCun et al., "Gradient-based learning applied to document recognition"
(1998), with ReLU and max-pooling, as the network is written today: 61,706 parameters. The recipe
takes it past the paper's 0.95 % of wrong answers in 8 epochs.
"""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import mnist
from tflab.records.options import Model, Recipe

PEAK = 0.1  # the highest learning rate


def build() -> Model:
    images = tf1.placeholder(tf.float32, [None, 32, 32, 1], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")

    hidden = pool("pool1", convolution("conv1", images, channels=6))
    hidden = pool("pool2", convolution("conv2", hidden, channels=16))
    with tf1.name_scope("flatten"):
        hidden = tf.reshape(hidden, [-1, 5 * 5 * 16], name="Reshape")
    hidden = tf.nn.relu(dense("dense1", hidden, units=120), name="dense1/Relu")
    hidden = tf.nn.relu(dense("dense2", hidden, units=84), name="dense2/Relu")
    logits = dense("dense3", hidden, units=10)

    with tf1.name_scope("loss"):
        cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=logits, name="CrossEntropy"
        )
        loss = tf.reduce_mean(cross_entropy, name="mean")
    return Model(
        output=logits,
        feeds={images: "images", labels: "labels"},
        data=mnist.load,
        loss=loss,
        optimizer=tf1.train.GradientDescentOptimizer(0.05),
        recipe=Recipe(epochs=8, batch_size=128, optimizer=momentum, rate=rate),
    )


def momentum(rate: tf.Tensor) -> tf1.train.Optimizer:
    return tf1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)


def rate(step: int, epoch: int, steps: int) -> float:
    """Return a rate that rises linearly to PEAK for a fifth of the training, then falls to 0.

    (Smith and Topin 2018, "Super-convergence": large rates in between lead to flat minima.)
    """
    rising = steps / 5
    return PEAK * min((step + 1) / rising, (steps - step) / (steps - rising))


def convolution(name: str, images: tf.Tensor, channels: int) -> tf.Tensor:
    """Add a 5 x 5 convolution without padding: each side of the image loses 4 pixels."""
    with tf1.variable_scope(name, use_resource=True):
        kernel = tf1.get_variable("kernel", [5, 5, images.shape[-1], channels], initializer=he())
        bias = tf1.get_variable("bias", [channels], initializer=tf1.zeros_initializer())
        sums = tf.nn.conv2d(images, kernel, strides=1, padding="VALID", name="Conv2D")
        return tf.nn.relu(tf.nn.bias_add(sums, bias, name="BiasAdd"), name="Relu")


def pool(name: str, images: tf.Tensor) -> tf.Tensor:
    with tf1.name_scope(name):
        return tf.nn.max_pool2d(images, ksize=2, strides=2, padding="VALID", name="MaxPool")


def dense(name: str, inputs: tf.Tensor, units: int) -> tf.Tensor:
    with tf1.variable_scope(name, use_resource=True):
        kernel = tf1.get_variable("kernel", [inputs.shape[-1], units], initializer=he())
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        sums = tf.matmul(inputs, kernel, name="MatMul")
        return tf.nn.bias_add(sums, bias, name="BiasAdd")


def he() -> "tf1.keras.initializers.Initializer":  # no import of Keras
    """Return initial weights that preserve the variance through ReLU (He et al. 2015, eq. 10)."""
    return tf1.variance_scaling_initializer(scale=2.0)
