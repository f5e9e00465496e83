"""Lines: each node of a step belongs to the user's line that it is there for, as what it is."""

import inspect
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.options import Model, Options
from tflab.runtime import nodes
from tflab.views import in_short

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


def of_line(nodes, source_line, phase):
    """The types of the nodes that do the work of one line, in one phase."""
    return {
        node.op
        for node in nodes
        if node.line and node.line.line == source_line and node.phase == phase
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
    assert "Mul" in of_line(result.nodes, line(network, "the loss"), "backward")
    assert "Reshape" in of_line(result.nodes, line(network, "the lookup"), "backward")
    added = set(result.added_nodes) - set(result.update_nodes)
    assert {node.phase for node in result.nodes if node.name in added} == {"backward"}
    assert all(node.source for node in result.nodes if node.name in added)


def test_gradients_within_a_loop_are_backward_on_the_lines_of_its_body():
    nodes = [node for function in stage(in_a_loop).functions for node in function.nodes]
    body, loop = line(in_a_loop, "the body"), line(in_a_loop, "the loop")
    assert {"TanhGrad", "MatMul"} <= of_line(nodes, body, "backward")
    assert not {"TanhGrad", "MatMul"} & of_line(nodes, loop, "backward")
    assert {"Tanh", "MatMul"} <= of_line(nodes, body, "forward")


def test_clipping_and_a_rate_are_updates_on_lines_of_their_own():
    nodes = stage(clipped).nodes
    assert "L2Loss" in of_line(nodes, line(clipped, "the clipping"), "update")
    assert of_line(nodes, line(clipped, "the clipping"), "forward") == set()
    assert of_line(nodes, line(clipped, "the rate"), "update") == {"Const", "Mul"}
    assert "ResourceScatterAdd" in of_line(nodes, line(clipped, "the step"), "update")
    assert of_line(nodes, line(network, "the loss"), "update") == set()


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
    assert "ResourceScatterAdd" in of_line(nodes, step, "update")
    assert "MatMul" not in of_line(nodes, step, "backward")


@pytest.mark.parametrize("function", [clipped, minimised])
def test_a_line_made_the_nodes_that_its_call_created_and_no_others(function):
    frontend = stage(function, "frontend")
    made = Counter()
    for op in frontend.live.graph.get_operations():
        (*_, number) = (f.lineno for f in op.traceback if f.filename == __file__)
        made[number] += 1
    (table,) = in_short.blocks(frontend)
    count = len(frontend.nodes)
    assert table.title.startswith(f"{len(made)} lines of the program made {count} nodes and ")
    rows = {int(row[0].partition(":")[2]): int(row[2]) for row in table.cells()}
    assert rows == {number: made[number] for number in rows} and len(rows) == 5
    assert rows[max(made, key=made.__getitem__)] == max(made.values())


def test_a_gradient_that_the_program_made_costs_time_on_the_line_of_its_forward_op():
    step, loss = line(minimised, "the step"), line(network, "the loss")
    gradients = [node for node in stage(minimised).nodes if node.phase == "backward"]
    assert {node.source.line for node in gradients} == {step}
    assert {node.op for node in gradients if node.line.line == loss} > {"Mul", "RealDiv"}
    assert all(node.forward_source is None for node in stage(handed_over).nodes)


def test_nodes_of_a_keras_layer_belong_to_the_line_that_made_it_or_to_its_own_call():
    nodes = stage(in_layers, "frontend").nodes
    assert "MatMul" in of_line(nodes, line(in_layers, "the layer"), "forward")
    assert of_line(nodes, line(Own, "its own call"), "forward") == {"Sin"}


def test_a_compiled_keras_model_has_its_loss_its_optimiser_and_its_lines():
    result = stage(compiled)
    nodes = result.nodes
    assert {"MatMul"} <= of_line(nodes, line(compiled, "the layer"), "forward")
    assert "AssignVariableOp" in of_line(nodes, line(compiled, "the norm"), "forward")
    assert "ResourceApplyAdam" in of_line(nodes, line(compiled, "the optimiser"), "update")
    assert "SquaredDifference" in {node.op for node in nodes} or "Square" in of_line(
        nodes, line(compiled, "the compilation"), "forward"
    )
    assert max(check.max_relative_error for check in result.gradient_checks) < 1e-5


def test_an_optimiser_without_a_twin_is_said_and_gradients_are_derived():
    result = stage(compiled_otherwise)
    (said,) = (note for note in stage(compiled_otherwise, "frontend").notes if "RMSprop" in note)
    assert "does not run in such a graph" in said
    assert result.update_nodes == () and result.added_nodes
