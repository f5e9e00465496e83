"""Debugger: what a step wrote is read back, and what would be unsafe is not begun."""

import os
import shutil
from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tflab.errors import TflabError
from tflab.runtime import debugger, nodes

pytestmark = pytest.mark.tensorflow

MB = 2**20
FLOAT = tf1.AttrValue(type=tf.float32.as_datatype_enum)


@pytest.fixture
def free(monkeypatch):
    """Sets how much room a folder has."""

    def set_free(bytes_):
        usage = namedtuple("usage", "free")(bytes_)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    set_free(2**50)
    return set_free


@pytest.mark.parametrize(
    "name", ["../x", "a/../../evil", "a/..", "..", "a" * 181, f"b/{'a' * 181}/c", "a/" * 1_001]
)
def test_a_name_that_is_no_good_path_is_refused(name, free):
    assert not debugger.is_safe(name)
    reason = debugger.refusal(["fine", name], 1, 1, "/tmp")
    assert reason.startswith("The runtime would use the name '")
    assert len(reason) < 150


@pytest.mark.parametrize("name", ["a", "a..b/..c/d..", "a/./b", "a" * 180, "gradients/a/b_1"])
def test_other_names_are_safe(name, free):
    assert debugger.is_safe(name)
    assert debugger.refusal([name], 1, 1, "/tmp") == ""


def test_tensors_that_are_too_many_or_too_large_are_refused(free):
    largest, most = debugger.MOST_BYTES, debugger.MOST_FILES
    assert debugger.refusal((), largest, most, "/tmp") == ""
    assert debugger.refusal((), largest + 2**25, 1, "/tmp") == (
        "Its tensors have 1.03 GiB, but tflab records at most 1.00 GiB."
    )
    assert debugger.refusal((), 1, most + 1, "/tmp") == (
        "It computes 10,001 tensors, but tflab records at most 10,000."
    )


def test_where_there_is_no_room_for_twice_as_much_it_is_refused(free):
    free(20 * MB + 2 * 10 * debugger.FILE_BYTES)
    assert debugger.refusal((), 10 * MB, 10, "/here") == ""
    assert debugger.refusal((), 11 * MB, 10, "/here") == (
        "It needs 22.1 MiB of disk space, and /here has 20.1 MiB."
    )


def test_all_names_of_a_graph_and_of_its_functions_are_looked_at():
    names = set(debugger.names_of(graphs.graph_def(graphs.functions)))
    assert {"x", "out", "Sum"} <= names  # of the graph
    assert any(name.startswith("cond_true") for name in names)  # a function
    assert {"Tanh", "PartitionedCall"} <= names  # of functions


# A step that is recorded


def recorded(build, fetch, feeds, folder):
    """What a step computed, and the nodes of the graph that ran."""
    with tf.Graph().as_default() as graph:
        build()
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(
            output_partition_graphs=True, debug_options=debugger.options(graph, str(folder))
        )
        with tf1.Session(graph=graph) as live:
            live.run(fetch, feeds, options=options, run_metadata=metadata)
    (graph_def,) = metadata.partition_graphs
    return list(debugger.read(str(folder))), graph_def


def split_and_add():
    x = tf1.placeholder(tf.float32, [4], name="x")
    left, right = tf.split(x, 2, name="a/split")
    tf.add(left, right, name="out")


def test_every_output_is_read_with_its_value(tmp_path):
    rows, _ = recorded(split_and_add, "out:0", {"x:0": [1, 2, 30, 40]}, tmp_path)
    values = {(row.node, row.output): row.array.tolist() for row in rows}
    assert values[("a/split", 0)] == [1, 2]
    assert values[("a/split", 1)] == [30, 40]
    assert values[("out", 0)] == [31, 42]
    assert [row.us for row in rows] == sorted(row.us for row in rows)
    (out,) = (row for row in rows if row.node == "out")
    assert (out.dtype, out.shape) == ("float32", (2,))


def test_what_a_loop_computes_is_read_in_the_order_of_its_turns(tmp_path):
    rows, _ = recorded(graphs.old_loop, "out:0", {"x:0": np.ones((1, 4))}, tmp_path)
    turns = [row.array[0, 0] for row in rows if row.node == "loop/body"]
    expected = [1.0]
    for _ in range(5):
        expected.append(np.tanh(expected[-1]))
    assert turns == pytest.approx(expected[1:])


def test_a_handle_is_no_value(tmp_path):
    def build():
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="w", name="w")
        assign = tf.raw_ops.AssignVariableOp(resource=handle, value=2.0)
        with tf.control_dependencies([assign]):
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32, name="out")

    rows, _ = recorded(build, "out:0", {}, tmp_path)
    values = {row.node: (row.dtype, row.array) for row in rows}
    assert values["w"] == ("resource", None)
    assert values["out"] == ("float32", 2.0)


def test_without_the_nodes_of_the_debugger_the_graph_is_the_usual_one(tmp_path):
    _, decorated = recorded(split_and_add, "out:0", {"x:0": [1, 2, 30, 40]}, tmp_path)
    with tf.Graph().as_default() as graph, tf1.Session(graph=graph) as live:
        split_and_add()
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(output_partition_graphs=True)
        live.run("out:0", {"x:0": [1, 2, 30, 40]}, options=options, run_metadata=metadata)
    (usual,) = metadata.partition_graphs
    assert len(decorated.node) > len(usual.node)
    assert sorted(debugger.without_debug_nodes([decorated]), key=lambda node: node.name) == sorted(
        nodes.from_graph_def(usual, {}, {}), key=lambda node: node.name
    )


def test_a_node_of_the_user_is_no_node_of_the_debugger():
    own = tf1.GraphDef()
    own.node.add(name="copy", op="Copy", input=["x"], attr={"T": FLOAT})
    own.node.add(name="__copy_x_0", op="Identity", input=["x"], attr={"T": FLOAT})
    assert debugger.without_debug_nodes([own]) == nodes.from_graph_def(own, {}, {})


@pytest.mark.parametrize(
    "op, scratch",
    [
        ("FusedBatchNormV3", [3, 4, 5]),
        ("_MklNativeMaxPool", [1]),
        ("SplitV", []),
        ("Mul", []),
        ("NoSuchOp", []),
    ],
)
def test_what_an_op_reserves_for_its_gradient_is_no_value(op, scratch):
    assert [output for output in range(7) if debugger.is_scratch(op, output)] == scratch


@pytest.mark.parametrize("name", ["x_0_DebugIdentity_soon", "x_0_Other_12", "notes.txt"])
def test_a_file_that_is_not_understood_is_a_sentence(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(TflabError, match="the name of a file has no time"):
        list(debugger.read(str(tmp_path)))


def test_a_file_without_a_tensor_is_a_sentence(tmp_path):
    (tmp_path / "x_0_DebugIdentity_12").write_bytes(tf1.Event(step=1).SerializeToString())
    with pytest.raises(TflabError, match="a file has no tensor"):
        list(debugger.read(str(tmp_path)))


def test_names_are_those_in_the_files_and_not_those_of_the_files(tmp_path):
    rows, _ = recorded(split_and_add, "out:0", {"x:0": [1, 2, 30, 40]}, tmp_path / "step")
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, path in enumerate(debugger.files(str(tmp_path / "step"))):
        moment = path.rpartition("_")[2]
        os.rename(path, flat / f"{number}_DebugIdentity_{moment}")
    assert [(row.node, row.output) for row in debugger.read(str(flat))] == [
        (row.node, row.output) for row in rows
    ]
