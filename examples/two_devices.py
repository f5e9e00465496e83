"""A graph on two devices is two graphs, and every tensor between them is sent and received.

The runtime gives each node a device, cuts the graph between devices, and puts a `_Send` on one side
of each cut and a `_Recv` on the other. Nothing else joins the two parts. Look at `first`, which two
nodes of the other device use, and at how often it is sent; then at what the cuts cost. Here, both
devices are the same processors, and the formula is a chain, so there is nothing to gain.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.blocks import fact_table
from tflab.records.graph import node_of
from tflab.records.options import Model, Options
from tflab.records.stages import Placement
from tflab.runtime import session
from tflab.units import short_device
from tflab.views import placement
from tflab.views.words import place

ROUNDS = 300
ROWS, WIDTH = 16, 64
ONE = Options(batch_size=ROWS, soft_placement=True)  # one device does what two were asked for
TWO = Options(batch_size=ROWS, devices=2)


def build() -> Model:
    rng = np.random.default_rng(1)
    weights = rng.normal(0, WIDTH**-0.5, [2, WIDTH, WIDTH]).astype(np.float32)
    x = tf1.placeholder(tf.float32, [None, WIDTH], name="x")
    with tf.device("CPU:0"):
        first = tf.tanh(tf.matmul(x, weights[0], name="matmul1"), name="first")
    with tf.device("CPU:1"):
        second = tf.tanh(tf.matmul(first, weights[1], name="matmul2"), name="second")
        added = tf.add(first, second, name="added")
    with tf.device("CPU:0"):
        output = tf.reduce_mean(added, name="output")
    return Model(output, feeds={x: "x"}, data=noise)


def noise(split: str, data_dir: str | None = None) -> Dataset:
    x = np.random.default_rng(2).normal(size=(1024, WIDTH)).astype(np.float32)
    return Dataset("noise", split, {"x": x})


def rows(placed: Placement) -> Iterator[tuple[str, ...]]:
    """Every node that runs, device by device, in an order in which it can run."""
    lines = {node.name: place(node.source) for node in placed.user_nodes}
    for part in placed.partitions:
        nodes = {node.name: node for node in placed.nodes if node.name in part.nodes}
        takes = {name: [node_of(tensor) for tensor in nodes[name].inputs] for name in nodes}
        for name in TopologicalSorter(takes).static_order():
            line = lines.get(name, "the runtime's")
            yield short_device(part.device), name, nodes[name].op, ", ".join(takes[name]), line


def main() -> None:
    *_, placed = lifecycle.walk("__main__:build", TWO, stop="placement")
    assert isinstance(placed, Placement)
    step = session.step_of(placed.program, placed.fetches)
    one_ns, two_ns = lesson.in_rotation(placed.program, step, (ONE, TWO), ROUNDS)
    lesson.show(
        lesson.table("What runs where", ("device", "node", "type", "takes", "line"), rows(placed)),
        fact_table(placement.transferred(placed)),
        lesson.table(
            f"A step on one device and on two, {ROUNDS} of each in turn",
            ("devices", "median", "p10", "p90", "against one"),
            (
                ("one", *lesson.spread(one_ns), ""),
                ("two", *lesson.spread(two_ns), lesson.against(one_ns, two_ns)),
            ),
        ),
    )


if __name__ == "__main__":
    lesson.give(main)
