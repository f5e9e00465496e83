"""FLOPs: how many floating-point operations an op does, from its shapes. No TensorFlow in here.

The formulas are those of the layers as textbooks have them: Goodfellow, Bengio and Courville,
"Deep Learning" (MIT Press, 2016), chapter 9, for convolution and pooling; Golub and Van Loan,
"Matrix Computations" (4th edition, 2013), section 1.1, for products. A multiply-add is two.
Multiplications with padding count: kernels may do or skip them, and layers are compared with them.

What an op computes follows from how many outputs it has and what goes into each of them. Strides,
padding and dilation decide the size of the output, so no formula has to ask for them, and the
order of the axes (NHWC, NCHW) changes no product of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

Shape = Sequence[int | None] | None  # None where the rank, or a size, is not known
Formula = Callable[[Sequence[Shape], Sequence[Shape], Mapping[str, Any]], int]

ATTRIBUTES = ("adj_x", "ksize", "transpose_a")  # that a formula asks for


def flops(
    op: str,
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    attributes: Mapping[str, Any],
) -> int | None:
    """The FLOPs of one call of an op of this type, on tensors of these shapes; None where there is
    no formula for the type.

    Raises ValueError where a shape that the formula needs is not known.
    """
    formula = FORMULAS.get(op)
    return formula(inputs, outputs, attributes) if formula else None


def known(shape: Shape) -> tuple[int, ...]:
    sizes = tuple(size for size in shape or () if size is not None)
    if shape is None or len(sizes) != len(shape):
        raise ValueError("a shape that its formula needs is not fully defined")
    return sizes


def elements(shape: Shape) -> int:
    return prod(known(shape))


# Convolutions: a filter is height x width x input channels x output channels


def convolution(filters: Shape, results: Shape) -> int:
    """Every output is a sum of one product for each weight of its filter: 2*N*Ho*Wo*Co*Kh*Kw*Ci.

    Goodfellow, Bengio and Courville (2016), section 9.5. The input channels are those of the
    filter, which has fewer than the image where the convolution is grouped.
    """
    *window, _ = known(filters)
    return 2 * elements(results) * prod(window)


def conv2d(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    return convolution(inputs[1], outputs[0])


def conv2d_backprop_input(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
    """Each product of the forward convolution once more, with the gradient of its output in place
    of its pixel: section 9.5 of Goodfellow, Bengio and Courville (2016)."""
    return convolution(inputs[1], inputs[2])


def conv2d_backprop_filter(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
    """Each product of the forward convolution once more, with the gradient of its output in place
    of its weight: section 9.5 of Goodfellow, Bengio and Courville (2016)."""
    return convolution(outputs[0], inputs[2])


# Depthwise convolutions: a filter is height x width x input channels x multiplier


def depthwise(filters: Shape, results: Shape) -> int:
    """Every output sees a single channel: 2*N*Ho*Wo*(Ci*multiplier)*Kh*Kw.

    Howard et al., "MobileNets" (arXiv 1704.04861, 2017), equation 4.
    """
    height, width, *_ = known(filters)
    return 2 * elements(results) * height * width


def depthwise_conv2d(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
    return depthwise(inputs[1], outputs[0])


def depthwise_backprop_input(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
    """Each product of the forward convolution once more."""
    return depthwise(inputs[1], inputs[2])


def depthwise_backprop_filter(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
    """Each product of the forward convolution once more."""
    return depthwise(outputs[0], inputs[2])


# Products


def product(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """2*M*N*K for each product of a batch: Golub and Van Loan (2013), section 1.1.

    K is the last size of the left factor, or the one before where that is transposed. How the
    right one lies makes no difference.
    """
    transposed = attributes.get("transpose_a") or attributes.get("adj_x")
    inner = known(inputs[0])[-2 if transposed else -1]
    return 2 * elements(outputs[0]) * inner


# Element by element


def an_output(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    """One for each element: the addition of a bias, the comparison of a ReLU with 0.

    Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines" (ICML 2010):
    max(0, x). Its gradient is one choice for each element.
    """
    return elements(outputs[0])


def sums(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    """n - 1 additions for the sum of n elements: the gradient of a bias sums up all but the
    channels."""
    return elements(inputs[0]) - elements(outputs[0])


def softmax(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    """Five for each element: the largest, the distance from it, exp, the sum and the quotient.

    Goodfellow, Bengio and Courville (2016), section 6.2.2.3, which subtracts the largest.
    An exp counts as one. The largest and the sum are counted as n for n elements, and not n - 1.
    """
    return 5 * elements(outputs[0])


# Pooling


def pooling(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """One for each element of the window of each output.

    For the largest: a kernel compares each with the largest until there, from the lowest number
    on. For the mean of n: n - 1 additions and a division. Goodfellow, Bengio and Courville (2016),
    section 9.3.
    """
    return elements(outputs[0]) * prod(attributes["ksize"])


def max_pool_grad(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """The largest of each window is searched once more, and the gradient added where it stood.

    That is what the kernel for processors does: SpatialMaxPoolWithArgMaxHelper in
    tensorflow/core/kernels/maxpooling_op.cc.
    """
    pooled = elements(inputs[1])
    return pooled * prod(attributes["ksize"]) + pooled


FORMULAS: Mapping[str, Formula] = {
    "AvgPool": pooling,
    "BatchMatMul": product,
    "BatchMatMulV2": product,
    "BatchMatMulV3": product,
    "BiasAdd": an_output,
    "BiasAddGrad": sums,
    "Conv2D": conv2d,
    "Conv2DBackpropFilter": conv2d_backprop_filter,
    "Conv2DBackpropInput": conv2d_backprop_input,
    "DepthwiseConv2dNative": depthwise_conv2d,
    "DepthwiseConv2dNativeBackpropFilter": depthwise_backprop_filter,
    "DepthwiseConv2dNativeBackpropInput": depthwise_backprop_input,
    "MatMul": product,
    "MaxPool": pooling,
    "MaxPoolGrad": max_pool_grad,
    "Relu": an_output,
    "ReluGrad": an_output,
    "Softmax": softmax,
}
