"""FLOP counts of graphs that ran, worked out by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.examples.placing import placed
from tflab.runtime import costs

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(1)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def counted(fetches, feeds=None):
    """The FLOPs of the nodes that ran, by the user's name of the type, and what they computed."""
    stage, values = placed(fetches, feeds)
    by_type = {}
    for node, cost in zip(stage.nodes, costs.costs(stage), strict=True):
        plain = costs.plain_type(node.op)
        by_type.setdefault(plain, []).append(cost.flops)
    return by_type, values


# Convolutions


# Loops and functions: shapes that only the trace has


def test_each_iteration_of_a_loop_counts_with_its_own_shapes():
    """Rows of x one more each time: 1, 2, 3 and 4 rows times a 5 by 2."""
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None, 5])
        w = tf1.placeholder(tf.float32, [5, 2])

        def body(i, total):
            rows = tf.slice(x, [0, 0], tf.stack([i, 5]))
            return i + 1, total + tf.reduce_sum(tf.matmul(rows, w))

        _, total = tf1.while_loop(lambda i, _: i < 5, body, [1, 0.0])
        by_type, _ = counted(total, {x: numbers(4, 5), w: numbers(5, 2)})
    assert by_type["MatMul"] == [2 * (1 + 2 + 3 + 4) * 5 * 2 / 4]  # the mean of four runs


def test_what_cannot_be_known_is_named_but_a_branch_that_did_not_run_is_not_missed():
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None])
        yes = tf1.placeholder(tf.bool, [])
        sums = tf.math.cumulative_logsumexp
        both = sums(x) + sums(x, reverse=True)
        out = tf1.cond(yes, lambda: x * 2.0, lambda: sums(x))
        for fetched, chosen, missing in ((both, True, 2), (out, True, 0), (out, False, 1)):
            stage, _ = placed(fetched, {x: numbers(5), yes: chosen})
            known = {"CumulativeLogsumexp": missing} if missing else {}
            assert costs.types_without_flops(stage) == known
            unknown = {cost.name for cost in costs.costs(stage) if cost.flops is None}
            ops = {node.op for node in stage.nodes if node.name in unknown}
            assert ops >= known.keys()


def test_of_a_table_only_the_rows_count_that_are_read():
    """4 of 4,000,000 numbers: 16 bytes read, 16 written, and three indices."""
    with tf.Graph().as_default():
        table = tf.Variable(tf.zeros([4_000_000]), name="table")
        begin = tf1.placeholder(tf.int32, [1])
        sliced = tf.strided_slice(tf.identity(table), begin, begin + 4, [1])
        stage, _ = placed(sliced, {begin: [7]})
    (moved,) = (
        cost.bytes
        for node, cost in zip(stage.nodes, costs.costs(stage), strict=True)
        if node.op == "StridedSlice"
    )
    assert moved == 16 + 16 + 3 * 4
