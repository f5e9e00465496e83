"""Gradients that a file came with: found in graphs of TensorFlow's own optimisers and of others,
under any name and under none, compared with what TensorFlow itself noted."""

import random

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tflab import lifecycle
from tflab.analysis import gradient_nodes, gradient_search
from tflab.analysis.gradient_graph import GradientGraph
from tflab.analysis.ledger import nodes_needed
from tflab.lifecycle import derived_again
from tflab.records.options import Options
from tflab.runtime import nodes
from tflab.views import chain_rule as views

pytestmark = pytest.mark.tensorflow


def found_in(graph_def):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    return gradient_search.search(nodes.from_graph(graph), nodes.constants_of_one(graph))


def walked(folder, graph_def):
    """The backward stage of this graph in a file."""
    *_, stage = lifecycle.walk(graphs.write(folder / "g.pb", graph_def), Options(), "backward")
    return stage


def anonymous(graph_def):
    """The graph in another order, with names that say nothing; and the old name of each."""
    order = random.Random(1)
    numbers = order.sample(range(len(graph_def.node)), len(graph_def.node))
    new = {old.name: f"n{number}" for old, number in zip(graph_def.node, numbers, strict=True)}
    copy = tf1.GraphDef(versions=graph_def.versions)
    for old in order.sample(list(graph_def.node), len(graph_def.node)):
        node = copy.node.add()
        node.CopyFrom(old)
        node.name = new[old.name]
        node.attr.pop("_class", None)
        for place, tensor in enumerate(old.input):
            name, colon, index = tensor.removeprefix("^").partition(":")
            node.input[place] = "^" * tensor.startswith("^") + new[name] + colon + index
    return copy, {number: old for old, number in new.items()}


@pytest.mark.parametrize("model", ["toy", "lenet", "convnet"])
def test_without_names_all_is_found_that_an_update_needs_of_what_tensorflow_added(model):
    *_, stage = lifecycle.walk(model, Options(), "backward")
    graph_def, old = anonymous(stage.program.graph.as_graph_def())
    found = found_in(graph_def)
    (training,) = found.trainings
    assert old[training.loss] == stage.program.loss.op.name
    assert [old[name] for name in training.train_ops] == [stage.program.train_op]
    assert {old[name] for name in training.updates} <= set(stage.update_nodes)
    added = set(stage.added_nodes) - set(stage.update_nodes)
    ends = [old[name] for name in training.updates]
    assert {old[name] for name in found.gradients} == added & nodes_needed(stage.nodes, ends, ())


# Graphs as people build them


def layer():
    return tf.reduce_mean(graphs.dense()[1], name="loss")


def in_a_scope():
    loss = layer()
    with tf1.name_scope("train"):
        steps = tf1.train.get_or_create_global_step()
        tf1.train.AdamOptimizer().minimize(loss, global_step=steps)


def in_the_scope_of_the_loss():
    y = graphs.dense()[1]
    with tf1.name_scope("loss"):
        tf1.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_mean(y))


def under_another_name():
    loss, (w,) = layer(), tf1.trainable_variables()
    (gradient,) = tf1.gradients(loss, [w], name="slope")
    momentum = tf1.get_variable("momentum", w.shape, trainable=False, use_resource=True)
    kept = tf1.assign_add(momentum, (gradient - momentum) * 0.1)
    tf.group(kept, tf1.assign_sub(w, kept * 0.01), name="go")


def clipped():
    tf1.train.GradientDescentOptimizer(0.1)
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    gradients, variables = zip(*optimizer.compute_gradients(layer()), strict=True)
    clipped_gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(clipped_gradients, variables, strict=True), name="go")


OF_MEAN = """Cast Const GatherV2 GatherV2/axis Prod Reshape Reshape/shape Shape Shape_1 Size Tile
    add mod truediv"""
EXPECTED = {  # gradient nodes: those of the mean, and those of the layer
    *(f"loss_grad/{name}" for name in OF_MEAN.split()),
    "y_grad/ReluGrad",
    "MatMul_grad/MatMul_1",
    "Shape",
    "grad_ys_0",
    "grad_ys_0/Const",
}
GATES = {
    "MatMul_grad/MatMul",
    "MatMul_grad/tuple/group_deps",
    "MatMul_grad/tuple/control_dependency_1",
}


def scoped(scope, names, loss="loss"):
    return {f"{scope}/{name.replace('loss_grad', loss + '_grad')}" for name in names}


@pytest.mark.parametrize(
    ("build", "gradients", "loss", "train_ops"),
    [
        (in_a_scope, scoped("train/gradients", EXPECTED | GATES), "loss", ("train/Adam",)),
        (
            in_the_scope_of_the_loss,
            scoped("loss/gradients", EXPECTED | GATES, "loss/Mean"),
            "loss/Mean",
            ("loss/Momentum",),
        ),
        (under_another_name, scoped("slope", EXPECTED), "loss", ("go",)),
    ],
)
def test_gradients_in_any_scope_and_of_any_optimiser_are_found(
    build, gradients, loss, train_ops, tmp_path
):
    graph_def = graphs.graph_def(build)
    found = found_in(graph_def)
    assert set(found.gradients) == gradients
    assert [(t.loss, t.train_ops) for t in found.trainings] == [(loss, train_ops)]
    backward = walked(tmp_path, graph_def)
    made = {gradient.forward: len(gradient.nodes) for gradient in backward.gradients}
    whole = len(GATES) + 1 if build is not under_another_name else 1
    # By its name a gate that nobody takes is a gradient, too.
    assert made == {loss: 14, "y": 1, "MatMul": whole + (whole > 1)}
    assert backward.losses == (loss,)
    assert backward.program.model.fetches == (f"{loss}:0", *train_ops)


def test_what_clips_gradients_leads_from_the_loss_to_the_update():
    found = found_in(graphs.graph_def(clipped))
    others = {name for name in found.gradients if not name.startswith("gradients/")}
    assert {name.partition("/")[0] for name in others} == {"global_norm", "clip_by_global_norm"}
    assert {name for name in found.gradients if name not in others} == scoped(
        "gradients", EXPECTED | GATES
    )
    assert [(t.loss, t.train_ops) for t in found.trainings] == [("loss", ("go",))]


def two_losses():
    y = graphs.dense()[1]
    for name in ("first", "second"):
        loss = tf.reduce_mean(tf.square(y), name=name)
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name=f"train_{name}")


def penalised():
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    w = tf1.get_variable("w", [4, 3], use_resource=True)
    score = tf.reduce_sum(tf.square(tf.matmul(x, w)), axis=1)
    slope = tf1.gradients(score, x)[0]
    loss = tf.add(tf.reduce_mean(score), tf.reduce_mean(tf.square(slope)), name="loss")
    tf1.train.GradientDescentOptimizer(0.1).minimize(loss)


def looped():
    new = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    try:
        x, w = tf.ones([2, 4]), tf1.get_variable("w", [4, 4], use_resource=True)
        _, y = tf1.while_loop(
            lambda index, _: index < 3,
            lambda index, value: (index + 1, tf.tanh(tf.matmul(value, w))),
            [tf.constant(0), x],
        )
        tf1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y, name="loss"))
    finally:
        if new:
            tf1.enable_control_flow_v2()


def counted(*terms):
    """A cross entropy, divided by the number of its terms: a sum of ones in the forward graph."""
    x = tf1.placeholder(tf.float32, [None, 20], name="x")
    labels = tf1.placeholder(tf.int64, [None], name="labels")
    ws = [tf1.get_variable(name, [20, 5], use_resource=True) for name in ("w1", "w2")]
    logits = tf.matmul(tf.nn.relu(x), ws[0] + ws[1])
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits, scope="ce")
    for term in terms:
        loss = tf.add(loss, 1e-4 * tf.add_n([term(w) for w in ws]), name="loss")
    tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="go")


@pytest.mark.parametrize(
    ("terms", "loss", "starts"),
    [((), "ce/value", 3), ((tf.nn.l2_loss,), "loss", 3)],
)
def test_ones_that_count_the_terms_of_a_mean_start_no_gradients(terms, loss, starts, tmp_path):
    graph_def = graphs.graph_def(lambda: counted(*terms))
    found = found_in(graph_def)
    assert [(t.loss, t.train_ops) for t in found.trainings] == [(loss, ("go",))]
    assert {name.partition("/")[0] for name in found.gradients} == {"gradients"}
    backward = walked(tmp_path, graph_def)
    assert backward.losses == (loss,)
    kinds = [node.bookkeeping for node in backward.gradient_nodes]
    assert kinds.count(gradient_nodes.STARTS) == starts


def test_only_the_loss_whose_gradients_a_file_has_is_its_loss(tmp_path):
    """The gradient of a term is in the file, too; the updates also take that of the others."""
    stage = walked(tmp_path, graphs.graph_def(lambda: counted(tf.nn.l2_loss)))
    made = tuple(gradient for gradient in stage.gradients if gradient.nodes)
    graph = GradientGraph(stage.nodes, made, stage.shared_nodes, (), {})
    for name in ("ce/value", "ce/Sum", "ce/xentropy/xentropy", "mul", "loss"):
        updates = {name: stage.update_nodes}
        _, losses = derived_again.checked(stage.program, graph, updates, Options())
        assert losses == (("loss",) if name == "loss" else ())


def test_where_no_loss_is_confirmed_none_is_told_and_no_step(monkeypatch, tmp_path):
    monkeypatch.setattr(derived_again.Match, "confirms", lambda *_: False)
    stage = walked(tmp_path, graphs.graph_def(in_a_scope))
    assert (stage.losses, stage.chain_rule) == ((), ())
    assert {node.towards for node in stage.gradient_nodes} == {None}


@pytest.mark.parametrize("clip", [False, True])
def test_the_steps_of_a_file_end_at_variables(clip, tmp_path):
    def build():
        x = tf1.placeholder(tf.float32, [None, 10], name="x")
        w = tf1.get_variable("w", [10, 1], use_resource=True)
        b = tf1.get_variable("b", [1], use_resource=True)
        z = tf.add(tf.matmul(x, w, name="xw"), b, name="z")
        loss = tf.reduce_mean(tf.where(z > 0, z, tf.zeros_like(z), name="side"), name="loss")
        optimizer = tf1.train.AdamOptimizer(0.05)
        slopes, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        if clip:
            slopes, _ = tf.clip_by_global_norm(slopes, 1.0)
        optimizer.apply_gradients(zip(slopes, variables, strict=True), name="go")

    stage = walked(tmp_path, graphs.graph_def(build))
    assert [(link.forward, link.gradient) for link in stage.chain_rule] == [
        ("loss", "dL/d(side)"),
        ("side", "dL/dz"),  # not that of the condition, which is computed from z
        ("z", "dL/d(xw)"),
        ("z", "dL/db"),
        ("xw", "dL/dw"),
    ]
    assert views.equation(stage) == ("dL/dw = dL/d(side) * d(side)/dz * dz/d(xw) * d(xw)/dw")


def test_losses_whose_sum_is_also_computed_are_confirmed_one_by_one(tmp_path):
    def build():
        x = tf1.placeholder(tf.float32, [None, 4], name="x")
        w = tf1.get_variable("w", [4, 3], use_resource=True)
        v = tf1.get_variable("v", [3, 1], use_resource=True)
        h = tf.tanh(tf.matmul(x, w))
        losses = tf.reduce_mean(tf.square(h), name="a"), tf.reduce_mean(tf.matmul(h, v), name="b")
        for loss, variable in zip(losses, (w, v), strict=True):
            tf1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[variable])
        tf.add(*losses, name="both")

    stage = walked(tmp_path, graphs.graph_def(build))
    assert stage.losses == ("a", "b")
    assert {link.by for link in stage.chain_rule} >= {"w"} and stage.chain_rule[0].forward == "a"


def test_a_loss_behind_a_loop_is_confirmed(tmp_path):
    def build():
        x = tf1.placeholder(tf.float32, [None, 4], name="x")
        w = tf1.get_variable("w", [4, 4], use_resource=True)
        _, y = tf.while_loop(
            lambda index, _: index < 3,
            lambda index, value: (index + 1, tf.tanh(tf.matmul(value, w))),
            [tf.constant(0), x],
        )
        tf1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y, name="loss"))

    stage = walked(tmp_path, graphs.graph_def(build))
    assert stage.losses == ("loss",)


def test_two_losses_have_each_their_train_op():
    found = found_in(graphs.graph_def(two_losses))
    assert [(t.loss, t.train_ops) for t in found.trainings] == [
        ("first", ("train_first",)),
        ("second", ("train_second",)),
    ]
    scopes = {name.partition("/")[0] for name in found.gradients}
    assert scopes == {"gradients", "gradients_1"}


def test_a_gradient_that_the_loss_is_made_of_is_forward():
    found = found_in(graphs.graph_def(penalised))
    assert [t.loss for t in found.trainings] == ["loss"]
    assert {name.partition("/")[0] for name in found.gradients} == {"gradients_1"}


def test_in_a_loop_the_stacks_that_keep_forward_values_belong_to_the_gradients():
    graph_def = graphs.graph_def(looped)
    found = found_in(graph_def)
    assert [t.loss for t in found.trainings] == ["loss"]
    types = {node.name: node.op for node in graph_def.node}
    stacks = {name for name, op in types.items() if op.startswith("Stack")}
    assert stacks and stacks <= set(found.gradients)


def test_a_graph_without_names_is_trained_and_its_gradients_are_counted(tmp_path):
    graph_def, _ = anonymous(graphs.graph_def(in_a_scope))
    path = graphs.write(tmp_path / "g.pb", graph_def)
    *_, backward, placement = lifecycle.walk(path, Options(), "placement")
    assert backward.gradients == () and len(backward.shared_nodes) == len(EXPECTED | GATES)
    assert len(backward.update_nodes) == 1
    assert set(backward.shared_nodes) < set(placement.backward_nodes)
    assert any(node.op == "ResourceApplyAdam" for node in placement.nodes)
