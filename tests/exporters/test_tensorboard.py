"""TensorBoard: what is written for the Graphs tab."""

import pytest
import tensorflow.compat.v1 as tf1

from tflab.exporters import tensorboard

pytestmark = pytest.mark.tensorflow


def test_ops_lie_end_to_end_and_each_takes_a_microsecond_at_least():
    metadata = tf1.RunMetadata()
    device = metadata.step_stats.dev_stats.add(device="CPU:0")
    for name, start, ns in (("a/x", 90, 2_500), ("b", 50, 400), ("a/y", 10, 900), ("c", 0, 300)):
        device.node_stats.add(node_name=name, all_start_micros=start, all_end_rel_nanos=ns)
    drawn = tensorboard.drawable(metadata).step_stats.dev_stats[0].node_stats
    assert [
        (stats.node_name, stats.all_start_micros, stats.all_end_rel_micros) for stats in drawn
    ] == [("a/x", 1, 2), ("a/y", 3, 1), ("b", 4, 1), ("c", 4, 1)]
    assert [stats.all_start_micros for stats in device.node_stats] == [90, 50, 10, 0]


def test_a_graph_is_written_without_the_elements_of_its_large_constants(tmp_path):
    with tf1.Graph().as_default() as graph:
        tf1.constant([1.5] * 3, name="small")
        tf1.constant([float(n) for n in range(1_000)], name="large")
    tensorboard.write_graph(tmp_path, graph)
    (file,) = (tmp_path / "written").iterdir()
    *_, event = tf1.train.summary_iterator(str(file))
    written = {
        node.name: node.attr["value"].tensor
        for node in tf1.GraphDef.FromString(event.graph_def).node
    }
    assert tf1.make_ndarray(written["small"]).tolist() == [1.5] * 3
    assert [dim.size for dim in written["large"].tensor_shape.dim] == [1_000]
    assert written["large"].ByteSize() < 20
