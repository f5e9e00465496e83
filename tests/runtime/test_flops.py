"""FLOPs: every formula, worked out by hand."""

import pytest
import tensorflow as tf

from tflab.runtime import flops

pytestmark = pytest.mark.tensorflow

IMAGE = (64, 14, 14, 6)
RESULT = (64, 10, 10, 16)
FILTER = (5, 5, 6, 16)
CHANNELS = (3, 3, 6, 2)  # a depthwise filter: 12 channels come out
WIDE = (2, 12, 12, 12)

FUSED = {"fused_ops": ["BiasAdd", "Relu"], "transpose_a": False}

EXAMPLES = [
    # a convolution of 64 x 10 x 10 x 16 outputs of 5 x 5 x 6 products, and what it costs back
    ("Conv2D", [IMAGE, FILTER], [RESULT], {}, 30_720_000),
    ("Conv2DBackpropInput", [(4,), FILTER, RESULT], [IMAGE], {}, 30_720_000),
    ("Conv2DBackpropFilter", [IMAGE, (4,), RESULT], [FILTER], {}, 30_720_000),
    # two groups: a filter sees 3 of the 6 channels
    ("Conv2D", [IMAGE, (5, 5, 3, 16)], [RESULT], {}, 15_360_000),
    # NCHW
    ("Conv2D", [(64, 6, 14, 14), FILTER], [(64, 16, 10, 10)], {}, 30_720_000),
    # 2 x 12 x 12 x 12 outputs of 3 x 3 products
    ("DepthwiseConv2dNative", [(2, 14, 14, 6), CHANNELS], [WIDE], {}, 62_208),
    (
        *("DepthwiseConv2dNativeBackpropInput", [(4,), CHANNELS, WIDE], [(2, 14, 14, 6)]),
        *({}, 62_208),
    ),
    (
        *("DepthwiseConv2dNativeBackpropFilter", [(2, 14, 14, 6), (4,), WIDE], [CHANNELS]),
        *({}, 62_208),
    ),
    # 2 x 3 x 5 x 4
    ("MatMul", [(3, 4), (4, 5)], [(3, 5)], {}, 120),
    ("MatMul", [(4, 3), (4, 5)], [(3, 5)], {"transpose_a": True}, 120),
    ("MatMul", [(3, 4), (5, 4)], [(3, 5)], {"transpose_a": False, "transpose_b": True}, 120),
    ("BatchMatMul", [(7, 3, 4), (7, 4, 5)], [(7, 3, 5)], {"adj_x": False}, 840),
    ("BatchMatMulV2", [(7, 4, 3), (7, 4, 5)], [(7, 3, 5)], {"adj_x": True}, 840),
    ("BatchMatMulV3", [(7, 3, 4), (1, 4, 5)], [(7, 3, 5)], {"adj_x": False}, 840),
    # 24 elements, 4 of them sums of 6
    ("BiasAdd", [(2, 3, 4), (4,)], [(2, 3, 4)], {}, 24),
    ("BiasAddGrad", [(2, 3, 4)], [(4,)], {}, 20),
    ("Relu", [(2, 3, 4)], [(2, 3, 4)], {}, 24),
    ("ReluGrad", [(2, 3, 4), (2, 3, 4)], [(2, 3, 4)], {}, 24),
    ("Softmax", [(3, 4)], [(3, 4)], {}, 60),
    ("ClipByValue", [(3, 4), (), ()], [(3, 4)], {}, 24),
    ("TanhGrad", [(3, 4), (3, 4)], [(3, 4)], {}, 36),
    ("RsqrtGrad", [(3, 4), (3, 4)], [(3, 4)], {}, 48),
    ("AddN", [(3, 4), (3, 4), (3, 4)], [(3, 4)], {}, 24),
    ("L2Loss", [(3, 4)], [()], {}, 24),
    ("Mean", [(3, 4), (1,)], [(3,)], {}, 12),
    ("Sum", [(3, 4), (1,)], [(3,)], {}, 9),
    ("SoftmaxCrossEntropyWithLogits", [(3, 4), (3, 4)], [(3,), (3, 4)], {}, 108),
    ("SparseSoftmaxCrossEntropyWithLogits", [(3, 4), (3,)], [(3,), (3, 4)], {}, 69),
    ("FusedBatchNormV3", [(3, 4)], [(3, 4)], {"is_training": True}, 96),
    ("FusedBatchNormV3", [(3, 4)], [(3, 4)], {"is_training": False}, 48),
    ("ResourceApplyGradientDescent", [(), (), (3, 4)], [], {}, 24),
    ("ResourceApplyMomentum", [(), (), (), (3, 4), ()], [], {"use_nesterov": False}, 48),
    ("ResourceApplyMomentum", [(), (), (), (3, 4), ()], [], {"use_nesterov": True}, 84),
    ("ResourceApplyAdam", [()] * 9 + [(3, 4)], [], {"use_nesterov": False}, 144),
    ("FusedBatchNormGradV3", [(3, 4)], [(3, 4)], {"is_training": True}, 108),
    ("FusedBatchNormGradV3", [(3, 4)], [(3, 4)], {"is_training": False}, 60),
    ("AssignAddVariableOp", [(), (3, 4)], [], {}, 12),
    ("AvgPoolGrad", [(4,), (2, 3, 3, 5)], [(2, 6, 12, 5)], {"ksize": [1, 2, 4, 1]}, 1440),
    ("Conv3D", [(1, 5, 5, 5, 2), (3, 3, 3, 2, 4)], [(1, 3, 3, 3, 4)], {}, 2 * 108 * 54),
    # 2 x 3 x 3 x 5 = 90 windows of 2 x 4
    ("MaxPool", [(2, 6, 12, 5)], [(2, 3, 3, 5)], {"ksize": [1, 2, 4, 1]}, 720),
    ("AvgPool", [(2, 5, 6, 12)], [(2, 5, 3, 3)], {"ksize": [1, 1, 2, 4]}, 720),
    (
        *("MaxPoolGrad", [(2, 6, 12, 5), (2, 3, 3, 5), (2, 3, 3, 5)], [(2, 6, 12, 5)]),
        *({"ksize": [1, 2, 4, 1]}, 810),
    ),
    # a kernel of oneDNN computes what its name says, and what is fused into it counts too
    ("_MklNativeConv2D", [IMAGE, FILTER], [RESULT], {}, 30_720_000),
    ("_MklConv2D", [IMAGE, FILTER], [RESULT], {}, 30_720_000),
    ("_FusedMatMul", [(3, 4), (4, 5), (5,)], [(3, 5)], FUSED, 120 + 2 * 15),
    ("_MklNativeFusedMatMul", [(3, 4), (4, 5), (5,)], [(3, 5)], FUSED, 120 + 2 * 15),
    # a shape that no formula needs may be unknown
    ("Conv2D", [None, (3, 3, 1, 2)], [(1, 4, 4, 2)], {}, 576),
    # a scalar is one element, and an empty batch costs nothing
    ("Relu", [()], [()], {}, 1),
    ("Relu", [(0, 3)], [(0, 3)], {}, 0),
    # 16,384 pairs; of complex numbers, (a + bi)(c + di) = ac - bd + (ad + bc)i and an addition
    ("MatMul", [(16, 32), (32, 32)], [(16, 32)], {"T": tf.complex64}, 131_072),
    ("MatMul", [(16, 32), (32, 32)], [(16, 32)], {"T": tf.float32}, 32_768),
    ("Mul", [(5,), (5,)], [(5,)], {"T": tf.complex128}, 30),
    ("AddV2", [(5,), (5,)], [(5,)], {"T": tf.complex64}, 10),
    # operations on integers are no floating-point operations
    *(
        (op, [(3, 3), (3, 3)], [(3, 3)], {"T": tf.int32}, 0)
        for op in ("AddV2", "MatMul", "Sum", "ArgMax", "Equal", "AssignAdd")
    ),
    ("LogicalAnd", [(3, 3), (3, 3)], [(3, 3)], {}, 0),
]


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes", "expected"), EXAMPLES)
def test_the_flops_of_an_op_follow_from_its_shapes(op, inputs, outputs, attributes, expected):
    assert flops.flops(op, inputs, outputs, attributes) == expected


def test_every_formula_has_an_example():
    shown = {flops.FORMULAS.get(op) for op, *_ in EXAMPLES} | {flops.FORMULAS["Abs"]}
    assert shown >= set(flops.FORMULAS.values())


@pytest.mark.parametrize("op", sorted({*flops.ONE.split()} - flops.LOGICAL))
def test_an_op_by_elements_counts_one_for_each_output(op):
    assert flops.flops(op, [(3, 1), (4,)], [(3, 4)], {}) == 12


@pytest.mark.parametrize(
    ("op", "attributes", "words"),
    [
        ("CumulativeLogsumexp", {}, "there is no formula for it"),
        ("RandomUniform", {}, "there is no formula for it"),
        ("ResourceApplyAdam", {"use_nesterov": True}, "there is no formula for it"),
        ("Exp", {"T": tf.complex64}, "there is no formula for it with complex numbers"),
        ("_XlaRun", {}, "there is no formula for it"),
        ("_FusedMatMul", {"fused_ops": ["Quantize"]}, "no formula for Quantize"),
        ("_MklConv2DBackpropFilterWithBias", {}, "there is no formula for it"),
    ],
)
def test_where_a_formula_is_missing_nothing_is_counted(op, attributes, words):
    with pytest.raises(ValueError, match=words):
        flops.flops(op, [(3, 4), (4, 5)], [(3, 5)], attributes)


@pytest.mark.parametrize("shape", [None, (3, None)])
def test_a_shape_that_is_not_known_is_not_guessed(shape):
    with pytest.raises(ValueError, match="not fully defined"):
        flops.flops("Relu", [shape], [shape], {})


def test_types_of_a_definition_are_read():
    with tf.Graph().as_default():
        op = tf.raw_ops.MatMul(
            a=tf.zeros([2, 3], tf.complex64), b=tf.zeros([3, 4], tf.complex64)
        ).op
    assert list(flops.of_operations([op])) == [2 * 3 * 4 * 8]
