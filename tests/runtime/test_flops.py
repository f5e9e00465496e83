"""FLOPs: every formula, worked out by hand."""

import pytest

from tflab.runtime import flops

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
    assert flops.flops(op, inputs, outputs, attributes) == expected


def test_a_multiply_add_is_two():
    assert 2 * PRODUCTS == 30_720_000


def test_every_formula_has_an_example():
    assert {example[0] for example in EXAMPLES} == set(flops.FORMULAS)


def test_every_attribute_that_is_asked_for_has_an_example():
    given = {name for *_, attributes, _ in EXAMPLES for name in attributes}
    assert given >= set(flops.ATTRIBUTES)


def test_a_type_without_a_formula_has_no_flops():
    assert flops.flops("Exp", [(3,)], [(3,)], {}) is None


@pytest.mark.parametrize("shape", [None, (3, None)])
def test_a_shape_that_is_not_known_is_not_guessed(shape):
    with pytest.raises(ValueError, match="not fully defined"):
        flops.flops("Relu", [shape], [shape], {})


def test_shapes_that_no_formula_needs_may_be_unknown():
    assert flops.flops("Conv2D", [None, (3, 3, 1, 2)], [(1, 4, 4, 2)], {}) == 576


def test_a_scalar_is_one_element_and_an_empty_batch_costs_nothing():
    assert flops.flops("Relu", [()], [()], {}) == 1
    assert flops.flops("Relu", [(0, 3)], [(0, 3)], {}) == 0
