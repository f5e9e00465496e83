"""FLOP counts of graphs that ran, against loop nests that compute the same values by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.examples.placing import placed
from tflab.runtime import costs

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(1)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def counted(fetches, feeds=None):
    """The FLOPs of the nodes that ran, by the user's name of the type, and what they computed."""
    stage, values = placed(fetches, feeds)
    by_type = {}
    for node, cost in zip(stage.nodes, costs.costs(stage), strict=True):
        plain = costs.plain_type(node.op)
        by_type.setdefault(plain, []).append(cost.flops)
    return by_type, values


# Convolutions


def padded(x, window, stride, dilation, padding):
    if padding == "VALID":
        return x
    pads = []
    for size in x.shape[1:3]:
        out = -(-size // stride)
        total = max((out - 1) * stride + (window - 1) * dilation + 1 - size, 0)
        pads.append((total // 2, total - total // 2))
    return np.pad(x, [(0, 0), *pads, (0, 0)])


def convolved(x, w, stride, dilation, padding, depthwise=False):
    """Output, both gradients of the sum of its squares' halves, and the multiply-adds of each."""
    wide = padded(x, len(w), stride, dilation, padding)
    reach = (len(w) - 1) * dilation
    side = (wide.shape[1] - reach - 1) // stride + 1
    outs = w.shape[2] * w.shape[3] if depthwise else w.shape[3]
    y = np.zeros((len(x), side, side, outs))
    steps = []
    channels = 1 if depthwise else w.shape[2]
    for n, row, col, o, ky, kx, c in np.ndindex(len(x), side, side, outs, *w.shape[:2], channels):
        channel, last = (o // w.shape[3], o % w.shape[3]) if depthwise else (c, o)
        pixel = n, row * stride + ky * dilation, col * stride + kx * dilation, channel
        steps.append(((n, row, col, o), pixel, (ky, kx, channel, last)))
    for out, pixel, weight in steps:
        y[out] += wide[pixel] * w[weight]
    dx, dw = np.zeros(wide.shape), np.zeros(w.shape)
    for out, pixel, weight in steps:
        dx[pixel] += y[out] * w[weight]
        dw[weight] += y[out] * wide[pixel]
    top, left = ((wide.shape[axis] - x.shape[axis]) // 2 for axis in (1, 2))
    return y, dx[:, top : top + x.shape[1], left : left + x.shape[2]], dw, len(steps)


@pytest.mark.parametrize(
    ("stride", "dilation", "padding", "kind"),
    [
        (1, 1, "SAME", "NHWC"),
        (2, 1, "SAME", "NCHW"),
        (3, 1, "VALID", "NHWC"),
        (1, 2, "SAME", "NHWC"),
        (1, 1, "VALID", "depthwise"),
        (2, 1, "SAME", "depthwise"),
    ],
)
def test_a_convolution_and_both_gradients_do_the_multiply_adds_of_the_loops(
    stride, dilation, padding, kind
):
    x, w = numbers(2, 7, 7, 3), numbers(3, 3, 3, 4)
    y, dx, dw, products = convolved(x, w, stride, dilation, padding, kind == "depthwise")
    with tf.Graph().as_default():
        image = tf1.placeholder(tf.float32, [None, 7, 7, 3])
        weights = tf1.placeholder(tf.float32, w.shape)
        if kind == "depthwise":
            out = tf.nn.depthwise_conv2d(image, weights, [1, stride, stride, 1], padding)
        else:
            turned = tf.transpose(image, [0, 3, 1, 2]) if kind == "NCHW" else image
            out = tf.nn.conv2d(turned, weights, stride, padding, kind, dilation)
            out = tf.transpose(out, [0, 2, 3, 1]) if kind == "NCHW" else out
        gradients = tf.gradients(out, [image, weights], grad_ys=tf.identity(out))
        by_type, values = counted([out, *gradients], {image: x, weights: w})
    for value, expected in zip(values, (y, dx, dw), strict=True):
        np.testing.assert_allclose(value, expected, atol=1e-3)
    name = "DepthwiseConv2dNative" if kind == "depthwise" else "Conv2D"
    for op in ("", "BackpropInput", "BackpropFilter"):
        assert by_type[f"{name}{op}"] == [2 * products]


# Products


@pytest.mark.parametrize(
    ("batch", "turned", "across"),
    [((), True, False), ((), False, True), ((3,), False, False), ((2, 3), True, True)],
)
def test_a_product_is_2mnk_however_its_factors_lie_and_are_broadcast(batch, turned, across):
    a = numbers(*batch, *((5, 4) if turned else (4, 5)))
    b = numbers(*batch[1:], *((2, 5) if across else (5, 2)))
    with tf.Graph().as_default():
        left = tf1.placeholder(tf.float32, [None] * a.ndim)
        right = tf1.placeholder(tf.float32, [None] * b.ndim)
        out = tf.matmul(left, right, transpose_a=turned, transpose_b=across)
        by_type, value = counted(out, {left: a, right: b})
    expected = np.zeros((*batch, 4, 2))
    steps = 0
    for *place, m, n, k in np.ndindex(*batch, 4, 2, 5):
        one = a[(*place, *((k, m) if turned else (m, k)))]
        other = b[(*place[1:], *((n, k) if across else (k, n)))]
        expected[(*place, m, n)] += one * other
        steps += 1
    np.testing.assert_allclose(value, expected, atol=1e-4)
    assert by_type["BatchMatMulV2" if batch else "MatMul"] == [2 * steps]


# Loops and functions: shapes that only the trace has


def test_each_iteration_of_a_loop_counts_with_its_own_shapes():
    """Rows of x one more each time: 1, 2, 3 and 4 rows times a 5 by 2."""
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 5])
        w = tf1.placeholder(tf.float32, [5, 2])

        def body(i, total):
            rows = tf.slice(x, [0, 0], tf.stack([i, 5]))
            return i + 1, total + tf.reduce_sum(tf.matmul(rows, w))

        _, total = tf1.while_loop(lambda i, _: i < 5, body, [1, 0.0])
        by_type, _ = counted(total, {x: numbers(4, 5), w: numbers(5, 2)})
    assert by_type["MatMul"] == [2 * (1 + 2 + 3 + 4) * 5 * 2 / 4]  # the mean of four runs


def test_what_cannot_be_known_is_named_but_a_branch_that_did_not_run_is_not_missed():
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None])
        yes = tf1.placeholder(tf.bool, [])
        sums = tf.math.cumulative_logsumexp
        both = sums(x) + sums(x, reverse=True)
        out = tf1.cond(yes, lambda: x * 2.0, lambda: sums(x))
        for fetched, chosen, missing in ((both, True, 2), (out, True, 0), (out, False, 1)):
            stage, _ = placed(fetched, {x: numbers(5), yes: chosen})
            known = {"CumulativeLogsumexp": missing} if missing else {}
            assert costs.types_without_flops(stage) == known
            unknown = {cost.name for cost in costs.costs(stage) if cost.flops is None}
            ops = {node.op for node in stage.nodes if node.name in unknown}
            assert ops >= known.keys()
