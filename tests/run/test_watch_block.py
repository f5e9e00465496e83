"""A part of a program, watched from within."""

import numpy as np
import pytest

import tflab

pytestmark = pytest.mark.tensorflow


def test_what_a_block_runs_is_seen_and_nothing_after_it():
    import tensorflow.compat.v1 as tf
    from tensorflow.python.client import session as module

    code = module.BaseSession.run.__code__
    feeds = {"x:0": np.ones([8, 4])}
    with tf.Graph().as_default(), tf.Session() as live:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w = tf.get_variable("w", [4, 3], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w, name="y")), name="loss")
        tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
        live.run(tf.global_variables_initializer())
        with tflab.watch() as seen, tflab.watch() as again:
            assert str(seen) == "The watched part of the program has not ended."
            for _ in range(50):
                live.run(["loss:0", "train"], feeds)
        live.run("loss:0", feeds)
    assert module.BaseSession.run.__code__ is code
    assert again.run is None
    assert str(again).startswith("This process is already being watched")
    (group,) = seen.run.groups
    assert (group.calls, group.fetches) == (50, ("loss:0", "train"))
    assert sum(owner.ns for owner in seen.run.process.owners) == seen.run.process.wall_ns
    (line,) = [line for line in seen.run.lines if "y" in line.nodes]
    assert line.code.startswith("loss = tf.reduce_mean(")
    assert "49 runs" in str(seen)
    assert seen._repr_html_().startswith("<pre>")
