"""Session: what is initialised, what the runtime refuses, and the values of variables."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.examples.models import opened
from tflab.errors import RanDryError, RefusedError
from tflab.records.options import Options
from tflab.runtime import session

pytestmark = pytest.mark.tensorflow


def test_tables_and_iterators_are_initialised_like_variables():
    graph = tf1.Graph()
    with graph.as_default():
        few, many = (tf1.data.Dataset.from_tensors(np.float32(size)) for size in (2, 1000))
        read = tf1.data.Iterator.from_structure(tf1.float32, [])
        read.make_initializer(few, name="first")
        read.make_initializer(many, name="second")
        size = tf1.placeholder(tf1.int64, [])
        fed = tf1.data.make_initializable_iterator(tf1.data.Dataset.range(size))
        assert fed.initializer.name not in session.initializers(graph)
        pairs = tf1.lookup.KeyValueTensorInitializer(["b"], [3.0])
        table = tf1.lookup.StaticHashTable(pairs, 0.0)
        weight = tf1.get_variable("weight", initializer=4.0)
        local = tf1.get_local_variable("local", initializer=5.0)
        product = read.get_next() * table.lookup(tf1.constant("b")) * weight * local
    with opened(graph) as live:
        assert live.run(product) == 2 * 3 * 4 * 5


def test_data_of_the_graphs_own_that_ran_dry_are_a_sentence_with_a_way_out():
    graph = tf1.Graph()
    with graph.as_default():
        few = tf1.data.Dataset.from_tensor_slices(np.float32([1, 2]))
        tf1.data.make_one_shot_iterator(few).get_next(name="next")
    step = session.Step((), ("next:0",), ())
    with (
        pytest.raises(RanDryError, match=r"ended: End of sequence\. .*`repeat\(\)`, or run few"),
        session.fresh(graph, Options()) as live,
    ):
        taken = step.callable(live)
        for _ in range(3):
            taken()


SAID = {  # what the runtime said -> what is said of it
    "FIFOQueue '_0_queue' is closed": "FIFOQueue '_0_queue' is closed",
    "Bad dimension: 5\n\t [[{{node total}}]]": "Bad dimension: 5 (in node 'total')",
    "=====\nHeading:\nIt went wrong.\n==": "It went wrong",
    "a" * 3_000_000: f"{'a' * 500} ... (500 of 3,000,000 letters; ",
}


def test_what_the_runtime_said_is_one_sentence_with_the_node():
    for message, said in SAID.items():
        error = session.refused(tf.errors.OutOfRangeError(None, None, message), Options())
        assert type(error) is RefusedError
        assert str(error).startswith(f"The runtime refused the step: {said}")
        assert error.nodes == (("total",) if "total" in message else ())


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


TENSORS = {
    "resource": "resource/Read/ReadVariableOp:0",
    "reference": "reference:0",
    "unset": "read_unset:0",
}


def test_a_variable_is_read_by_a_node_that_waits_for_nothing(graph):
    before = len(graph.get_operations())
    assert session.variable_readers(graph) == TENSORS
    assert len(graph.get_operations()) == before


def test_what_nothing_has_initialised_is_left_out(graph):
    with tf1.Session(graph=graph) as live:
        assert session.variable_values(live, {}) == {}
        assert session.variable_values(live, {"unset": "read_unset:0"}) == {}
        live.run([v.initializer for v in graph.get_collection("variables")])
        values = {
            name: value.tolist() for name, value in session.variable_values(live, TENSORS).items()
        }
    assert values == {"resource": [1, 2], "reference": 3}
