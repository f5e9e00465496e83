"""Attacks: graphs that write or read a file that they were not given, each in another way."""

from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import text_format
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tests import graphs


def add_text(nodes, name, value):
    node = nodes.add(name=name, op="Const")
    node.attr["dtype"].type = tf.string.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(value)))


def write_file(graph_def, name, path):
    """Add a WriteFile of this name to a graph or function, where nothing leads to it."""
    nodes = graph_def if hasattr(graph_def, "add") else graph_def.node
    suffix = "" if nodes is getattr(graph_def, "node", None) else ":output:0"
    add_text(nodes, f"{name}/path", path)
    add_text(nodes, f"{name}/content", "harm")
    inputs = [f"{name}/path{suffix}", f"{name}/content{suffix}"]
    nodes.add(name=name, op="WriteFile", input=inputs)


def variable_graph():
    value = tf1.get_variable("v", [], use_resource=True).read_value()
    tf.identity(value * 2.0, name="out")


def behind_an_initialiser(folder, harm):
    graph = graphs.graph_def(variable_graph)
    write_file(graph, "write", harm)
    next(node for node in graph.node if node.name == "v/Assign").input.append("^write")
    return graphs.write(folder / "g.pb", graph)


@contextmanager
def changed(path):
    """The graph of a SavedModel, which is written again with what was changed."""
    saved = SavedModel()
    saved.ParseFromString(path.read_bytes())
    yield saved.meta_graphs[0]
    path.write_bytes(saved.SerializeToString())


def behind_a_main_op(folder, harm):
    path = Path(graphs.saved_model_v1(folder / "v1"), "saved_model.pb")
    with changed(path) as meta:
        write_file(meta.graph_def, "write", harm)
        meta.collection_def["saved_model_main_op"].node_list.value.append("write")
    return str(path.parent)


def behind_a_restore_op(folder, harm):
    path = Path(graphs.meta_graph(folder / "meta"))
    meta = tf1.MetaGraphDef.FromString(path.read_bytes())
    write_file(meta.graph_def, "write", harm)
    restore = meta.saver_def.restore_op_name
    next(node for node in meta.graph_def.node if node.name == restore).input.append("^write")
    path.write_bytes(meta.SerializeToString())
    return str(path)


def in_functions(folder, harm, rename=None):
    """Two functions deep, in a branch."""
    graph = graphs.graph_def(graphs.functions)
    name = next(f.signature.name for f in graph.library.function if "twice" in f.signature.name)
    function = next(f for f in graph.library.function if f.signature.name == name)
    write_file(function.node_def, "write", harm)
    function.control_ret["write"] = "write"
    function.signature.control_output.append("write")
    function.signature.is_stateful = True
    text = str(graph).replace(name, rename or name)
    return graphs.write(folder / "g.pb", text_format.Parse(text, tf1.GraphDef()))


def in_a_function_that_says_it_saves(folder, harm):
    return in_functions(folder, harm, rename="__inference__traced_save_12")


def in_a_dataset(folder, harm):
    def build():
        def element(number):
            with tf.control_dependencies([tf.io.write_file(str(harm), "harm")]):
                return tf.cast(number, tf.float32)

        dataset = tf1.data.Dataset.range(9).map(element).repeat()
        tf.identity(tf1.data.make_one_shot_iterator(dataset).get_next(), name="out")

    return graphs.write(folder / "g.pb", graphs.graph_def(build))


def in_a_gradient_function(folder, harm):
    """Nothing calls it but the gradient of a function that the graph calls."""
    graph = graphs.graph_def(graphs.functions)
    called = next(f.signature.name for f in graph.library.function if "twice" in f.signature.name)
    function = graph.library.function.add()
    function.signature.name = "backwards"
    write_file(function.node_def, "write", harm)
    graph.library.gradient.add(function_name=called, gradient_func="backwards")
    return graphs.write(folder / "g.pb", graph)


def in_another_implementation(folder, harm):
    """A pass of the runtime may choose it in place of one that the graph calls."""
    graph = graphs.graph_def(graphs.functions)
    called = next(f for f in graph.library.function if "twice" in f.signature.name)
    called.attr["api_implements"].s = b"twice"
    function = graph.library.function.add()
    function.signature.name = "other"
    function.attr["api_implements"].s = b"twice"
    write_file(function.node_def, "write", harm)
    return graphs.write(folder / "g.pb", graph)


WAYS = (
    behind_an_initialiser,
    behind_a_main_op,
    behind_a_restore_op,
    in_functions,
    in_a_function_that_says_it_saves,
    in_a_dataset,
    in_a_gradient_function,
    in_another_implementation,
)


def shape_from_a_file(path):
    number = tf.strings.to_number(tf.io.read_file(str(path)), tf.int32)
    x = tf1.placeholder(tf.float32, [None], name="x")
    tf.reshape(x, tf.stack([number, -1]), name="out")


def reading(secret):
    """Ways to read a file: each leads to its content or to a number made of it."""
    text = lambda: tf.strings.to_number(tf.io.read_file(str(secret)), name="out")  # noqa: E731

    def table():
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                *(str(secret), tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
                *(tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
            ),
            "",
        )
        tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, table._init_op)
        tf.strings.to_number(table.lookup(tf.constant(0, tf.int64)), name="out")

    def dataset():
        lines = tf1.data.TextLineDataset(str(secret)).repeat()
        line = tf1.data.make_one_shot_iterator(lines).get_next()
        tf.strings.to_number(line, name="out")

    def matching():
        tf.size(tf.io.matching_files(str(secret) + "*"), name="out")

    shape = lambda: shape_from_a_file(secret)  # noqa: E731
    return {"text": text, "dataset": dataset, "matching": matching, "shape": shape}
