"""FLOP formulas: how many floating-point operations ops of a kind do, from their shapes.

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


def known_dimensions(shape: Shape) -> tuple[int, ...]:
    sizes = tuple(size for size in shape or () if size is not None)
    if shape is None or len(sizes) != len(shape):
        raise ValueError("a shape that its formula needs is not fully defined")
    return sizes


def elements(shape: Shape) -> int:
    return prod(known_dimensions(shape))


# Convolutions: a filter is height x width x input channels x output channels


def convolution(filters: Shape, results: Shape) -> int:
    """Every output is a sum of one product for each weight of its filter: 2*N*Ho*Wo*Co*Kh*Kw*Ci.

    Goodfellow, Bengio and Courville (2016), section 9.5. The input channels are those of the
    filter, which has fewer than the image where the convolution is grouped.
    """
    *window, _ = known_dimensions(filters)
    return 2 * elements(results) * prod(window)


def forward_convolution(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
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
    height, width, *_ = known_dimensions(filters)
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
    inner = known_dimensions(inputs[0])[-2 if transposed else -1]
    return 2 * elements(outputs[0]) * inner


def einsum(inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]) -> int:
    """A multiply-add for each combination of the labels: the product of their sizes, twice.

    A label of one factor alone that is not in the result is summed first, as the kernel does
    (tensorflow/core/kernels/linalg/einsum_op_impl.h). Without a sum there are only products.
    """
    terms, _, result = attributes["equation"].replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    labels = [
        labelled(term, known_dimensions(shape), sizes)
        for term, shape in zip(terms.split(","), inputs, strict=False)
    ]
    wanted = set(labelled(result, known_dimensions(outputs[0]), sizes))
    count = 0
    for number, operand_labels in enumerate(labels):
        others = wanted.union(*labels[:number], *labels[number + 1 :])
        left = operand_labels & others
        if left != operand_labels:
            count += prod(sizes[label] for label in operand_labels) - prod(
                sizes[label] for label in left
            )
        labels[number] = left
    if len(labels) == 1:
        return count
    every = set().union(*labels)
    return count + (1 if every <= wanted else 2) * prod(sizes[label] for label in every)


def labelled(term: str, shape: Sequence[int], sizes: dict[str, int]) -> set[str]:
    """The labels of a term, with their sizes noted; axes of `...` are numbered from the last."""
    before, dots, after = term.partition("...")
    spread = len(shape) - len(before) - len(after)
    if spread < 0 or (spread and not dots):
        raise ValueError("its equation does not fit the shapes")
    names = [*before, *(f"-{axis}" for axis in range(spread, 0, -1)), *after]
    for name, size in zip(names, shape, strict=True):
        sizes[name] = max(size, sizes.get(name, 1)) if size else 0
    return set(names)


def lstm_cell(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """A product for the four gates, and 14 for each cell: the gates' biases (4) and functions (4),
    the bias of forgetting, c = i*g + f*c' (3), tanh(c) and its product with the gate.

    Hochreiter and Schmidhuber (1997) as in Greff et al., "LSTM: a search space odyssey" (2017).
    Peepholes are three multiply-adds, a clipped cell two comparisons.
    """
    batch, _ = known_dimensions(inputs[0])
    rows, columns = known_dimensions(inputs[3])
    each = 14 + 6 * bool(attributes.get("use_peephole"))
    each += 2 * (attributes.get("cell_clip", 0) > 0)
    return 2 * batch * rows * columns + each * batch * columns // 4


def gru_cell(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    """Products for the two gates and the candidate, and 11 for each cell: biases (3), functions
    (3), r*h, and h' = u*h + (1 - u)*c (4). Cho et al. (arXiv 1406.1078, 2014)."""
    batch, _columns = known_dimensions(inputs[0])
    products = sum(2 * batch * elements(weights) for weights in inputs[2:4])
    return products + 11 * batch * known_dimensions(inputs[3])[1]


# Element by element


def per_element(count: int, of: str = "output", place: int = 0) -> Formula:
    """So many for each element of an output, or of an input."""

    def formula(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
        return count * elements((inputs if of == "input" else outputs)[place])

    return formula


def sums(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    """n - 1 additions, comparisons or products for one number out of n."""
    return elements(inputs[0]) - elements(outputs[0])


def several(inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]) -> int:
    """n - 1 additions for the sum of n tensors."""
    return (len(inputs) - 1) * elements(outputs[0])


def batch_norm(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """Ioffe and Szegedy (arXiv 1502.03167, 2015), algorithm 1: a mean (1), a variance (3),
    a distance and a quotient (2), scale and shift (2). With known moments, the last four. What is
    done once a channel does not count."""
    return (8 if attributes.get("is_training", True) else 4) * elements(outputs[0])


def batch_norm_grad(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """With d the gradient and n the normalised input, of an element: n (2), the sums of d and of
    d*n (3), and d - mean(d) - n*mean(d*n), times a factor of the channel (4). With known moments:
    two sums with the distance from the mean (4), and d times a factor (1). Section 3 of Ioffe and
    Szegedy (2015), each value computed once. What is done once a channel does not count."""
    return (9 if attributes.get("is_training", True) else 5) * elements(inputs[0])


def sparse_cross_entropy(
    inputs: Sequence[Shape], outputs: Sequence[Shape], _: Mapping[str, Any]
) -> int:
    """The loss and its gradient: 5 an element as softmax, 3 a row (the logarithm of the sum, the
    distance from it, and 1 less at the label)."""
    return 5 * elements(inputs[0]) + 3 * elements(outputs[0])


def momentum(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """a = a*m + g, w -= a*r; of Nesterov w -= g*r + a*m*r."""
    return (7 if attributes.get("use_nesterov") else 4) * elements(inputs[3])


def adam(inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]) -> int:
    """m += (g - m)*(1 - b), v += (g*g - v)*(1 - c), w -= m*r / (sqrt(v) + e): Kingma and Ba (2015),
    as the kernel computes it."""
    if attributes.get("use_nesterov"):
        raise ValueError("there is no formula for it")
    return 12 * elements(inputs[9])


def adagrad(place: int) -> Formula:
    """a += g*g, w -= g*r / sqrt(a): Duchi, Hazan and Singer (2011), as the kernel computes it (a
    reciprocal root is two; of V2, a root, a sum and a quotient). Of a lookup only its rows."""

    def formula(
        inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
    ) -> int:
        return (7 if attributes.get("update_slots", True) else 5) * elements(inputs[place])

    return formula


def ftrl(more: int) -> Formula:
    """n' = n + g*g (2), z += g - (root(n') - root(n))/r * w (7), and where |z| > l (2), w is
    (sign(z)*l - z) / (root(n')/r + 2*m) (6): McMahan et al., "Ad click prediction" (2013),
    algorithm 1, each value computed once. Of V2 `more`: g + 2*s*w in place of g."""

    def formula(
        inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
    ) -> int:
        if attributes.get("multiply_linear_by_lr"):
            raise ValueError("there is no formula for it")
        return (17 + more) * elements(inputs[3])

    return formula


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


def average_pool_grad(
    inputs: Sequence[Shape], outputs: Sequence[Shape], attributes: Mapping[str, Any]
) -> int:
    """A multiply-add for each element of each window: tensorflow/core/kernels/avgpooling_op.cc."""
    return 2 * elements(inputs[1]) * prod(attributes["ksize"])
