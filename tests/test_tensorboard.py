"""TensorBoard: what is written for the Graphs tab."""

import numpy as np
import pytest
import tensorflow as tf

from tflab.exporters import tensorboard

pytestmark = pytest.mark.tensorflow


def test_a_large_constant_is_left_out_and_says_how_large_it_was():
    with tf.Graph().as_default() as graph:
        tf.constant(
            np.ones([200, 200], np.float32) * np.arange(200, dtype=np.float32), name="large"
        )
        tf.constant([1.0, 2.0], name="small")
    whole = graph.as_graph_def()
    before, _ = whole.node
    large, small = tensorboard.lighter(whole).node
    assert small == whole.node[1]
    assert (
        large.attr["value"].tensor.tensor_shape == whole.node[0].attr["value"].tensor.tensor_shape
    )
    assert not large.attr["value"].tensor.tensor_content
    assert large.attr["left_out"].s.startswith(b"160")
    assert large.ByteSize() < 1_000 < 160_000 < before.ByteSize()
