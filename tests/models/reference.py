"""The networks once more, in NumPy: what the graphs have to compute, written without TensorFlow.

Images are [n, rows, columns, channels], kernels [rows, columns, channels in, channels out];
`weights` are arrays by the names of the graph's variables.
"""

import numpy as np

EPSILON = 1e-5  # of batch norm, in front of the variance


def lenet(weights, images):
    hidden = max_pool(relu(convolution(images, *layer(weights, "conv1"))))
    hidden = max_pool(relu(convolution(hidden, *layer(weights, "conv2"))))
    hidden = relu(dense(flat(hidden), *layer(weights, "dense1")))
    hidden = relu(dense(hidden, *layer(weights, "dense2")))
    return dense(hidden, *layer(weights, "dense3"))


def cudnn_lenet(weights, images):
    hidden = max_pool(convolution(images, *layer(weights, "conv1")))
    hidden = max_pool(convolution(hidden, *layer(weights, "conv2")))
    hidden = relu(dense(flat(hidden), *layer(weights, "dense1")))
    return dense(hidden, *layer(weights, "dense2"))


def convnet(weights, images):
    hidden = relu(convolution(images, *layer(weights, "conv1")))
    hidden = max_pool(relu(convolution(hidden, *layer(weights, "conv2"))))
    hidden = relu(dense(flat(hidden), *layer(weights, "dense1")))
    return dense(hidden, *layer(weights, "dense2"))


def resnet20(weights, images, statistics=None):
    """By the moving averages, or by the statistics of the batch, which then are noted by name."""

    def normed(name, hidden):
        mean, variance = (weights[f"{name}/moving_{what}"] for what in ("mean", "variance"))
        if statistics is not None:
            mean, variance = hidden.mean(axis=(0, 1, 2)), hidden.var(axis=(0, 1, 2))
            count = hidden[..., 0].size
            statistics[name] = mean, variance * count / (count - 1)
        unit = (hidden - mean) / np.sqrt(variance + EPSILON)
        return unit * weights[f"{name}/gamma"] + weights[f"{name}/beta"]

    def convolved(name, hidden, stride=1):
        return convolution(
            same(hidden, weights[f"{name}/kernel"], stride), *layer(weights, name), stride
        )

    hidden = relu(normed("bn1", convolved("conv1", images)))
    for group in (1, 2, 3):
        for block in (1, 2, 3):
            name = f"group{group}/block{block}"
            stride = 2 if block == 1 and group > 1 else 1
            skipped = hidden
            if stride == 2:
                skipped = convolved(f"{name}/projection", hidden, stride)
                skipped = normed(f"{name}/projection_bn", skipped)
            hidden = relu(normed(f"{name}/bn1", convolved(f"{name}/conv1", hidden, stride)))
            hidden = normed(f"{name}/bn2", convolved(f"{name}/conv2", hidden))
            hidden = relu(hidden + skipped)
    return dense(hidden.mean(axis=(1, 2)), *layer(weights, "dense1"))


FORWARD = {"lenet": lenet, "cudnn-lenet": cudnn_lenet, "convnet": convnet, "resnet20": resnet20}


def layer(weights, name):
    return weights[f"{name}/kernel"], weights.get(f"{name}/bias", 0)


def convolution(images, kernel, bias, stride=1):
    """Without padding. Every window becomes a row of a matrix (im2col), then one product is all."""
    height, width, _, out = kernel.shape
    rows = (images.shape[1] - height) // stride + 1
    columns = (images.shape[2] - width) // stride + 1
    windows = np.stack(
        [
            images[:, i : i + stride * rows : stride, j : j + stride * columns : stride]
            for i in range(height)
            for j in range(width)
        ],
        axis=3,
    )
    return windows.reshape(len(images), rows, columns, -1) @ kernel.reshape(-1, out) + bias


def same(images, kernel, stride):
    """Zeros around the images for ceil(side / stride) results; an odd one at the end."""
    margins = [(0, 0)]
    for side, wide in zip(images.shape[1:3], kernel.shape[:2], strict=True):
        zeros = max((-(-side // stride) - 1) * stride + wide - side, 0)
        margins.append((zeros // 2, zeros - zeros // 2))
    return np.pad(images, [*margins, (0, 0)])


def max_pool(images):
    count, rows, columns, channels = images.shape
    return images.reshape(count, rows // 2, 2, columns // 2, 2, channels).max(axis=(2, 4))


def flat(images):
    return images.reshape(len(images), -1)


def dense(inputs, kernel, bias):
    return inputs @ kernel + bias


def relu(inputs):
    return np.maximum(inputs, 0)
