"""Lines: each node of a step belongs to the user's line that it is there for, as what it is."""

import functools
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.approval import approve
from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.options import Model, Options
from tflab.records.stages import Frontend
from tflab.runtime import nodes
from tflab.views import stages

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
    class Own(tf.keras.layers.Layer):  # here, because Keras takes seconds to import
        def call(self, inputs):
            return tf.sin(inputs)  # its own call

    x = tf1.placeholder(tf.float32, [None, 4], name="words")
    dense = tf.keras.layers.Dense(3, name="first")  # the layer
    output = tf.keras.Sequential([dense, Own()])(x)
    return Model(output=output, feeds={x: "words"}, data=data)


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


@functools.cache
def stage(function, until="backward"):
    *_, last = lifecycle.walk(f"{__name__}:{function.__name__}", Options(batch_size=8), stop=until)
    return last


SHOWN = {
    *("MatMul", "Tanh", "TanhGrad", "Mul", "RealDiv", "Mean", "Sin", "L2Loss", "Unique", "Reshape"),
    *("ResourceGather", "ResourceScatterAdd", "ResourceApplyAdam", "ResourceApplyGradientDescent"),
}
MODELS = (handed_over, of_unknown_origin, clipped, minimised, in_a_loop, in_layers, compiled)


def test_the_work_of_each_line_is_the_nodes_that_are_there_for_it_by_phase():
    """Gradients are backward on the line that they derive, also within a loop; clipping, a rate and
    `minimize` are updates on lines of their own; the updates of an optimiser are on the line that
    made it, if that is known; a layer of Keras is on the line that made it, or on that of its own
    call."""
    said = []
    for model in MODELS:
        result, rows = stage(model), {}
        inner = (node for function in result.functions for node in function.nodes)
        for node in (*result.nodes, *inner):
            code = node.line.code if node.line and node.line.file == __file__ else "no line here"
            if node.op in SHOWN:
                rows.setdefault((code, node.phase), set()).add(node.op)
        said += [f"# {model.__name__}"]
        said += [
            f"{code}\n  {phase}: {' '.join(sorted(ops))}" for (code, phase), ops in rows.items()
        ]
    approve("lines-of-work.txt", "\n".join(said))


def test_all_that_differentiation_added_is_backward_and_has_a_line():
    result = stage(handed_over)
    added = set(result.added_nodes) - set(result.update_nodes)
    nodes = [node for node in result.nodes if node.name in added]
    assert {node.phase for node in nodes} == {"backward"}
    assert all(node.source for node in nodes)
    assert all(node.forward_source is None for node in result.nodes)


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


@pytest.mark.parametrize("function", [clipped, minimised])
def test_a_line_made_the_nodes_that_its_call_created_and_no_others(function):
    frontend = stage(function, "frontend")
    made = Counter()
    for op in frontend.live.graph.get_operations():
        (*_, number) = (f.lineno for f in op.traceback if f.filename == __file__)
        made[number] += 1
    *_, table = stages.on_one_screen(frontend)
    assert " that made " not in table.title  # some of the nodes only
    assert table.title.endswith(f": {stages.ROWS[Frontend]} of {len(made)}")
    rows = {int(row[0].partition(":")[2]): int(row[2]) for row in table.cells()}
    assert rows == {number: made[number] for number in rows} and len(rows) == stages.ROWS[Frontend]
    assert rows[max(made, key=made.__getitem__)] == max(made.values())


def test_an_optimiser_of_keras_has_one_of_tensorflow_1_in_its_place():
    result = stage(compiled_otherwise)
    (said,) = (note for note in stage(compiled_otherwise, "frontend").notes if "RMSprop" in note)
    assert "RMSPropOptimizer of tf.compat.v1.train replaces it" in said and "rate 0.5" in said
    ops = [node.op for node in result.nodes if node.name in result.update_nodes]
    assert ops.count("ResourceApplyRMSProp") == 2  # of the kernel and of the bias
