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
    ] == [
        ("a/x", 1, 2),
        ("a/y", 3, 1),
        ("b", 4, 1),
        ("c", 4, 1),
    ]
    assert [stats.all_start_micros for stats in device.node_stats] == [90, 50, 10, 0]
