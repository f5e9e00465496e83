"""Gradients: what the gradient nodes of real graphs compute, by TensorFlow's own notes and by their
edges alone, and the lines of TensorFlow that made them."""

import pytest
import tensorflow as tf

from tests import walks
from tests.approval import approve
from tests.examples.models import differentiated
from tflab.analysis import chain_rule
from tflab.lifecycle import gradients
from tflab.records.graph import node_of

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)


def taken_twice(x, w):
    """An op that takes a value twice hands back a gradient for each time."""
    y = tf.gather(w, 0, name="y")
    return tf.multiply(tf.exp(y, name="a"), y, name="m") + tf.multiply(y, y, name="twice")


def test_what_gradient_nodes_compute_and_the_steps_from_the_loss(walked):
    stages = {model: walked(model)["backward"] for model in walks.WHOLE}
    stages["sums"] = differentiated(taken_twice, "w")
    said = []
    for title, stage in stages.items():
        said.append(f"# Gradient nodes: {title}")
        for node in stage.gradient_nodes:
            if not node.bookkeeping:
                used = "" if node.used else ", not used"
                whole = "is" if node.complete else "goes into"
                said.append(f"{node.name}: {node.formula} {whole} {node.towards}{used}")
        said.append("# Steps")
        for link in stage.chain_rule:
            part = "" if link.alone else " (a part)"
            step = f"{link.forward} = {link.computes}: {link.gradient} = {link.formula}"
            said.append(f"{step}{part}")
    approve("gradients-of-models.txt", "\n".join(said))


def looked_up(x, w):
    return tf.gather(w, tf.cast(tf.math.floormod(x[:, 0], 4.0), tf.int32))


@pytest.mark.parametrize(
    ("loss_of", "last"),
    [
        (lambda x, w: tf.square(looked_up(x, w)), "Gather_grad/Reshape | rows of dL/dw"),
        (lambda x, w: looked_up(x, w) * looked_up(x, w), "concat | rows of dL/dw"),
        (lambda x, w: tf.square(looked_up(x, w)) + tf.nn.l2_loss(w), "AddN | dL/dw"),
        (lambda x, w: looked_up(x, w) * tf.reduce_sum(x * w), "AddN | dL/dw"),
    ],
)
def test_all_uses_of_a_table_lead_to_its_gradient(loss_of, last):
    stage = differentiated(lambda x, w: tf.reduce_mean(loss_of(x, w), name="loss"), "w")
    uses = [link.gradient for link in stage.chain_rule if link.by == "w"]
    assert len(uses) == (1 if "Gather_grad" in last else 2)
    assert stage.chain_rule[0].forward == "loss"
    known = {node.name.removeprefix("gradients/"): node for node in stage.gradient_nodes}
    name, towards = last.split(" | ")
    assert (known[name].towards, known[name].complete) == (towards, True)
    assert known["Gather_grad/Reshape_1"].used  # the indices of the rows
    assert known["grad_ys_0"].used


@every_model
def test_every_node_that_starts_computes_or_adds_up_gradients_is_explained(name, walked):
    stage = walked(name)["backward"]
    explained = [node.name for node in stage.gradient_nodes]
    assert explained == [n for n in stage.added_nodes if n not in stage.update_nodes]
    for node in stage.gradient_nodes:
        assert node.bookkeeping is None or node.bookkeeping in chain_rule.WHY
    types = {node.name: node.op for node in stage.nodes}
    silent = {types[n.name] for n in stage.gradient_nodes if not n.formula and not n.bookkeeping}
    assert silent <= {"MaxPoolGrad", "Conv2DBackpropInput", "Conv2DBackpropFilter"}


def test_zeros_that_start_or_fill_a_gradient_are_bookkeeping():
    def loss_of(x, w):
        parts = tf.split(tf.minimum(x * w, 1.0), 2, axis=1, name="parts")
        return tf.reduce_mean(parts[0])  # the other part gets no gradient

    nodes = differentiated(loss_of, "w").gradient_nodes
    kinds = {n.name: n.bookkeeping for n in nodes if n.bookkeeping == "zeros"}
    assert kinds.keys() == {"gradients/zeros_like", "gradients/Minimum_grad/zeros_like"}


@every_model
def test_the_gradient_of_every_variable_is_complete_and_used(name, walked):
    stage = walked(name)["backward"]
    updates = [node for node in stage.nodes if node.name in stage.update_nodes]
    fetched = {node_of(tensor) for node in updates for tensor in node.inputs}
    ends = [node for node in stage.gradient_nodes if node.name in fetched]
    variables = stage.program.graph.get_collection("trainable_variables")
    assert sorted(node.towards for node in ends) == sorted(
        chain_rule.gradient_name(variable.op.name) for variable in variables
    )
    assert all(node.complete and node.used for node in ends)


def test_what_depends_on_a_variable_by_its_shape_alone_has_that_reason():
    """Noise like a value's receives a gradient of `tf.gradients`, which calls nothing behind it."""

    def loss_of(x, w):
        like = tf.random.normal(tf.shape(x * w), seed=1, name="noise")
        return tf.reduce_mean(x * w * tf.multiply(like, 2.0, name="scaled"))

    reasons = {row.forward: row.reason for row in differentiated(loss_of, "w").gradients}
    behind = {name for name, why in reasons.items() if why == gradients.NO_FLOATS_TO_IT}
    assert behind >= {"scaled", "noise", "noise/RandomStandardNormal"}
    assert reasons["Shape"] == gradients.NOT_DIFFERENTIABLE
