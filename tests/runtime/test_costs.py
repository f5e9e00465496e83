"""Costs: FLOPs of LeNet and of what XLA compiled, bytes by hand."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import walks
from tests.graph_notation import fates, graph
from tflab.errors import TflabError
from tflab.records.graph import Node, Tensor
from tflab.records.placed import Fate
from tflab.records.stages import Placement
from tflab.runtime import costs, flops

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)
BATCH = 16  # of the walks in conftest.py


@pytest.fixture(scope="module")
def lenet(walked):
    return walked("lenet")["placement"]


# output side, output channels, kernel side, input channels
CONVOLUTIONS = {"conv1": (28, 6, 5, 1), "conv2": (10, 16, 5, 6)}
PRODUCTS = {
    "dense1": (400, 120, "Relu"),
    "dense2": (120, 84, "Relu"),
    "dense3": (84, 10, "BiasAdd"),
}


def test_the_flops_of_lenet_are_those_of_its_layers(lenet):
    """A fused layer does its products, adds its bias, and compares with 0; each gradient of a
    layer does its products once more."""
    counted = {cost.name: cost for cost in costs.costs(lenet)}
    work = {name: cost.flops for name, cost in counted.items()}
    for layer, (side, channels, kernel, inputs) in CONVOLUTIONS.items():
        outputs = BATCH * side * side * channels
        products = 2 * outputs * kernel * kernel * inputs
        assert work[f"{layer}/Relu"] == products + 2 * outputs
        assert work[f"gradients/{layer}/Conv2D_grad/Conv2DBackpropFilter"] == products
        if layer == "conv2":
            assert work[f"gradients/{layer}/Conv2D_grad/Conv2DBackpropInput"] == products
    for layer, (inputs, outputs, last) in PRODUCTS.items():
        products, after = 2 * BATCH * inputs * outputs, 2 if last == "Relu" else 1
        assert work[f"{layer}/{last}"] == products + after * BATCH * outputs
        for gradient in ("MatMul", "MatMul_1"):
            assert work[f"gradients/{layer}/MatMul_grad/{gradient}"] == products
    assert costs.types_without_flops(lenet) == {}
    assert None not in work.values()
    image_kernel_bias = 32 * 32 * BATCH + 5 * 5 * 6 + 6
    assert counted["conv1/Relu"].bytes == 4 * (image_kernel_bias + 28 * 28 * 6 * BATCH)


@every_model
def test_every_executed_node_has_costs_in_its_order(name, walked):
    stage = walked(name)["placement"]
    assert [cost.name for cost in costs.costs(stage)] == [node.name for node in stage.nodes]
    assert None not in {cost.bytes for cost in costs.costs(stage)}


@pytest.mark.parametrize(
    ("names", "count", "missing"),
    [("add relu y", 3 * 24, {}), ("add relu y sums", None, {"_XlaRun": 1})],
)
def test_what_xla_compiled_does_the_work_of_the_nodes_in_it(names, count, missing, monkeypatch):
    """relu(x + x) * 2 of a batch of 4 times 6; of its sums nobody knows the work."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [4, 6], name="x")
        y = tf.multiply(tf.nn.relu(tf.add(x, x, name="add"), name="relu"), 2.0, name="y")
        tf.math.cumulative_logsumexp(y, name="sums")
    monkeypatch.setattr(costs, "of_placement", lambda placed: graph)
    ledger = tuple(Fate(name, "compiled", "a pass", "cluster") for name in names.split())
    stage = Placement(program=None, nodes=(Node("cluster", "_XlaRun"),), ledger=ledger)
    assert [cost.flops for cost in costs.costs(stage)] == [count]
    assert costs.types_without_flops(stage) == missing


# Bytes


def float32(*shape):
    return Tensor("float32", shape)


X = Node("x", "_Arg", outputs=(float32(4, 3),))
W, UNSHAPED = (
    Node(name, "VarHandleOp", outputs=(Tensor("resource", ()),)) for name in ("w", "unshaped")
)
READ = Node("read", "ReadVariableOp", ("w",), outputs=(float32(3, 5),))
RATE = Node("rate", "Const", outputs=(float32(),))
SPLIT = Node("split", "Unknown", ("x",), outputs=(float32(2, 3), Tensor("float64", (2, 3))))
TEXT = Node("text", "Const", outputs=(Tensor("string", (9,)),))
VAGUE = Node("vague", "Unknown", outputs=(float32(4, None),))
NO_RANK = Node("no_rank", "Unknown", outputs=(Tensor("float32", None),))


def op(kind, *inputs, outputs=(), name="it"):
    return Node(name, kind, inputs, outputs=outputs)


@pytest.mark.parametrize(
    "node, moved",
    [
        (op("MatMul", "x", "read", outputs=(float32(4, 5),)), 4 * (4 * 3 + 3 * 5 + 4 * 5)),
        # Each output has its own type and size
        (SPLIT, 4 * 12 + 4 * 6 + 8 * 6),
        (op("Neg", "split:1", outputs=(float32(),)), 8 * 6 + 4),
        (op("Neg", "split", outputs=(float32(),)), 4 * 6 + 4),
        # A variable counts where it is used: an update reads it, if need be, and writes it
        (READ, 0),
        (W, 0),
        (op("AssignVariableOp", "w", "rate", "read"), (15 + 1 + 15) * 4),
        (op("AssignAddVariableOp", "w", "rate", "read"), (2 * 15 + 1 + 15) * 4),
        (op("ResourceApplyGradientDescent", "w", "rate", "read"), (2 * 15 + 1 + 15) * 4),
        *((op(kind, "x", outputs=(float32(4, 3),)), 0) for kind in sorted(flops.HAND_ON)),
        (op("Unknown"), 0),
        # Unknown sizes are not guessed
        (op("AssignVariableOp", "unshaped", "x"), None),
        *(
            (op("Neg", "x", tensor, outputs=(float32(4, 3),)), None)
            for tensor in ("text", "vague", "no_rank", "nowhere", "x:1", "w")
        ),
    ],
    ids=lambda value: "/".join((value.op, *value.inputs)) if isinstance(value, Node) else "",
)
def test_bytes_are_those_of_all_inputs_and_outputs(node, moved):
    nodes = (node, X, W, UNSHAPED, READ, RATE, SPLIT, TEXT, VAGUE, NO_RANK)
    with tf.Graph().as_default() as graph:
        tf1.get_variable("w", [3, 5], use_resource=True)
        tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None), name="unshaped")
    stage = Placement(program=None, nodes=nodes, partition_graphs=(graph.as_graph_def(),))
    assert costs.costs(stage)[0].bytes == moved


# Concrete shapes


@every_model
@pytest.mark.parametrize("batch", [1, 64])
def test_every_shape_follows_from_the_batch_and_the_users_graph_stays_as_it_is(name, batch, walked):
    stage = walked(name)["placement"]
    users = stage.program.graph
    before = users.as_graph_def().SerializeToString(deterministic=True)
    feeds = {feed.name: [batch, *feed.shape[1:]] for feed in stage.program.model.feeds}
    graph = costs.concrete(users, feeds, stage.nodes)
    assert users.as_graph_def().SerializeToString(deterministic=True) == before
    fed = {feed.op.name for feed in stage.program.model.feeds}
    worked = {fate.name for fate in stage.ledger if fate.fate in ("executed", "fused")} - fed
    for node in worked:
        for tensor in graph.get_operation_by_name(node).outputs:
            assert tensor.shape.is_fully_defined(), tensor


@pytest.fixture(scope="module")
def product():
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [None, 6], name="x")
        tf.matmul(tf.identity(x, name="middle"), tf.ones([6, 5]), name="y")
        tf.negative(tf.boolean_mask(x, x[:, 0] > 0), name="kept")
    return graph


@pytest.mark.parametrize(
    ("feeds", "shapes"),
    [
        ({"x:0": [4, 6]}, {"y": [4, 5], "kept": [3, 6]}),
        ({"middle:0": [4, 6]}, {"y": [4, 5], "x": [None, 6]}),  # any tensor can be fed
    ],
)
def test_shapes_follow_from_feeds_and_else_from_what_was_measured_in_this_batch(
    feeds, shapes, product
):
    measured = [op("Neg", outputs=(float32(3, 6),), name="kept")]
    measured += [op("MatMul", outputs=(float32(3, 5),), name="y")]
    measured += [op("_Arg", outputs=(float32(3, 7),), name="x")]  # it does not fit
    copy = costs.concrete(product, feeds, measured)
    assert {name: copy.get_tensor_by_name(f"{name}:0").shape.as_list() for name in shapes} == shapes


@pytest.mark.parametrize(
    "feeds", [{"nowhere:0": [1]}, {"x:0": [4, 7]}, {"x:0": [4]}, {"x": [4, 6]}]
)
def test_feeds_that_do_not_fit_are_refused(feeds, product):
    with pytest.raises(TflabError, match=r"does not accept feeds of these shapes: \S"):
        costs.concrete(product, feeds)


# What only moves data


def test_an_executed_node_moves_data_where_all_that_it_does_is_of_such_types():
    user = graph("t=Transpose; fill=Fill; same=Identity; add=AddV2; cast=Cast; mul=Mul")
    # The fill is folded and only hands on; what only handed on has another type; the sum does the
    # cast too; the runtime made the last two, one of a type that nobody knows
    executed = graph(
        "t=_MklTranspose; fill=Const; same=Copy; add=_Fused; mul=Mul; made=Slice; unknown=_MklSlice"
    )
    ledger = fates(
        "t executed, fill executed, same executed, add executed, mul executed, cast fused in add"
    )
    assert costs.data_movers(executed, user, ledger) == {"t", "made"}


def test_fed_bytes_are_those_of_all_that_is_fed_and_has_a_size():
    fed = [
        Node("_arg_x", "_Arg", outputs=(Tensor("float32", (4, 3)),)),
        Node("_arg_n", "_Arg", outputs=(Tensor("uint8", (5,)),)),
        Node("_arg_s", "_Arg", outputs=(Tensor("string", (7,)),)),
        Node("_arg_lost", "_Arg"),
        Node("x", "Mul", outputs=(Tensor("float32", (900,)),)),
    ]
    assert costs.fed_bytes(fed) == 4 * 4 * 3 + 5
