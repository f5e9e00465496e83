"""FLOPs: every formula, worked out by hand."""

import pytest

from tflab.runtime import flop_counts, flop_formulas

IMAGE = (64, 14, 14, 6)
RESULT = (64, 10, 10, 16)
FILTER = (5, 5, 6, 16)
PRODUCTS = 64 * 10 * 10 * 16 * 5 * 5 * 6  # multiply-adds of LeNet's second convolution
CHANNELS = (3, 3, 6, 2)  # a depthwise filter: 12 channels come out
WIDE = (2, 12, 12, 12)

EXAMPLES = [
    # a convolution, and what it costs back
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
    ("ApplyAdagrad", [(), (), (), (3, 4)], [], {}, 84),
    ("SparseApplyAdagrad", [(), (), (), (3, 4), (3,)], [], {"update_slots": False}, 60),
    ("ResourceApplyAdagradV2", [(), (), (), (), (3, 4)], [], {}, 84),
    ("ResourceSparseApplyAdagradV2", [(), (), (), (), (3, 4), (3,)], [], {}, 84),
    ("ApplyRMSProp", [()] * 7 + [(3, 4)], [], {}, 132),
    ("ApplyCenteredRMSProp", [()] * 8 + [(3, 4)], [], {}, 192),
    ("ApplyFtrl", [(), (), (), (3, 4)], [], {}, 204),
    ("ApplyFtrlV2", [(), (), (), (3, 4)], [], {}, 228),
    ("ScatterNd", [(4, 1), (4, 3), (2,)], [(5, 3)], {}, 12),
    ("FusedBatchNormGradV3", [(3, 4)], [(3, 4)], {"is_training": True}, 108),
    ("FusedBatchNormGradV3", [(3, 4)], [(3, 4)], {"is_training": False}, 60),
    ("AssignAddVariableOp", [(), (3, 4)], [], {}, 12),
    ("ResourceScatterAdd", [(), (3,), (3, 4)], [], {}, 12),
    # 2 rows of 3, 4 cells: four gates of 7 x 4 products, 14 for a cell
    (
        *("LSTMBlockCell", [(2, 3), (2, 4), (2, 4), (7, 16)], [(2, 4)]),
        *({"cell_clip": -1.0, "use_peephole": False}, 2 * 2 * 7 * 16 + 14 * 8),
    ),
    (
        *("LSTMBlockCell", [(2, 3), (2, 4), (2, 4), (7, 16)], [(2, 4)]),
        *({"cell_clip": 3.0, "use_peephole": True}, 2 * 2 * 7 * 16 + 22 * 8),
    ),
    (
        *("GRUBlockCell", [(2, 3), (2, 4), (7, 8), (7, 4)], [(2, 4)]),
        *({}, 2 * 2 * 7 * 12 + 11 * 8),
    ),
    ("AvgPoolGrad", [(4,), (2, 3, 3, 5)], [(2, 6, 12, 5)], {"ksize": [1, 2, 4, 1]}, 1440),
    ("Conv3D", [(1, 5, 5, 5, 2), (3, 3, 3, 2, 4)], [(1, 3, 3, 3, 4)], {}, 2 * 108 * 54),
    # 2 x 3 x 3 x 5 = 90 windows of 2 x 4
    ("MaxPool", [(2, 6, 12, 5)], [(2, 3, 3, 5)], {"ksize": [1, 2, 4, 1]}, 720),
    ("AvgPool", [(2, 5, 6, 12)], [(2, 5, 3, 3)], {"ksize": [1, 1, 2, 4]}, 720),
    (
        *("MaxPoolGrad", [(2, 6, 12, 5), (2, 3, 3, 5), (2, 3, 3, 5)], [(2, 6, 12, 5)]),
        *({"ksize": [1, 2, 4, 1]}, 810),
    ),
]


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes", "expected"), EXAMPLES)
def test_the_flops_of_an_op_follow_from_its_shapes(op, inputs, outputs, attributes, expected):
    assert flop_counts.flops(op, inputs, outputs, attributes) == expected


def test_a_multiply_add_is_two():
    assert 2 * PRODUCTS == 30_720_000


def test_every_formula_has_an_example():
    shown = {flop_counts.FORMULAS[example[0]] for example in EXAMPLES}
    assert shown | {flop_counts.FORMULAS["Abs"], flop_formulas.einsum} == set(
        flop_counts.FORMULAS.values()
    )


@pytest.mark.parametrize("op", flop_counts.ONE.split())
def test_an_op_by_elements_counts_one_for_each_output(op):
    assert flop_counts.flops(op, [(3, 1), (4,)], [(3, 4)], {}) == 12


@pytest.mark.parametrize("op", ["_MklNativeConv2D", "_MklConv2D", "Conv2D"])
def test_a_kernel_of_onednn_computes_what_its_name_says(op):
    assert flop_counts.flops(op, [IMAGE, FILTER], [RESULT], {}) == 30_720_000


def test_what_is_fused_into_a_product_counts_too():
    fused = {"fused_ops": ["BiasAdd", "Relu"], "transpose_a": False}
    for op in ("_FusedMatMul", "_MklNativeFusedMatMul"):
        assert flop_counts.flops(op, [(3, 4), (4, 5), (5,)], [(3, 5)], fused) == 120 + 2 * 15


@pytest.mark.parametrize(
    ("op", "attributes", "words"),
    [
        ("CumulativeLogsumexp", {}, "there is no formula for it"),
        ("ApplyFtrl", {"multiply_linear_by_lr": True}, "there is no formula for it"),
        ("TopKV2", {}, "the number of comparisons depends on the values"),
        ("BlockLSTMV2", {}, "its number of steps is a value, and only shapes are known"),
        (
            "RandomUniform",
            {},
            "the number of operations for a random number depends on the generator",
        ),
        ("_XlaRun", {}, "there is no formula for it"),
        ("_FusedMatMul", {"fused_ops": ["Quantize"]}, "no formula for Quantize"),
        ("_MklConv2DBackpropFilterWithBias", {}, "there is no formula for it"),
    ],
)
def test_where_a_formula_is_missing_nothing_is_counted(op, attributes, words):
    with pytest.raises(ValueError, match=words):
        flop_counts.flops(op, [(3, 4), (4, 5)], [(3, 5)], attributes)


@pytest.mark.parametrize(
    ("equation", "inputs", "output", "expected"),
    [
        ("...ij,jk->...ik", [(2, 7, 3, 4), (4, 5)], (2, 7, 3, 5), 2 * 2 * 7 * 3 * 4 * 5),
        ("...ij,...jk->...ik", [(7, 3, 4), (2, 1, 4, 5)], (2, 7, 3, 5), 2 * 2 * 7 * 3 * 4 * 5),
        ("ij,ij->ij", [(3, 4), (3, 4)], (3, 4), 12),  # only products
        ("i,j->ij", [(3,), (4,)], (3, 4), 12),
        ("ij,k->ik", [(3, 4), (5,)], (3, 5), 3 * 3 + 15),  # the sum over j comes first
        ("ij->j", [(3, 4)], (4,), 8),
        ("ij->ji", [(3, 4)], (4, 3), 0),
        ("ij, jk -> ik", [(3, 0), (0, 5)], (3, 5), 0),
    ],
)
def test_an_einsum_counts_by_its_labels(equation, inputs, output, expected):
    assert flop_counts.flops("Einsum", inputs, [output], {"equation": equation}) == expected


def test_an_equation_that_does_not_fit_its_shapes_is_not_counted():
    with pytest.raises(ValueError, match="does not fit"):
        flop_counts.flops("Einsum", [(3, 4, 5), (4, 5)], [(3, 5)], {"equation": "ij,jk->ik"})


@pytest.mark.parametrize("shape", [None, (3, None)])
def test_a_shape_that_is_not_known_is_not_guessed(shape):
    with pytest.raises(ValueError, match="not fully defined"):
        flop_counts.flops("Relu", [shape], [shape], {})


def test_shapes_that_no_formula_needs_may_be_unknown():
    assert flop_counts.flops("Conv2D", [None, (3, 3, 1, 2)], [(1, 4, 4, 2)], {}) == 576


def test_a_scalar_is_one_element_and_an_empty_batch_costs_nothing():
    assert flop_counts.flops("Relu", [()], [()], {}) == 1
    assert flop_counts.flops("Relu", [(0, 3)], [(0, 3)], {}) == 0
