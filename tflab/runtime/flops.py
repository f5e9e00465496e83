"""FLOPs: how many floating-point operations an op does, by its type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflab.runtime.flop_formulas import (
    Formula,
    Shape,
    adagrad,
    adam,
    average_pool_grad,
    batch_norm,
    batch_norm_grad,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    depthwise_backprop_filter,
    depthwise_backprop_input,
    depthwise_conv2d,
    einsum,
    elements,
    forward_convolution,
    ftrl,
    gru_cell,
    lstm_cell,
    max_pool_grad,
    momentum,
    per_element,
    pooling,
    product,
    several,
    sparse_cross_entropy,
    sums,
)


def flops(
    op: str,
    inputs: Sequence[Shape],
    outputs: Sequence[Shape],
    attributes: Mapping[str, Any],
) -> int:
    """The FLOPs of one run of an op of this type, on tensors of these shapes.

    `inputs` may be followed by those that a kernel of oneDNN adds; `attributes` are those of the
    node that ran, `fused_ops` as strings. Raises ValueError where there is no formula for the type
    or for an op that was fused into it, and where a shape that the formula needs is not known.
    """
    plain = plain_type(op)
    base = plain.removeprefix("Fused") if "fused_ops" in attributes else plain
    formula = FORMULAS.get(base)
    if formula is None:
        raise ValueError(WITHOUT.get(plain, "there is no formula for it"))
    count = formula(inputs, outputs, attributes)
    for fused in attributes.get("fused_ops", ()):
        if fused not in FUSED:
            raise ValueError(f"there is no formula for {fused}, which was fused into it")
        count += FUSED[fused] * elements(outputs[0])
    return count


def plain_type(op: str) -> str:
    """`Conv2D` for `_MklNativeConv2D`: oneDNN's kernels compute what their names say."""
    return op.removeprefix("_").removeprefix("Mkl").removeprefix("Native")


# Types whose every output is one operation. An elementary function (exp, tanh) counts as one.
ONE = """Abs Acos Add AddV2 Asin Atan Atan2 BiasAdd BitwiseAnd BitwiseOr Ceil Cos Cosh Div DivNoNan
    Elu Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Inv IsFinite IsInf
    IsNan LeakyRelu LeakyReluGrad Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum
    Minimum Mod Mul MulNoNan Neg NotEqual Pow RealDiv Reciprocal Relu Relu6 Relu6Grad ReluGrad Rint
    Round Selu Sigmoid Sign Sin Sinh Softplus Sqrt Square Sub Tan Tanh TruncateDiv Xdivy Xlogy"""
SCATTERED = " ".join(
    f"{kind}{how}"
    for kind in ("ResourceScatter", "ResourceScatterNd", "Scatter", "ScatterNd", "TensorScatter")
    for how in ("Add", "Div", "Max", "Min", "Mul", "Sub")
)
# Types of which shapes do not decide the count, and why
DRAWN = "the number of operations for a random number depends on the generator"
STEPS = "its number of steps is a value, and only shapes are known"
SORTED = "the number of comparisons depends on the values"
WITHOUT: Mapping[str, str] = {
    **dict.fromkeys(("RandomStandardNormal", "RandomUniform", "TruncatedNormal"), DRAWN),
    **dict.fromkeys(("RandomShuffle", "RandomUniformInt", "Multinomial", "RandomGammaV2"), DRAWN),
    **dict.fromkeys(("StatelessRandomNormalV2", "StatelessRandomUniformV2"), DRAWN),
    **dict.fromkeys(("StatelessRandomUniform", "StatelessRandomNormal"), DRAWN),
    **dict.fromkeys(("BlockLSTM", "BlockLSTMGrad", "BlockLSTMV2", "BlockLSTMGradV2"), STEPS),
    **dict.fromkeys(("TopK", "TopKV2"), SORTED),
}
FUSED: Mapping[str, int] = {  # by what comes after a product or convolution, for each output
    **dict.fromkeys(("Add", "BiasAdd", "Elu", "LeakyRelu", "Mul"), 1),
    **dict.fromkeys(("Relu", "Relu6", "Sigmoid", "Tanh"), 1),
    "FusedBatchNorm": 4,
}
TYPES: Sequence[tuple[Formula, str]] = (
    (per_element(1), f"{ONE} Cumprod Cumsum"),  # each is added to a sum that starts at 0
    (per_element(2), "ClipByValue Rsqrt SqrtGrad SquaredDifference"),
    (per_element(3), "InvGrad ReciprocalGrad SigmoidGrad TanhGrad"),
    (per_element(5), "LogSoftmax Softmax"),
    (sums, "All Any ArgMax ArgMin BiasAddGrad Max Min Prod Sum"),
    (several, "AccumulateNV2 AddN"),
    (pooling, "AvgPool AvgPool3D MaxPool MaxPool3D"),
    (product, "BatchMatMul BatchMatMulV2 BatchMatMulV3 MatMul"),
    (forward_convolution, "Conv2D Conv3D"),
    (conv2d_backprop_filter, "Conv2DBackpropFilter Conv3DBackpropFilterV2"),
    (conv2d_backprop_input, "Conv2DBackpropInput Conv3DBackpropInputV2"),
    (einsum, "Einsum XlaEinsum"),
    (adam, "ApplyAdam ResourceApplyAdam"),
    (adagrad(3), "ApplyAdagrad ResourceApplyAdagrad ResourceSparseApplyAdagrad SparseApplyAdagrad"),
    (adagrad(4), "ApplyAdagradV2 ResourceApplyAdagradV2"),
    (adagrad(4), "ResourceSparseApplyAdagradV2 SparseApplyAdagradV2"),
    (ftrl(0), "ApplyFtrl ResourceApplyFtrl ResourceSparseApplyFtrl SparseApplyFtrl"),
    (ftrl(2), "ApplyFtrlV2 ResourceApplyFtrlV2 ResourceSparseApplyFtrlV2 SparseApplyFtrlV2"),
    (momentum, "ApplyMomentum ResourceApplyMomentum ResourceSparseApplyMomentum"),
    (momentum, "SparseApplyMomentum"),
    # v += (g*g - v)*(1 - d), m = m*b + g*r / sqrt(v + e), w -= m: Tieleman and Hinton (2012)
    (per_element(11, "input", 7), "ApplyRMSProp ResourceApplyRMSProp"),
    # The same with the mean of the gradients, squared, taken off v: Graves (arXiv 1308.0850, 2013)
    (per_element(16, "input", 8), "ApplyCenteredRMSProp ResourceApplyCenteredRMSProp"),
    (per_element(2, "input", 2), "ApplyGradientDescent ResourceApplyGradientDescent"),
    (per_element(1, "input", 1), "AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp"),
    (per_element(1, "input", 2), SCATTERED),
    (per_element(1, "input", 1), "ScatterNd"),  # updates of the same element are added up
    (average_pool_grad, "AvgPoolGrad"),
    (depthwise_conv2d, "DepthwiseConv2dNative"),
    (depthwise_backprop_filter, "DepthwiseConv2dNativeBackpropFilter"),
    (depthwise_backprop_input, "DepthwiseConv2dNativeBackpropInput"),
    (batch_norm, "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3"),
    (batch_norm_grad, "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3"),
    (gru_cell, "GRUBlockCell"),
    (per_element(2, "input"), "L2Loss"),
    (lstm_cell, "LSTMBlockCell"),
    (max_pool_grad, "MaxPoolGrad"),
    (per_element(1, "input"), "Mean UnsortedSegmentSum"),
    (per_element(4), "RsqrtGrad"),
    (per_element(9, "input"), "SoftmaxCrossEntropyWithLogits"),
    (sparse_cross_entropy, "SparseSoftmaxCrossEntropyWithLogits"),
)
FORMULAS: Mapping[str, Formula] = {op: formula for formula, types in TYPES for op in types.split()}
