"""Graphs in every form in which people have them, made on the spot."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel


def dense(units: int = 3) -> tuple[tf.Tensor, tf.Tensor]:
    """x [batch, 4] through a ReLU layer; returns what goes in and what comes out."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    weights = tf1.get_variable("w", [4, units], use_resource=True)
    return x, tf.nn.relu(tf.matmul(x, weights), name="y")


def trained() -> tuple[tf.Tensor, tf.Tensor]:
    x, y = dense()
    tf1.train.AdamOptimizer().minimize(tf.reduce_mean(y, name="loss"))
    return x, y


def reference_variables() -> None:
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    weights = tf1.get_variable("w", [4, 3], use_resource=False)
    tf.identity(tf.matmul(x, weights), name="out")


def old_loop() -> None:
    """`tf.while_loop` as it was before TensorFlow 2: Switch, Merge, Enter, Exit, NextIteration."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")
    new = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    try:
        _, y = tf1.while_loop(
            lambda index, _: index < 5,
            lambda index, value: (index + 1, tf.tanh(value, name="body")),
            [tf.constant(0), x],
            name="loop",
        )
    finally:
        if new:
            tf1.enable_control_flow_v2()
    tf.identity(y, name="out")


def functions() -> None:
    """A function that is called, and branches that are chosen between."""
    x = tf1.placeholder(tf.float32, [None, 4], name="x")

    @tf.function
    def twice(value: tf.Tensor) -> tf.Tensor:
        return tf.tanh(value * 2.0)

    chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: twice(x), lambda: x * 3.0)
    tf.identity(chosen, name="out")


def endless_queue() -> None:
    """What would fill the queue waits for what is taken out of it."""
    queue = tf1.FIFOQueue(3, [tf.float32], shapes=[[]])
    taken = queue.dequeue()
    with tf.control_dependencies([queue.enqueue(taken)]):
        tf.identity(taken * 2, name="y")


def on_a_gpu() -> None:
    with tf1.device("/device:GPU:0"):
        tf.tanh(tf1.placeholder(tf.float32, [None, 4], name="x"), name="out")


def graph_def(build) -> tf1.GraphDef:
    with tf.Graph().as_default() as graph:
        build()
    return graph.as_graph_def()


def write(path: Path, graph: tf1.GraphDef, text: bool = False) -> str:
    path.write_bytes(str(graph).encode() if text else graph.SerializeToString())
    return str(path)


def bare(*nodes: tuple[str, str, tuple[str, ...]]) -> tf1.GraphDef:
    """A GraphDef of (name, op, inputs), which nobody has checked."""
    graph = tf1.GraphDef()
    for name, op, inputs in nodes:
        node = graph.node.add(name=name, op=op)
        node.input.extend(inputs)
        if op == "Identity":
            node.attr["T"].type = tf.float32.as_datatype_enum
    return graph


def saved_model_v1(folder: Path) -> str:
    with tf.Graph().as_default(), tf1.Session() as session:
        x, y = dense()
        session.run(tf1.global_variables_initializer())
        tf1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
    return str(folder)


class Module(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.ones([4, 3]), name="w")

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.nn.relu(tf.matmul(x, self.weights))}


def saved_model_v2(folder: Path) -> str:
    module = Module()
    other = module.serve.get_concrete_function()
    tf.saved_model.save(module, str(folder), {"serving_default": other, "other": other})
    return str(folder)


@contextmanager
def changed(path: Path) -> Iterator[tf1.MetaGraphDef]:
    """The graph of a SavedModel, which is written again with what was changed."""
    saved = SavedModel()
    saved.ParseFromString(path.read_bytes())
    yield saved.meta_graphs[0]
    path.write_bytes(saved.SerializeToString())


def meta_graph(folder: Path) -> str:
    """A `.meta` file with its checkpoint, as tf.train.Saver wrote them."""
    folder.mkdir()
    with tf.Graph().as_default(), tf1.Session() as session:
        trained()
        session.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver()
        saver.save(session, str(folder / "model"), write_meta_graph=False)
        (folder / "model.meta").write_bytes(
            tf1.MetaGraphDef(
                graph_def=tf1.get_default_graph().as_graph_def(), saver_def=saver.saver_def
            ).SerializeToString()
        )
    return str(folder / "model.meta")


def keras_model() -> tf.keras.Model:
    layers = [tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(2)]
    return tf.keras.Sequential([tf.keras.Input((4,)), *layers])


def lstm() -> tf.keras.Model:
    layers = [tf.keras.layers.Embedding(20, 8), tf.keras.layers.LSTM(6)]
    return tf.keras.Sequential([tf.keras.Input((10,)), *layers])


def keras_file(path: Path) -> str:
    keras_model().save(path)
    return str(path)
