"""What is fed where only a function says its shape, or three tensors are one sparse tensor."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs, strangers
from tests.saved_graphs.test_feeds import fed, made_up, walk, written
from tflab import datasets
from tflab.saved_graphs import flat, permissions

pytestmark = pytest.mark.tensorflow

CALL = "StatefulPartitionedCall/StatefulPartitionedCall"


@pytest.mark.parametrize(
    "build, said",
    [
        (strangers.in_a_function, "x float32 [batch, 6] (to fit 'PartitionedCall/MatMul')"),
        (
            strangers.in_a_function_of_a_function,
            f"x float32 [batch, 6] (to fit '{CALL}/MatMul'); ids int32 [batch] (0 to 8, as "
            f"'{CALL}/Gather' takes)",
        ),
        (
            strangers.in_a_branch,
            "x float32 [batch, 7] (to fit 'cond/cond_true_N/MatMul'); training bool [] (False)",
        ),
        (strangers.in_a_loop, "x float32 [batch, 5] (to fit 'while/while_body_N/MatMul')"),
    ],
)
def test_a_shape_that_only_a_function_says_is_found_and_runs(build, said, tmp_path):
    path = written(tmp_path, build)
    assert re.sub(r"_\d+/", "_N/", made_up(path)) == said
    assert "placement" in walk(path, "placement")


def test_each_branch_of_a_case_says_how_wide_it_has_to_be(tmp_path):
    path = written(tmp_path, strangers.in_a_case)
    assert fed(path)["x:0"].shape == (16, 4)
    assert "placement" in walk(path, "placement")


def test_a_function_that_calls_itself_stays_a_call():
    """TensorFlow itself does not survive its import."""
    graph_def = graphs.graph_def(strangers.in_a_function)
    (function,) = graph_def.library.function
    call = function.node_def.add(name="again", op="PartitionedCall", input=["value"])
    call.attr["f"].func.name = function.signature.name
    call.attr["Tin"].list.type.append(tf.float32.as_datatype_enum)
    call.attr["Tout"].list.type.append(tf.float32.as_datatype_enum)
    layout = flat.Layout(graph_def, {function.signature.name: function})
    layout.lay_out([node.name for node in graph_def.node], [])
    assert layout.nodes["PartitionedCall/MatMul"].op == "MatMul"
    assert layout.nodes["PartitionedCall/again"].op == "PartitionedCall"


def test_what_could_touch_files_has_no_kernel_where_it_is_only_looked_at():
    def build():
        name = tf1.placeholder(tf.string, [], name="name")
        read = tf.function(lambda name: tf.io.decode_raw(tf.io.read_file(name), tf.int32))
        tf.reshape(tf.zeros([4]), read(name), name="y")

    graph_def = graphs.graph_def(build)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    laid_out = flat.flatten(graph, [op.name for op in graph.get_operations()], [])
    (reader,) = [node for node in laid_out.graph_def.node if node.op == "ReadFile"]
    assert permissions.LOCK in reader.attr
    inside = [n for f in laid_out.graph_def.library.function for n in f.node_def]
    assert all(permissions.LOCK in node.attr for node in inside if node.op == "ReadFile")


# Images that are decoded


def decoded_picture():
    text = tf1.placeholder(tf.string, [], name="text")
    tf.cast(tf.io.decode_jpeg(text, 3), tf.float32, name="y")


def decoded_pictures():
    """One by one, in a loop over a list; and a list that nobody takes, and nobody can fetch."""
    text = tf1.placeholder(tf.string, [None], name="text")
    tf.map_fn(lambda one: tf.cast(tf.io.decode_png(one), tf.float32), text, dtype=tf.float32)
    tf.raw_ops.TensorListFromTensor(tensor=text, element_shape=tf.constant([], tf.int32))


@pytest.mark.parametrize(
    "build, said",
    [
        (decoded_picture, "[] (a picture of 32 x 32 pixels, as 'DecodeJpeg' decodes)"),
        (
            decoded_pictures,
            "[batch] (a picture of 32 x 32 pixels, as 'map/while/map_while_body_N/DecodePng' "
            "decodes)",
        ),
    ],
)
def test_an_image_that_is_decoded_is_an_image(build, said, tmp_path):
    path = written(tmp_path, build)
    assert re.sub(r"_\d+/", "_N/", made_up(path)) == f"text string {said}"
    assert "placement" in walk(path, "placement")


# Sparse inputs


def test_the_parts_of_a_sparse_input_go_together_and_run(tmp_path):
    path = written(tmp_path, strangers.sparse_features)
    values = fed(path, 3)
    assert values["features/indices:0"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert values["features/shape:0"].tolist() == [3, 300]
    assert values["features/values:0"].shape == (3,)
    assert (
        "features/shape int64 [2] (to fit 'SparseTensorDenseMatMul/SparseTensorDenseMatMul'; "
        "a sparse [batch, 300])"
    ) in made_up(path)
    assert "placement" in walk(path, "placement")


def test_a_default_that_leaves_sizes_open_is_fed_as_well(tmp_path):
    path = written(tmp_path, strangers.sparse_ids)
    values = fed(path, 4)
    assert values["weights/shape:0"].tolist() == [4, 30]
    assert values["ids/shape:0"][0] == 4
    assert "placement" in walk(path, "placement", batch_size=4)


def test_the_parts_are_known_by_the_op_that_takes_them(tmp_path):
    path = written(tmp_path, strangers.sparse_words)
    values = fed(path, 2)
    assert values["where:0"].tolist() == [[0, 0], [1, 0]]
    assert values["extent:0"].tolist() == [2, 1]
    assert "placement" in walk(path, "placement")


def test_three_numbered_placeholders_of_fitting_shapes_are_a_sparse_input(tmp_path):
    def build():
        indices = tf1.placeholder(tf.int64, [None, 2], name="x")
        values = tf1.placeholder(tf.float32, [None], name="x_1")
        shape = tf1.placeholder(tf.int64, [2], name="x_2")
        twice = tf.SparseTensor(indices, values * 2.0, shape)
        tf.sparse.to_dense(tf.sparse.reorder(twice), name="y")

    path = written(tmp_path, build)
    assert fed(path, 2)["x:0"].tolist() == [[0, 0], [1, 0]]
    assert "placement" in walk(path, "placement")


def test_three_numbered_placeholders_of_other_shapes_are_not(tmp_path):
    def build():
        ids = tf1.placeholder(tf.int64, [None, 2], name="x")
        more = tf1.placeholder(tf.int64, [None], name="x_1")
        wide = tf1.placeholder(tf.int64, [3], name="x_2")
        tf.add(tf.reduce_sum(ids) + tf.reduce_sum(more), wide, name="y")

    path = written(tmp_path, build)
    assert set(np.ravel(fed(path, 16)["x:0"])) == {0, 1}


def test_of_a_sparse_input_that_the_user_feeds_in_part_nothing_is_put_together(tmp_path):
    path = written(tmp_path, strangers.sparse_words)
    np.save(tmp_path / "extent.npy", np.int64([5, 7]))
    values = fed(path, 2, feeds=(("extent", str(tmp_path / "extent.npy")),))
    assert values["extent:0"].tolist() == [5, 7]


def test_the_rows_of_every_batch_are_counted_from_0():
    indices = datasets.Renumbered(np.int64([[0, 5], [1, 6], [2, 7], [3, 8]]), 4)
    assert indices[2:4].tolist() == [[0, 7], [1, 8]]
    assert indices[np.array([3, 0])].tolist() == [[0, 8], [1, 5]]
    assert indices.value[2, 0] == 2  # and what is kept stays as it is
    shape = datasets.CountedWhole(np.int64([4, 9]), 4)
    assert shape[1:4].tolist() == [3, 9]
    assert shape[np.array([3, 0])].tolist() == [2, 9]
    assert datasets.first_rows(shape, 2)[0:2].tolist() == [2, 9]
    assert datasets.batch_shape(indices, 3) == (3, 2)
