"""Gradients: what the gradient nodes of real graphs compute, by TensorFlow's own notes and by their
edges alone, and the lines of TensorFlow that made them."""

import pytest
import tensorflow as tf

from tests import walks
from tests.approval import approve
from tests.examples.models import differentiated
from tflab.analysis import gradient_nodes
from tflab.records.graph import node_of

pytestmark = pytest.mark.tensorflow

every_model = pytest.mark.parametrize("name", walks.WHOLE)


def test_what_the_gradient_nodes_of_the_toy_compute_and_the_steps_from_its_loss(walked):
    stage = walked("toy")["backward"]
    said = ["# Gradient nodes"]
    for node in stage.gradient_nodes:
        if not node.bookkeeping:
            used = "" if node.used else ", not used"
            whole = "is" if node.complete else "goes into"
            said.append(f"{node.name}: {node.formula} {whole} {node.towards}{used}")
    said.append("# Steps")
    for link in stage.chain_rule:
        said.append(f"{link.forward} = {link.computes}: {link.gradient} = {link.formula}")
    approve("gradients-of-toy.txt", "\n".join(said))


def test_what_several_ops_hand_back_is_added_up():
    """An op that takes a value twice hands back a gradient for each time."""

    def loss_of(x, w):
        y = tf.gather(w, 0, name="y")
        return tf.multiply(tf.exp(y, name="a"), y, name="m") + tf.multiply(y, y, name="twice")

    stage = differentiated(loss_of, "w")
    links = {link.gradient: (link.formula, link.alone) for link in stage.chain_rule}
    assert links == {
        "dL/d(twice)": ("dL/d(add)", True),
        "dL/dm": ("dL/d(add)", True),
        "dL/dy by m": ("dL/dm * a", False),
        "dL/da": ("dL/dm * y", True),
        "dL/dy by twice[0]": ("dL/d(twice) * y", False),
        "dL/dy by twice[1]": ("dL/d(twice) * y", False),
        "dL/dy by a": ("dL/da * a", False),
        "rows of dL/dw": ("dL/dy", True),
    }
    (total,) = [node for node in stage.gradient_nodes if node.name == "gradients/AddN"]
    formula = "dL/dy by m + dL/dy by twice[0] + dL/dy by twice[1] + dL/dy by a"
    assert (total.formula, total.towards, total.complete) == (formula, "dL/dy", True)


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


def test_the_gradients_of_products_and_convolutions_are_those_of_the_textbook(walked):
    formulas = {
        node.towards: node.formula
        for node in walked("lenet")["backward"].gradient_nodes
        if node.complete and not node.bookkeeping
    }
    assert formulas["dL/d(dense3/BiasAdd)"].endswith(
        "* (softmax(dense3/BiasAdd) - one_hot(labels, size(dense3/BiasAdd, -1)))"
    )
    assert formulas["dL/d(dense3/kernel)"] == "matmul(transpose(dense2/Relu), dL/d(dense3/MatMul))"
    assert formulas["dL/d(dense2/Relu)"] == "matmul(dL/d(dense3/MatMul), transpose(dense3/kernel))"
    assert formulas["dL/d(conv1/bias)"] == "sum(dL/d(conv1/BiasAdd), axis=(0, 1, 2))"
    assert formulas["dL/d(conv1/kernel)"] == ""  # a convolution is no formula


@every_model
def test_every_node_that_starts_computes_or_adds_up_gradients_is_explained(name, walked):
    stage = walked(name)["backward"]
    explained = [node.name for node in stage.gradient_nodes]
    assert explained == [n for n in stage.added_nodes if n not in stage.update_nodes]
    for node in stage.gradient_nodes:
        assert node.bookkeeping is None or node.bookkeeping in gradient_nodes.WHY
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
        gradient_nodes.gradient_name(variable.op.name) for variable in variables
    )
    assert all(node.complete and node.used for node in ends)
