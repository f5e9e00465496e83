"""Costs: every formula, the FLOPs of LeNet, and fed bytes, worked out by hand."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import walks
from tests.records_by_hand import a_placement
from tflab.records.graph import Node, Tensor
from tflab.runtime import costs, nodes, trace

pytestmark = pytest.mark.tensorflow


def placed(fetches, feeds):
    """The placement of a traced step of the default graph."""
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(fetches, feeds, options, metadata)
    shapes = trace.output_shapes(metadata.step_stats)
    parts = tuple(metadata.partition_graphs)
    ran = (node for part in parts for node in nodes.from_graph_def(part, {}, shapes))
    return a_placement(nodes=tuple(ran), partition_graphs=parts)


# Formulas

IMAGE, SMALL = (64, 14, 14, 6), (2, 14, 14, 6)
RESULT = (64, 10, 10, 16)
FILTER = (5, 5, 6, 16)
CHANNELS = (3, 3, 6, 2)  # a depthwise filter: 12 channels come out
WIDE = (2, 12, 12, 12)
POOLED = (2, 6, 12, 5)

FUSED = {"fused_ops": ["BiasAdd", "Relu"], "transpose_a": False}

RELU = {"is_training": False, "num_side_inputs": 0, "activation_mode": "Relu"}
EXAMPLES = [
    # a convolution of 64 x 10 x 10 x 16 outputs of 5 x 5 x 6 products, and what it costs back
    ("Conv2D", [IMAGE, FILTER], [RESULT], {}, 30_720_000),
    ("Conv2DBackpropInput", [(4,), FILTER, RESULT], [IMAGE], {}, 30_720_000),
    ("Conv2DBackpropFilter", [IMAGE, (4,), RESULT], [FILTER], {}, 30_720_000),
    # two groups: a filter sees 3 of the 6 channels
    ("Conv2D", [IMAGE, (5, 5, 3, 16)], [RESULT], {}, 15_360_000),
    # 2 x 12 x 12 x 12 outputs of 3 x 3 products
    ("DepthwiseConv2dNative", [SMALL, CHANNELS], [WIDE], {}, 62_208),
    ("DepthwiseConv2dNativeBackpropInput", [(4,), CHANNELS, WIDE], [SMALL], {}, 62_208),
    ("DepthwiseConv2dNativeBackpropFilter", [SMALL, (4,), WIDE], [CHANNELS], {}, 62_208),
    # 2 x 3 x 5 x 4
    ("MatMul", [(3, 4), (4, 5)], [(3, 5)], {}, 120),
    ("MatMul", [(4, 3), (4, 5)], [(3, 5)], {"transpose_a": True}, 120),
    ("BatchMatMulV2", [(7, 4, 3), (7, 4, 5)], [(7, 3, 5)], {"adj_x": True}, 840),
    ("BatchMatMulV3", [(7, 3, 4), (1, 4, 5)], [(7, 3, 5)], {"adj_x": False}, 840),
    # 24 elements, 4 of them sums of 6
    ("BiasAdd", [(2, 3, 4), (4,)], [(2, 3, 4)], {}, 24),
    ("BiasAddGrad", [(2, 3, 4)], [(4,)], {}, 20),
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
    ("_MklNativeFusedBatchNormEx", [(3, 4)], [(3, 4)], RELU, 60),
    ("ResourceApplyGradientDescent", [(), (), (3, 4)], [], {}, 24),
    ("ResourceApplyMomentum", [(), (), (), (3, 4), ()], [], {"use_nesterov": False}, 48),
    ("ResourceApplyMomentum", [(), (), (), (3, 4), ()], [], {"use_nesterov": True}, None),
    ("ResourceApplyAdam", [()] * 9 + [(3, 4)], [], {"use_nesterov": False}, 144),
    ("FusedBatchNormGradV3", [(3, 4)], [(3, 4)], {"is_training": True}, 108),
    ("FusedBatchNormGradV3", [(3, 4)], [(3, 4)], {"is_training": False}, 60),
    ("AssignAddVariableOp", [(), (3, 4)], [], {}, 12),
    ("AvgPoolGrad", [(4,), (2, 3, 3, 5)], [(2, 6, 12, 5)], {"ksize": [1, 2, 4, 1]}, 1440),
    ("Conv3D", [(1, 5, 5, 5, 2), (3, 3, 3, 2, 4)], [(1, 3, 3, 3, 4)], {}, 2 * 108 * 54),
    # 2 x 3 x 3 x 5 = 90 windows of 2 x 4
    ("MaxPool", [POOLED], [(2, 3, 3, 5)], {"ksize": [1, 2, 4, 1]}, 720),
    ("AvgPool", [(2, 5, 6, 12)], [(2, 5, 3, 3)], {"ksize": [1, 1, 2, 4]}, 720),
    ("MaxPoolGrad", [POOLED, (2, 3, 3, 5), (2, 3, 3, 5)], [POOLED], {"ksize": [1, 2, 4, 1]}, 810),
    # a kernel of oneDNN computes what its name says, and what is fused into it counts too
    ("_MklNativeConv2D", [IMAGE, FILTER], [RESULT], {}, 30_720_000),
    ("_MklNativeFusedMatMul", [(3, 4), (4, 5), (5,)], [(3, 5)], FUSED, 120 + 2 * 15),
    # a shape that no formula needs may be unknown
    ("Conv2D", [None, (3, 3, 1, 2)], [(1, 4, 4, 2)], {}, 576),
    # a scalar is one element, and an empty batch costs nothing
    ("Relu", [()], [()], {}, 1),
    ("Relu", [(0, 3)], [(0, 3)], {}, 0),
    # operations on integers are no floating-point operations
    *(
        (op, [(3, 3), (3, 3)], [(3, 3)], {"T": tf.int32}, 0)
        for op in ("AddV2", "MatMul", "Sum", "ArgMax", "Equal", "AssignAdd")
    ),
    ("LogicalAnd", [(3, 3), (3, 3)], [(3, 3)], {}, 0),
    # nothing is counted where a formula, or a shape that it needs, is missing
    ("CumulativeLogsumexp", [(3, 4)], [(3, 4)], {}, None),
    ("Exp", [(3, 4)], [(3, 4)], {"T": tf.complex64}, None),
    ("_XlaRun", [(3, 4)], [(3, 4)], {}, None),
    ("_FusedMatMul", [(3, 4), (4, 5)], [(3, 5)], {"fused_ops": ["Quantize"]}, None),
    ("_MklConv2DBackpropFilterWithBias", [IMAGE, (4,), RESULT], [FILTER], {}, None),
    ("Relu", [(3, None)], [(3, None)], {}, None),
    ("Conv2D", [IMAGE], [RESULT], {}, None),
]


@pytest.mark.parametrize(("op", "inputs", "outputs", "attributes", "expected"), EXAMPLES)
def test_the_flops_of_an_op_follow_from_its_shapes(op, inputs, outputs, attributes, expected):
    assert costs.flops(op, inputs, outputs, attributes) == expected


def test_every_formula_has_an_example():
    shown = {costs.FORMULAS.get(op) for op, *_ in EXAMPLES} | {costs.FORMULAS["Abs"]}
    assert shown >= set(costs.FORMULAS.values())


# Nodes that ran

BATCH = 16  # of the walks in conftest.py
LAYERS = {  # by their last nodes: outputs, products of each, what comes after the products
    "conv1/Relu": (28 * 28 * 6, 5 * 5 * 1, 2),
    "conv2/Relu": (10 * 10 * 16, 5 * 5 * 6, 2),
    "dense1/Relu": (120, 400, 2),
    "dense2/Relu": (84, 120, 2),
    "dense3/BiasAdd": (10, 84, 1),
}


def test_the_flops_of_lenet_are_those_of_its_layers(walked):
    """A fused layer does its products, adds its bias, and compares with 0; each gradient of a
    layer does its products once more."""
    work = costs.flops_of_nodes(walked("lenet")["placement"])
    for name, (outputs, products, after) in LAYERS.items():
        assert work[name] == BATCH * outputs * (2 * products + after)
        gradients = re.compile(f"gradients/{name.partition('/')[0]}/.*/(MatMul|Conv2DBackprop)")
        backward = [flops for node, flops in work.items() if gradients.match(node)]
        count = 1 if name == "conv1/Relu" else 2  # nobody asks for the gradient of the images
        assert backward == [BATCH * outputs * 2 * products] * count
    assert None not in work.values()


@pytest.mark.parametrize("name", walks.WHOLE)
def test_every_executed_node_is_counted_in_its_order(name, walked):
    stage = walked(name)["placement"]
    assert [*costs.flops_of_nodes(stage)] == [node.name for node in stage.nodes]


def test_changing_shapes_have_no_flops_and_what_hands_on_or_moves_has_none():
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 5])

        def body(i, total):  # 1, 2, 3 and 4 rows
            rows = tf.slice(x, [0, 0], tf.stack([i, 5]))
            return i + 1, total + tf.reduce_sum(tf.matmul(rows, x, transpose_b=True))

        _, total = tf1.while_loop(lambda i, _: i < 5, body, [1, 0.0])
        stage = placed(total, {x: np.ones([4, 5])})
    types = (costs.plain_type(node.op) for node in stage.nodes)
    flops_of = dict(zip(types, costs.flops_of_nodes(stage).values(), strict=True))
    assert (flops_of["MatMul"], flops_of["Slice"], flops_of["Merge"]) == (None, 0, 0)


@pytest.mark.parametrize(
    ("tensor", "flops"), [("split", 60), ("split:1", 140), ("split:2", None), ("nowhere", None)]
)
def test_an_input_has_the_shape_of_that_output_of_its_maker(tensor, flops):
    split = Node("split", "Unknown", outputs=(Tensor("float32", (2, 3)), Tensor("float32", (2, 7))))
    product = Node("it", "MatMul", (tensor, "w"), outputs=(Tensor("float32", (2, 5)),))
    ran = tf1.GraphDef(node=[tf1.NodeDef(name="it")])
    stage = a_placement(nodes=(product, split), partition_graphs=(ran,))
    assert costs.flops_of_nodes(stage) == {"it": flops, "split": None}


# What only moves data


def test_an_op_moves_data_by_the_type_that_ran():
    types = "_MklTranspose Slice _MklSlice _Send Cast Const Identity _FusedConv2D Mul Copy"
    moving = [op for op in types.split() if costs.moves_data(op)]
    assert moving == ["_MklTranspose", "Slice", "_MklSlice", "_Send", "Cast"]


def test_fed_bytes_are_those_of_all_that_is_fed_and_has_a_size():
    fed = [
        Node("_arg_x", "_Arg", outputs=(Tensor("float32", (4, 3)),)),
        Node("_arg_n", "_Arg", outputs=(Tensor("uint8", (5,)),)),
        Node("_arg_s", "_Arg", outputs=(Tensor("string", (7,)),)),
        Node("_arg_lost", "_Arg"),
        Node("x", "Mul", outputs=(Tensor("float32", (900,)),)),
    ]
    assert costs.fed_bytes(fed) == 4 * 4 * 3 + 5
