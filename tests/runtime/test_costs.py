"""Costs: FLOPs by formulas and by TensorFlow's own profiler, bytes by hand."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import walks
from tflab.errors import TflabError
from tflab.records import Costs, Fate, Node, Tensor
from tflab.runtime import costs, flop_counts

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)
BATCH = 16  # of the walks in conftest.py


def shaped(stage, batch=BATCH):
    feeds = {feed.name: [batch, *feed.shape[1:]] for feed in stage.program.model.feeds}
    return costs.concrete(stage.program.graph, feeds, stage.nodes)


def counted(stage, batch=BATCH):
    work = costs.costs(shaped(stage, batch), stage.nodes, stage.ledger)
    return {cost.name: cost for cost in work}


@pytest.fixture(scope="module")
def lenet(walked):
    return walked("lenet")["placement"]


def single(build, shape=(4, 6)):
    """A graph of one op `y` on a fed `x`, and what a graph that ran it as it is would look like."""
    graph = tf.Graph()
    with graph.as_default():
        build(tf1.placeholder(tf.float32, [None, *shape[1:]], name="x"))
    copy = costs.concrete(graph, {"x:0": shape})
    y = copy.get_operation_by_name("y")
    executed = Node("y", y.type, outputs=(Tensor("float32", tuple(y.outputs[0].shape.as_list())),))
    return copy, [executed], [Fate("y", "executed", None, None)]


# FLOPs of LeNet


CONVOLUTIONS = {  # output side, output channels, kernel side, input channels
    "conv1/Relu": (28, 6, 5, 1),
    "conv2/Relu": (10, 16, 5, 6),
}
PRODUCTS = {"dense1/Relu": (400, 120), "dense2/Relu": (120, 84), "dense3/BiasAdd": (84, 10)}


@pytest.mark.parametrize("batch", [1, 16, 64])
def test_a_fused_convolution_does_its_products_adds_its_bias_and_compares_with_0(lenet, batch):
    work = counted(lenet, batch)
    for name, (side, channels, kernel, inputs) in CONVOLUTIONS.items():
        outputs = batch * side * side * channels
        assert work[name].flops == 2 * outputs * kernel * kernel * inputs + 2 * outputs


@pytest.mark.parametrize("batch", [1, 16, 64])
def test_both_gradients_of_a_convolution_do_its_products_once_more(lenet, batch):
    work = counted(lenet, batch)
    forward = {"conv1": batch * 2 * 28 * 28 * 6 * 25, "conv2": batch * 2 * 10 * 10 * 16 * 25 * 6}
    assert forward["conv2"] == 30_720_000 * batch // 64
    for layer, flops in forward.items():
        assert work[f"gradients/{layer}/Conv2D_grad/Conv2DBackpropFilter"].flops == flops
    gradient = work["gradients/conv2/Conv2D_grad/Conv2DBackpropInput"]
    assert (gradient.flops, gradient.flops_from) == (forward["conv2"], "formula")


@pytest.mark.parametrize("batch", [1, 16, 64])
def test_a_fused_dense_layer_does_its_products_and_what_comes_after(lenet, batch):
    work = counted(lenet, batch)
    for name, (inputs, outputs) in PRODUCTS.items():
        after = 2 if name.endswith("Relu") else 1
        assert work[name].flops == 2 * batch * inputs * outputs + after * batch * outputs


def test_the_two_gradients_of_a_product_cost_as_much_each_as_the_product(lenet):
    work = counted(lenet)
    for name, (inputs, outputs) in PRODUCTS.items():
        for gradient in ("MatMul", "MatMul_1"):
            flops = work[f"gradients/{name.split('/')[0]}/MatMul_grad/{gradient}"].flops
            assert flops == 2 * BATCH * inputs * outputs


def test_types_without_a_function_are_listed_and_not_zero(lenet):
    assert costs.uncovered(shaped(lenet), lenet.nodes, lenet.ledger) == dict.fromkeys(
        (
            "Prod",
            "ResourceApplyGradientDescent",
            "SparseSoftmaxCrossEntropyWithLogits",
        ),
        flop_counts.NOT_REGISTERED,
    )
    work = counted(lenet)
    update = work["train/update_conv1/kernel/ResourceApplyGradientDescent"]
    assert (update.flops, update.flops_from) == (None, None)


def test_the_types_of_which_the_registry_has_other_flops_are_listed_with_what_is_wrong(lenet):
    assert costs.corrected(shaped(lenet), lenet.nodes, lenet.ledger) == {
        "Conv2DBackpropFilter": flop_counts.TOO_MUCH,
        "Conv2DBackpropInput": flop_counts.TOO_MUCH,
        "Relu": flop_counts.NOT_BY_REGISTRY,
        "ReluGrad": flop_counts.NOT_BY_REGISTRY,
    }


def test_costs_say_who_counted(lenet):
    work = counted(lenet)
    assert work["conv1/Relu"].flops_from == "formula"
    assert {cost.flops_from for cost in work.values() if cost.flops is None} == {None}
    assert {cost.flops_from for cost in work.values()} == {None, "formula", "registry"}


@every_model
def test_every_executed_node_has_costs_in_its_order(name, walked):
    stage = walked(name)["placement"]
    work = costs.costs(shaped(stage), stage.nodes, stage.ledger)
    assert [cost.name for cost in work] == [node.name for node in stage.nodes]


@every_model
def test_what_no_longer_runs_costs_nothing(name, walked):
    stage = walked(name)["placement"]
    graph = shaped(stage)
    by_node = profiled(graph)
    worked = {fate.name for fate in stage.ledger if fate.fate in ("executed", "fused")}
    ours = {
        op.name: flop_counts.formula_flops(op) for op in map(graph.get_operation_by_name, worked)
    }
    expected = sum(ours[name] or by_node.get(name, 0) for name in worked)
    assert sum(cost.flops or 0 for cost in counted(stage).values()) == expected


def profiled(graph, cmd="scope"):
    """FLOPs by node, or by type, as TensorFlow's own profiler counts them."""
    options = tf1.profiler.ProfileOptionBuilder.float_operation() | {"output": "none"}
    waiting = [tf1.profiler.profile(graph, cmd=cmd, options=options)]
    flops = {}
    while waiting:
        node = waiting.pop()
        flops[node.name] = node.float_ops
        waiting.extend(node.children)
    return flops


def test_the_profiler_counts_the_same_for_every_node(lenet):
    graph = shaped(lenet)
    expected = profiled(graph)
    for op in graph.get_operations():
        try:
            flops = flop_counts.registered_flops(op)
        except ValueError:
            flops = 0
        if flops:
            assert expected[op.name] == flops


def test_the_profiler_counts_the_same_for_every_type(lenet):
    graph = shaped(lenet)
    expected = profiled(graph, cmd="op")
    for op_type, nodes in {
        "Conv2D": ("conv1/Conv2D", "conv2/Conv2D"),
        "MaxPool": ("pool1/MaxPool", "pool2/MaxPool"),
    }.items():
        ops = map(graph.get_operation_by_name, nodes)
        assert sum(map(flop_counts.registered_flops, ops)) == expected[op_type]


# What the registry counts: change these, and the docstring of tflab/costs.py, with TensorFlow


@pytest.mark.parametrize(
    ("build", "flops"),
    [
        (lambda x: tf.add(x, x, name="y"), 24),
        (lambda x: tf.math.rsqrt(x, name="y"), 48),
        (lambda x: tf.nn.softmax(x, name="y"), 120),
        (lambda x: tf.reduce_mean(x, axis=1, name="y"), 24),
        (lambda x: tf.reduce_sum(x, axis=1, name="y"), 20),
        (lambda x: tf.matmul(x, x, transpose_a=True, name="y"), 2 * 6 * 4 * 6),
        (lambda x: tf.add_n([x, x, x], name="y"), 48),
        (lambda x: tf.exp(x, name="y"), None),
        (lambda x: tf.transpose(x, name="y"), None),
    ],
)
def test_what_registry_and_formulas_count(build, flops):
    graph, executed, ledger = single(build)
    assert costs.costs(graph, executed, ledger)[0].flops == flops


def test_inputs_for_control_are_not_added_up():
    def build(x):
        with tf.control_dependencies([tf.no_op(), tf.identity(x)]):
            tf.add_n([x, x], name="y")

    assert costs.costs(*single(build))[0].flops == 24


def gradient_of_convolution(padding, side=14, stride=1, by="input", **options):
    """The op of a convolution of images with 6 channels, 5 x 5, and that of its gradient."""
    with tf.Graph().as_default():
        images, kernel = tf.ones([2, side, side, 6]), tf.ones([5, 5, 6, 16])
        forward = tf.nn.conv2d(images, kernel, stride, padding, **options)
        (gradient,) = tf.gradients(forward, {"input": images, "filter": kernel}[by])
    return forward.op, gradient.op


@pytest.mark.parametrize(("padding", "too_much"), [("SAME", 1), ("VALID", 14 * 14 / (10 * 10))])
@pytest.mark.parametrize("by", ["input", "filter"])
def test_the_registry_counts_the_image_of_a_gradient_and_the_formula_its_output(
    padding, too_much, by
):
    forward, gradient = gradient_of_convolution(padding, by=by)
    once = flop_counts.registered_flops(forward)
    assert flop_counts.registered_flops(gradient) == once * too_much
    assert flop_counts.formula_flops(forward) == flop_counts.formula_flops(gradient) == once


@pytest.mark.parametrize("by", ["input", "filter"])
@pytest.mark.parametrize(
    ("options", "side"),
    [
        ({"padding": "VALID", "stride": 2}, 5),
        ({"padding": "SAME", "stride": 3}, 5),
        ({"padding": "VALID", "dilations": 2}, 6),
        ({"padding": [[0, 0], [3, 0], [3, 0], [0, 0]], "stride": 2}, 7),
    ],
)
def test_a_formula_follows_padding_strides_and_dilation(options, side, by):
    forward, gradient = gradient_of_convolution(by=by, **options)
    flops = 2 * (2 * side * side * 16) * (5 * 5 * 6)
    assert flop_counts.formula_flops(forward) == flop_counts.formula_flops(gradient) == flops


def ops_of(build, op_type):
    with tf.Graph().as_default() as graph:
        build()
    return next(op for op in graph.get_operations() if op.type == op_type)


def both(layout):
    """A convolution of 2 images of 8 x 8 with 4 channels to 10, 3 x 3, and both its gradients."""
    shape = {"NHWC": [2, 8, 8, 4], "NCHW": [2, 4, 8, 8]}[layout]
    images, kernel = tf.ones(shape), tf.ones([3, 3, 4, 10])
    tf.gradients(tf.nn.conv2d(images, kernel, 1, "VALID", data_format=layout), [images, kernel])


def depthwise(layout):
    shape = {"NHWC": [2, 8, 8, 4], "NCHW": [2, 4, 8, 8]}[layout]
    images, kernel = tf.ones(shape), tf.ones([3, 3, 4, 5])
    result = tf.nn.depthwise_conv2d(images, kernel, [1] * 4, "VALID", data_format=layout)
    tf.gradients(result, [images, kernel])


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op_type", ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"])
def test_the_order_of_the_axes_changes_no_convolution(op_type, layout):
    op = ops_of(lambda: both(layout), op_type)
    assert flop_counts.formula_flops(op) == 2 * (2 * 6 * 6 * 10) * (3 * 3 * 4)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("gradient", ["", "BackpropInput", "BackpropFilter"])
def test_a_depthwise_convolution_sees_a_channel_at_a_time(gradient, layout):
    op = ops_of(lambda: depthwise(layout), f"DepthwiseConv2dNative{gradient}")
    assert flop_counts.formula_flops(op) == 2 * (2 * 6 * 6 * 4 * 5) * (3 * 3)


def pooled(x, kind):
    tf.gradients(getattr(tf.nn, kind)(x, ksize=3, strides=2, padding="VALID"), x)


@pytest.mark.parametrize(
    ("op_type", "build"),
    [
        ("Conv2D", lambda: both("NHWC")),
        ("DepthwiseConv2dNative", lambda: depthwise("NHWC")),
        ("MatMul", lambda: tf.matmul(tf.ones([3, 4]), tf.ones([4, 5]))),
        ("MatMul", lambda: tf.matmul(tf.ones([4, 3]), tf.ones([5, 4]), True, True)),
        ("BatchMatMulV2", lambda: tf.matmul(tf.ones([7, 3, 4]), tf.ones([7, 4, 5]))),
        ("BiasAdd", lambda: tf.nn.bias_add(tf.ones([3, 4]), tf.ones([4]))),
        ("BiasAddGrad", lambda: tf.raw_ops.BiasAddGrad(out_backprop=tf.ones([2, 3, 4]))),
        ("MaxPool", lambda: pooled(tf.ones([2, 9, 9, 4]), "max_pool2d")),
        ("MaxPoolGrad", lambda: pooled(tf.ones([2, 9, 9, 4]), "max_pool2d")),
        ("AvgPool", lambda: pooled(tf.ones([2, 9, 9, 4]), "avg_pool2d")),
        ("Softmax", lambda: tf.nn.softmax(tf.ones([3, 4]))),
    ],
)
def test_a_formula_counts_as_the_registry_does_where_that_is_right(op_type, build):
    op = ops_of(build, op_type)
    assert flop_counts.formula_flops(op) == flop_counts.registered_flops(op) > 0


def test_the_registry_overlooks_a_transposed_factor_in_a_batch_of_products():
    def build():
        tf.matmul(tf.ones([7, 4, 3]), tf.ones([7, 4, 5]), transpose_a=True)

    op = ops_of(build, "BatchMatMulV2")
    assert flop_counts.formula_flops(op) == 7 * 2 * 3 * 4 * 5
    assert (
        flop_counts.registered_flops(op) == 7 * 2 * 3 * 3 * 5
    )  # it reads an attribute of MatMul's


def test_the_registry_can_also_count_too_little():
    def build(x):
        tf.matmul(x, tf.ones([1, 4, 5]), transpose_a=True, name="y")

    graph, executed, ledger = single(build, (2, 4, 3))
    assert costs.costs(graph, executed, ledger)[0].flops == 2 * 2 * 3 * 4 * 5
    assert costs.corrected(graph, executed, ledger) == {"BatchMatMulV2": flop_counts.TOO_LITTLE}


def test_pooling_is_counted_in_the_format_that_the_registry_does_not_know():
    def build(x):
        tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID", data_format="NCHW", name="y")

    graph, executed, ledger = single(build, (2, 3, 8, 8))
    assert costs.costs(graph, executed, ledger)[0].flops == (2 * 3 * 4 * 4) * 4
    assert costs.corrected(graph, executed, ledger) == {"MaxPool": flop_counts.NOT_BY_REGISTRY}


def test_an_image_format_that_the_registry_does_not_know_is_listed_with_its_reason():
    def build(x):
        tf.raw_ops.AvgPoolGrad(
            orig_input_shape=[2, 3, 8, 8],
            grad=x,
            ksize=[1, 1, 2, 2],
            strides=[1, 1, 2, 2],
            padding="VALID",
            data_format="NCHW",
            name="y",
        )

    graph, executed, ledger = single(build, (2, 3, 4, 4))
    assert costs.costs(graph, executed, ledger)[0].flops is None
    assert costs.uncovered(graph, executed, ledger) == {
        "AvgPoolGrad": "Only NHWC format is supported in flops computations"
    }


def test_a_formula_without_its_shapes_is_listed_with_its_reason():
    def build(x):
        tf.nn.relu(tf.boolean_mask(x, x[:, 0] > 0), name="y")

    graph, executed, ledger = single(build)
    assert costs.costs(graph, executed, ledger)[0].flops is None
    reason = costs.uncovered(graph, executed, ledger)["Relu"]
    assert reason == "a shape that its formula needs is not fully defined"
    assert costs.corrected(graph, executed, ledger) == {}


def test_data_that_is_only_moved_is_not_missed():
    for build in (
        lambda x: tf.transpose(x, name="y"),
        lambda x: tf.reshape(x, [-1], name="y"),
        lambda x: tf.identity(x, name="y"),
    ):
        assert costs.uncovered(*single(build)) == {}


# Whose work it is


def chain():
    """relu(x + x) * 2, as user's graph, with shapes of a batch of 4."""

    def build(x):
        tf.multiply(tf.nn.relu(tf.add(x, x, name="add"), name="relu"), 2.0, name="y")

    return single(build)[0]


def flops_of(executed, *fates):
    nodes = [Node(name, op) for name, op in executed.items()]
    ledger = [Fate(name, fate, "a pass", into) for name, fate, into in fates]
    return {cost.name: cost.flops for cost in costs.costs(chain(), nodes, ledger)}


@pytest.mark.parametrize("fate", ["fused", "compiled"])
def test_a_node_does_the_work_of_what_was_fused_into_it_whatever_its_type(fate):
    flops = flops_of(
        {"y": "_MklSomething"},
        ("add", fate, "y"),
        ("relu", fate, "y"),
        ("y", "executed", None),
    )
    assert flops == {"y": 24 + 24 + 24}


def test_work_that_formula_and_registry_count_is_of_both():
    ledger = [Fate("relu", "fused", "a pass", "y"), Fate("y", "executed", None, None)]
    (cost,) = costs.costs(chain(), [Node("y", "_Fused")], ledger)
    assert (cost.flops, cost.flops_from) == (24 + 24, "both")
    (cost,) = costs.costs(chain(), [Node("y", "Mul")], ledger[1:])
    assert (cost.flops, cost.flops_from) == (24, "registry")


def test_a_node_that_a_pass_made_does_the_work_of_others():
    flops = flops_of({"made": "_Fused"}, ("add", "fused", "made"), ("y", "fused", "made"))
    assert flops == {"made": 48}


@pytest.mark.parametrize("fate", ["folded", "merged", "removed", "unreached"])
def test_work_that_nobody_does_is_not_counted(fate):
    flops = flops_of({"y": "Mul"}, ("add", fate, "y"), ("y", "executed", None))
    assert flops == {"y": 24}


def test_a_constant_that_was_folded_in_place_costs_nothing():
    assert flops_of({"y": "Const"}, ("y", "folded", "y")) == {"y": None}


def test_a_node_rewritten_to_hand_its_input_on_costs_nothing():
    assert flops_of({"y": "Identity"}, ("y", "executed", None)) == {"y": None}


def test_without_a_ledger_nobodys_work_is_known():
    assert flops_of({"y": "Mul"}) == {"y": None}
    assert costs.uncovered(chain(), [Node("y", "Mul")], []) == {"Mul": costs.NOT_THE_USERS}


def test_a_node_in_a_loop_is_listed_with_the_reason():
    nodes = [Node("while/body/_1/MatMul", "_MklMatMul"), Node("while/enter/_2", "Enter")]
    assert costs.uncovered(chain(), nodes, []) == {"_MklMatMul": costs.NOT_THE_USERS}


# Bytes


def float32(*shape):
    return Tensor("float32", shape)


def with_variables():
    graph = tf.Graph()
    with graph.as_default():
        tf1.get_variable("w", [3, 5], use_resource=True)
        tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None), name="unshaped")
    return graph


X = Node("x", "_Arg", outputs=(float32(4, 3),))
W = Node("w", "VarHandleOp", outputs=(Tensor("resource", ()),))
READ = Node("read", "ReadVariableOp", ("w",), outputs=(float32(3, 5),))
RATE = Node("rate", "Const", outputs=(float32(),))
SPLIT = Node("split", "Unknown", ("x",), outputs=(float32(2, 3), Tensor("float64", (2, 3))))
TEXT = Node("text", "Const", outputs=(Tensor("string", (9,)),))
VAGUE = Node("vague", "Unknown", outputs=(float32(4, None),))
NO_RANK = Node("no_rank", "Unknown", outputs=(Tensor("float32", None),))


def bytes_of(node, *others):
    nodes = (node, X, W, READ, RATE, SPLIT, TEXT, VAGUE, NO_RANK, *others)
    return costs.costs(with_variables(), nodes, ())[0].bytes


def op(kind, *inputs, outputs=()):
    return Node("it", kind, inputs, outputs=outputs)


def test_bytes_are_those_of_all_inputs_and_outputs():
    product = op("MatMul", "x", "read", outputs=(float32(4, 5),))
    assert bytes_of(product) == 4 * (4 * 3 + 3 * 5 + 4 * 5)


def test_each_output_has_its_own_type_and_size():
    assert bytes_of(SPLIT) == 4 * 12 + 4 * 6 + 8 * 6
    assert bytes_of(op("Neg", "split:1", outputs=(float32(),))) == 8 * 6 + 4
    assert bytes_of(op("Neg", "split", outputs=(float32(),))) == 4 * 6 + 4


def test_a_variable_counts_where_it_is_used():
    assert bytes_of(READ) == bytes_of(W) == 0


@pytest.mark.parametrize(
    ("kind", "passes"),
    [
        ("AssignVariableOp", 1),
        ("AssignAddVariableOp", 2),
        ("ResourceApplyGradientDescent", 2),
    ],
)
def test_an_update_reads_the_variable_and_writes_it(kind, passes):
    assert bytes_of(op(kind, "w", "rate", "read")) == (passes * 15 + 1 + 15) * 4


@pytest.mark.parametrize("kind", sorted(flop_counts.HAND_ON))
def test_what_only_hands_a_buffer_on_moves_nothing(kind):
    assert bytes_of(op(kind, "x", outputs=(float32(4, 3),))) == 0


def test_an_op_without_tensors_moves_nothing():
    assert bytes_of(op("Unknown")) == 0


@pytest.mark.parametrize("tensor", ["text", "vague", "no_rank", "nowhere", "x:1", "w"])
def test_bytes_of_unknown_size_are_not_guessed(tensor):
    assert bytes_of(op("Neg", "x", tensor, outputs=(float32(4, 3),))) is None


def test_a_variable_of_unknown_shape_is_not_guessed():
    handle = Node("unshaped", "VarHandleOp", outputs=(Tensor("resource", ()),))
    assert bytes_of(op("AssignVariableOp", "unshaped", "x"), handle) is None


def test_lenets_first_convolution_reads_image_kernel_and_bias(lenet):
    elements = 32 * 32 * BATCH + 5 * 5 * 6 + 6 + 28 * 28 * 6 * BATCH
    assert counted(lenet)["conv1/Relu"].bytes == 4 * elements


def test_the_bytes_of_all_of_lenet_are_known(lenet):
    assert {name for name, cost in counted(lenet).items() if cost.bytes is None} == set()


# Concrete shapes


def test_the_users_graph_stays_as_it_is(lenet):
    graph = lenet.program.graph
    before = graph.as_graph_def().SerializeToString(deterministic=True)
    shaped(lenet)
    assert graph.as_graph_def().SerializeToString(deterministic=True) == before


@every_model
@pytest.mark.parametrize("batch", [1, 64])
def test_every_shape_follows_from_the_batch(name, batch, walked):
    stage = walked(name)["placement"]
    graph = shaped(stage, batch)
    fed = {feed.op.name for feed in stage.program.model.feeds}
    worked = {fate.name for fate in stage.ledger if fate.fate in ("executed", "fused")} - fed
    for node in worked:
        for tensor in graph.get_operation_by_name(node).outputs:
            assert tensor.shape.is_fully_defined(), tensor


def test_any_tensor_can_be_fed():
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, name="x")
        tf.matmul(tf.identity(x, name="middle"), tf.ones([6, 5]), name="y")
    copy = costs.concrete(graph, {"middle:0": [4, 6]})
    assert copy.get_tensor_by_name("y:0").shape.as_list() == [4, 5]


def test_measured_shapes_help_where_they_depend_on_the_data():
    def build(x):
        tf.negative(tf.boolean_mask(x, x[:, 0] > 0), name="y")

    graph, executed, ledger = single(build)
    assert costs.costs(graph, executed, ledger) == (Costs("y", None, None),)
    assert costs.uncovered(graph, executed, ledger)["Neg"].endswith("is not fully defined")
    measured = [
        Node("boolean_mask/GatherV2", "GatherV2", outputs=(float32(3, 6),)),
        Node("y", "_MklNeg", outputs=(float32(3, 6), Tensor("uint8", (8,)))),
    ]
    helped = costs.concrete(graph, {"x:0": [4, 6]}, measured)
    assert costs.costs(helped, measured[1:], ledger) == (Costs("y", 18, 4 * 18 + 8, "registry"),)


def test_a_measured_shape_of_another_batch_is_not_believed():
    def build(x):
        tf.negative(x, name="y")

    graph, _, ledger = single(build)
    measured = [Node("y", "Neg", outputs=(float32(99, 6),))]
    again = costs.concrete(graph, {"x:0": [4, 6]}, measured)
    assert costs.costs(again, measured, ledger)[0].flops == 24


@pytest.mark.parametrize(
    "feeds", [{"nowhere:0": [1]}, {"x:0": [4, 7]}, {"x:0": [4]}, {"x": [4, 6]}]
)
def test_feeds_that_do_not_fit_are_refused(feeds):
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 6], name="x")
        tf.matmul(x, tf.ones([6, 5]), name="y")
    with pytest.raises(TflabError, match=r"does not take feeds of these shapes: \S"):
        costs.concrete(graph, feeds)


# What only moves data


def test_an_executed_node_moves_data_where_all_that_it_does_is_of_such_types():
    user = [
        Node("t", "Transpose"),
        Node("fill", "Fill"),
        Node("same", "Identity"),
        Node("add", "AddV2"),
        Node("cast", "Cast"),
        Node("mul", "Mul"),
    ]
    executed = [
        Node("t", "_MklTranspose"),
        Node("fill", "Const"),  # folded: it only hands on
        Node("same", "Copy"),  # of another type, for what only handed on
        Node("add", "_Fused"),  # does the cast, and an addition
        Node("mul", "Mul"),
        Node("made", "Slice"),  # by the runtime
        Node("unknown", "_MklSlice"),  # by the runtime, of a type that nobody knows
    ]
    ledger = [
        *(Fate(name, "executed", None, None) for name in ("t", "fill", "same", "add", "mul")),
        Fate("cast", "fused", None, "add"),
    ]
    assert costs.moving(executed, user, ledger) == {"t", "made"}


def test_fed_bytes_are_those_of_all_that_is_fed_and_has_a_size():
    fed = [
        Node("_arg_x", "_Arg", outputs=(Tensor("float32", (4, 3)),)),
        Node("_arg_n", "_Arg", outputs=(Tensor("uint8", (5,)),)),
        Node("_arg_s", "_Arg", outputs=(Tensor("string", (7,)),)),
        Node("_arg_lost", "_Arg"),
        Node("x", "Mul", outputs=(Tensor("float32", (900,)),)),
    ]
    assert costs.fed_bytes(fed) == 4 * 4 * 3 + 5
