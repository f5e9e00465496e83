"""Frontend: nodes are those of the GraphDef, and each knows the line of the program behind it."""

import inspect
import linecache
import re
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import walks
from tests.approval import approve, refused
from tests.examples.models import ones
from tflab import lifecycle, models
from tflab.lifecycle import backward, frontend
from tflab.models import lenet, toy
from tflab.records.graph import Call, Tensor
from tflab.records.options import Model, Options

pytestmark = pytest.mark.tensorflow


def build(function, **options):
    return frontend.build(("mine", function), Options(**options))


@pytest.mark.parametrize("module", [toy, lenet])
def test_nodes_are_those_of_the_graph_with_a_line_of_a_function_of_the_model(module, walked):
    stage = walked(module.__name__.rpartition(".")[2])["frontend"]
    graph = stage.program.graph
    defs = {node.name: node for node in graph.as_graph_def().node}
    for node in stage.nodes:
        node_def, op = defs[node.name], graph.get_operation_by_name(node.name)
        assert (node.op, node.device) == (node_def.op, "")  # it is left to the runtime
        assert [*node.inputs, *(f"^{control}" for control in node.control_inputs)] == node_def.input
        assert node.outputs == tuple(map(plain, op.outputs))
        source = node.source
        assert source.code == linecache.getline(source.file, source.line).strip() != ""
        lines, start = inspect.getsourcelines(getattr(module, source.function))
        assert source.file == module.__file__
        assert start <= source.line < start + len(lines)


def plain(tensor):
    shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
    return Tensor(tensor.dtype.base_dtype.name, shape)


# Functions


def with_functions():
    x = tf1.placeholder(tf.float32, [None], name="x")
    weight = tf1.get_variable("weight", initializer=2.0, use_resource=True)

    @tf.function
    def scaled(value):
        return tf.tanh(value) * weight

    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, scaled(y)), [0, x], name="loop")
    return Model(
        y, {x: "x"}, ones, tf.reduce_sum(y, name="loss"), tf1.train.GradientDescentOptimizer(0.1)
    )


def test_a_live_function_has_its_lines_its_shapes_and_its_callers():
    condition, body, scaled = build(with_functions).functions
    assert condition.called_by == (Call("loop", "cond"),)
    assert body.called_by == (Call("loop", "body"),)
    assert scaled.called_by == (Call("StatefulPartitionedCall", "f", body.name),)
    (tanh,) = [node for node in scaled.nodes if node.op == "Tanh"]
    assert tanh.source.code == "return tf.tanh(value) * weight"
    assert tanh.outputs == (Tensor("float32", (None,)),)
    assert tanh.inputs == (scaled.nodes[0].name,)
    assert all(node.source for node in (*body.nodes, *scaled.nodes))


def test_functions_that_differentiation_adds_have_lines_of_the_user():
    forward = build(with_functions)
    stage = backward.differentiate(forward, Options())
    added = stage.functions[len(forward.functions) :]
    assert stage.functions == (*forward.functions, *added)
    assert stage.added_functions == tuple(function.name for function in added)
    called = {call.node for function in added for call in function.called_by}
    assert {"loop", "gradients/loop_grad/loop_grad"} <= called
    sources = [node.source for function in added for node in function.nodes]
    assert {source.file for source in sources if source} == {__file__}
    (loop,) = [node for node in stage.nodes if node.name == "loop"]
    operation = stage.program.graph.get_operation_by_name("loop")
    assert len(loop.inputs) == len(operation.inputs)
    (check,) = stage.gradient_checks
    assert (check.precision, check.max_relative_error < 1e-4) == ("float64", True)


def test_what_runs_of_a_function_has_the_line_of_its_body():
    *_, stage = lifecycle.walk(f"{__name__}:with_functions", Options(batch_size=4), "placement")
    lines = {node.name: node.source and node.source.code for node in stage.nodes}
    made = {origin.name for origin in stage.origins if "LowerFunctional" in origin.origin}
    assert made and all(lines[name] for name in made)
    (tanh,) = [node for node in stage.nodes if node.op == "Tanh"]
    assert (tanh.name, tanh.source.code) == (
        "loop/body/_1/StatefulPartitionedCall/Tanh",
        "return tf.tanh(value) * weight",
    )
    assert lines["loop/enter/_4"].startswith("_, y = tf.while_loop(")


def refuses():
    tf.constant(1.0)
    raise ValueError("this model is broken\nfor a long reason")  # here


def calls_what_raises():
    return refuses()


def misuses_tensorflow():
    return tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))  # here


EAGER = tf.constant([1.0, 2.0])


def elsewhere():
    with tf.Graph().as_default():
        return tf1.placeholder(tf.float32, [None], name="stranger")


NO_MODELS = (
    *(refuses, calls_what_raises, misuses_tensorflow),  # the innermost line is named
    lambda: Model(elsewhere(), {}, None),
    lambda: Model(tf.zeros([]), {}, None, loss=elsewhere()),
    lambda: Model(tf.zeros([]), {elsewhere(): "x"}, None),
    lambda: Model(EAGER, {}, None),
    lambda: Model(None, {}, None),
    lambda: Model(tf.zeros([]), [], None),
    lambda: Model(tf.zeros([]), {}, None, tf.zeros([2])),
    lambda: None,
    lambda: np.ones(2),
    lambda: tf.zeros([2]),
)


def test_what_is_no_model_of_this_graph_is_refused_in_a_sentence():
    said = "\n".join(refused(build, model) for model in NO_MODELS)
    said = re.sub("(must be equal).*", r"\1", said)  # what follows is TensorFlow's

    def code(place):
        return linecache.getline(__file__, int(place[1])).strip()

    approve("no-models.txt", re.sub(f"{re.escape(__file__)}:(\\d+)", code, said))


# More than one device


@pytest.mark.parametrize("name", walks.WHOLE)
def test_two_devices_share_a_model(name):
    stage = frontend.build((name, models.find(name)), Options(devices=2))
    counts = Counter(node.device for node in stage.nodes)
    assert set(counts) == {"/device:CPU:0", "/device:CPU:1"}
    assert min(counts.values()) >= len(stage.nodes) / 4


@pytest.mark.parametrize(
    ("first", "last", "devices"), [(None, None, "0011"), ("CPU:1", "CPU:0", "1010")]
)
def test_a_device_that_the_model_asked_for_is_kept(first, last, devices):
    def model():
        with tf.device(first and f"/device:{first}"):
            value = tf.constant(1.0, name="first")
        value = tf.square(tf.square(value, name="second"), name="third")
        with tf.device(last and f"/device:{last}"):
            return Model(tf.square(value, name="last"), feeds={}, data=None)

    assert "".join(node.device[-1] for node in build(model, devices=2).nodes) == devices
