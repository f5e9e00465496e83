"""Lines: each node of a step belongs to the user's line that it is there for, as what it is."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.options import Model, Options
from tflab.runtime import nodes

pytestmark = pytest.mark.tensorflow

WORDS = 50
MADE_BEFORE = tf1.train.GradientDescentOptimizer(0.1)  # while nobody notes lines


def data(split, data_dir=None):
    words = np.arange(64, dtype=np.int32).reshape(16, 4) % WORDS
    return Dataset("words", split, {"words": words, "y": np.ones((16, 1), np.float32)})


def network():
    """The feeds, the output and the loss of a table that is looked up in and trained sparsely."""
    words = tf1.placeholder(tf.int32, [None, 4], name="words")
    y = tf1.placeholder(tf.float32, [None, 1], name="y")
    table = tf1.get_variable("table", [WORDS, 3], use_resource=True)  # the table
    weights = tf1.get_variable("weights", [3, 1], use_resource=True)
    rows = tf.nn.embedding_lookup(table, words)  # the lookup
    output = tf.matmul(tf.reduce_sum(rows, axis=1), weights)
    loss = tf.reduce_mean(tf.square(output - y))  # the loss
    return {words: "words", y: "y"}, output, loss


def handed_over():
    feeds, output, loss = network()
    adam = tf1.train.AdamOptimizer(0.01)  # the optimiser
    return Model(output=output, feeds=feeds, data=data, loss=loss, optimizer=adam)


def of_unknown_origin():
    feeds, output, loss = network()
    return Model(output=output, feeds=feeds, data=data, loss=loss, optimizer=MADE_BEFORE)


def clipped():
    feeds, output, loss = network()
    rate = tf.constant(0.1) * 0.5  # the rate
    descent = tf1.train.GradientDescentOptimizer(rate)
    pairs = descent.compute_gradients(loss)
    small, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)  # the clipping
    train = descent.apply_gradients(zip(small, [v for _, v in pairs], strict=True))  # the step
    return Model(output=output, feeds=feeds, data=data, fetches=(loss.name, train.name))


def minimised():
    feeds, output, loss = network()
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)  # the step
    return Model(output=output, feeds=feeds, data=data, fetches=(loss.name, train.name))


def in_a_loop():
    x = tf1.placeholder(tf.float32, [None, 4], name="words")
    weights = tf1.get_variable("weights", [4, 4], use_resource=True)

    def turn(count, state):
        return count + 1, tf.tanh(tf.matmul(state, weights))  # the body

    _, state = tf.while_loop(lambda count, _: count < 3, turn, [0, x])  # the loop
    loss = tf.reduce_sum(state)
    sgd = tf1.train.GradientDescentOptimizer(0.1)
    return Model(output=state, feeds={x: "words"}, data=data, loss=loss, optimizer=sgd)


def in_layers():
    x = tf1.placeholder(tf.float32, [None, 4], name="words")
    dense = tf.keras.layers.Dense(3, name="first")  # the layer
    output = tf.keras.Sequential([dense, Own()])(x)
    return Model(output=output, feeds={x: "words"}, data=data)


class Own(tf.keras.layers.Layer):
    def call(self, inputs):
        return tf.sin(inputs)  # its own call


def compiled():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((4,)),
            tf.keras.layers.Dense(3, use_bias=False, name="first"),  # the layer
            tf.keras.layers.BatchNormalization(name="norm"),  # the norm
        ]
    )
    adam = tf.keras.optimizers.Adam(0.5)  # the optimiser
    model.compile(adam, "mse")  # the compilation
    return model


def compiled_otherwise():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])
    model.compile(tf.keras.optimizers.RMSprop(0.5), "mse")
    return model


def stage(function, until="backward"):
    *_, last = lifecycle.walk(f"{__name__}:{function.__name__}", Options(batch_size=8), stop=until)
    return last


def line(function, comment):
    lines, first = inspect.getsourcelines(function)
    (place,) = (at for at, text in enumerate(lines) if text.rstrip().endswith(f"# {comment}"))
    return first + place


def made(nodes, source_line, phase):
    """The types of the nodes of one line and phase."""
    return {
        node.op
        for node in nodes
        if node.source and node.source.line == source_line and node.phase == phase
    }


def test_every_update_of_an_optimiser_belongs_to_the_line_that_made_it():
    result = stage(handed_over)
    nodes = [node for node in result.nodes if node.name in set(result.update_nodes)]
    assert {(node.source.line, node.phase) for node in nodes} == {
        (line(handed_over, "the optimiser"), "update")
    }
    assert {"Unique", "UnsortedSegmentSum", "ResourceScatterAdd", "ResourceApplyAdam"} <= {
        node.op for node in nodes
    }


def test_an_optimiser_that_was_made_on_an_unknown_line_makes_updates_without_a_line():
    result = stage(of_unknown_origin)
    nodes = [node for node in result.nodes if node.name in set(result.update_nodes)]
    assert {(node.source, node.phase) for node in nodes} == {(None, "update")}


def test_gradients_are_backward_on_the_line_that_they_derive():
    result = stage(handed_over)
    assert "Mul" in made(result.nodes, line(network, "the loss"), "backward")
    assert "Reshape" in made(result.nodes, line(network, "the lookup"), "backward")
    added = set(result.added_nodes) - set(result.update_nodes)
    assert {node.phase for node in result.nodes if node.name in added} == {"backward"}
    assert all(node.source for node in result.nodes if node.name in added)


def test_gradients_within_a_loop_are_backward_on_the_lines_of_its_body():
    nodes = [node for function in stage(in_a_loop).functions for node in function.nodes]
    body, loop = line(in_a_loop, "the body"), line(in_a_loop, "the loop")
    assert {"TanhGrad", "MatMul"} <= made(nodes, body, "backward")
    assert not {"TanhGrad", "MatMul"} & made(nodes, loop, "backward")
    assert {"Tanh", "MatMul"} <= made(nodes, body, "forward")


def test_clipping_and_a_rate_are_updates_on_lines_of_their_own():
    nodes = stage(clipped).nodes
    assert "L2Loss" in made(nodes, line(clipped, "the clipping"), "update")
    assert made(nodes, line(clipped, "the clipping"), "forward") == set()
    assert made(nodes, line(clipped, "the rate"), "update") == {"Const", "Mul"}
    assert "ResourceScatterAdd" in made(nodes, line(clipped, "the step"), "update")
    assert made(nodes, line(network, "the loss"), "update") == set()


def test_a_loop_that_a_tape_differentiates_is_forward_and_so_is_all_that_comes_after_it():
    w = tf.Variable([[0.5]])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            for _ in tf.range(3):
                x = tf.tanh(x @ w)
            loss = tf.reduce_mean(x**2)  # the loss
        w.assign_sub(0.1 * tape.gradient(loss, w))  # the update
        return loss

    graph = step.get_concrete_function(tf.TensorSpec([2, 1])).graph
    phases = {node.op: node.phase for node in nodes.from_graph(graph) if node.op != "Const"}
    known = {op: phases[op] for op in ("While", "Mean", "Placeholder", "RealDiv")}
    assert known == {
        **dict.fromkeys(("While", "Mean", "Placeholder"), "forward"),
        "RealDiv": "backward",
    }
    assert phases["AssignSubVariableOp"] == "update"


def test_minimize_is_the_line_of_its_updates_and_not_of_its_gradients():
    nodes = stage(minimised).nodes
    step = line(minimised, "the step")
    assert "ResourceScatterAdd" in made(nodes, step, "update")
    assert "MatMul" not in made(nodes, step, "backward")


def test_nodes_of_a_keras_layer_belong_to_the_line_that_made_it_or_to_its_own_call():
    nodes = stage(in_layers, "frontend").nodes
    assert "MatMul" in made(nodes, line(in_layers, "the layer"), "forward")
    assert made(nodes, line(Own, "its own call"), "forward") == {"Sin"}


def test_a_compiled_keras_model_has_its_loss_its_optimiser_and_its_lines():
    result = stage(compiled)
    nodes = result.nodes
    assert {"MatMul"} <= made(nodes, line(compiled, "the layer"), "forward")
    assert "AssignVariableOp" in made(nodes, line(compiled, "the norm"), "forward")
    assert "ResourceApplyAdam" in made(nodes, line(compiled, "the optimiser"), "update")
    assert "SquaredDifference" in {node.op for node in nodes} or "Square" in made(
        nodes, line(compiled, "the compilation"), "forward"
    )
    assert max(check.max_relative_error for check in result.gradient_checks) < 1e-5


def test_an_optimiser_without_a_twin_is_said_and_gradients_are_derived():
    result = stage(compiled_otherwise)
    (said,) = (note for note in stage(compiled_otherwise, "frontend").notes if "RMSprop" in note)
    assert "does not run in such a graph" in said
    assert result.update_nodes == () and result.added_nodes
