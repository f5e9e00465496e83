"""Variables: read by nodes that the graph has, and never by one that changes them."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.runtime import variables

pytestmark = pytest.mark.tensorflow


def handle(name, value=None):
    """A resource variable without any node that reads it."""
    made = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=name, name=name)
    if value is not None:
        tf.raw_ops.AssignVariableOp(resource=made, value=value, name=f"{name}/set")
    return made


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        tf1.get_variable("resource", initializer=[1.0, 2.0], use_resource=True)
        tf1.get_variable("reference", initializer=3.0, use_resource=False)
        waiting = handle("waiting")
        change = tf.raw_ops.AssignAddVariableOp(resource=waiting, value=1.0)
        with tf.control_dependencies([change]):
            tf.raw_ops.ReadVariableOp(resource=waiting, dtype=tf.float32)
        unset = handle("unset")
        tf.raw_ops.ReadVariableOp(resource=unset, dtype=tf.float32, name="read_unset")
        tf.constant(1.0, name="no_variable")
    return graph


NAMES = ("resource", "reference", "waiting", "unset", "no_variable", "not there")
TENSORS = {
    "resource": "resource/Read/ReadVariableOp:0",
    "reference": "reference:0",
    "unset": "read_unset:0",
}


def test_a_variable_is_read_by_a_node_that_waits_for_nothing(graph):
    before = len(graph.get_operations())
    assert variables.readers(graph, NAMES) == TENSORS
    assert variables.readers(graph, ["reference"]) == {"reference": "reference:0"}
    assert len(graph.get_operations()) == before


def test_what_nothing_has_initialised_is_left_out(graph):
    with tf1.Session(graph=graph) as live:
        live.run([v.initializer for v in graph.get_collection("variables")])
        values = {name: value.tolist() for name, value in variables.read(live, TENSORS).items()}
    assert values == {"resource": [1, 2], "reference": 3}


def test_without_variables_nothing_is_read(graph):
    with tf1.Session(graph=graph) as live:
        assert variables.read(live, {}) == {}
        assert variables.read(live, {"unset": "read_unset:0"}) == {}
