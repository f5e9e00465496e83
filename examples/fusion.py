"""Fusion makes one kernel of several ops, so that values between them never leave the cache.

A pass named remapper does this, and gives the result the name of the last op. Look at the types
that run in the end, at the pass that takes over when remapper is switched off, and at the bytes
that the ops write. The example measures whether fusion saves time on this machine.
"""

from __future__ import annotations

from dataclasses import replace

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.lifecycle import placement
from tflab.records.options import Model, Options
from tflab.records.stages import Backward, Placement
from tflab.runtime import costs, nodes, session
from tflab.units import size

OPS = ("Conv2D", "BiasAdd", "Relu")
ROUNDS = 200
ON = Options(batch_size=16)
OFF = replace(ON, without=("remapper",))


def build() -> Model:
    """LeNet's first layer: a convolution, its bias and ReLU."""
    rng = np.random.default_rng(1)
    images = tf1.placeholder(tf.float32, [None, 32, 32, 1], name="images")
    kernels = rng.normal(0, 0.2, [5, 5, 1, 6]).astype(np.float32)
    sums = tf.nn.conv2d(images, kernels, strides=1, padding="VALID", name="Conv2D")
    biased = tf.nn.bias_add(sums, rng.normal(size=6).astype(np.float32), name="BiasAdd")
    return Model(tf.nn.relu(biased, name="Relu"), feeds={images: "images"}, data=noise)


def noise(split: str, data_dir: str | None = None) -> Dataset:
    images = np.random.default_rng(2).normal(size=(256, 32, 32, 1)).astype(np.float32)
    return Dataset("noise", split, {"images": images})


def outcome_of(name: str, placed: Placement) -> str:
    """What became of one node of the program."""
    fate = next(fate for fate in placed.ledger if fate.name == name)
    if fate.fate != "executed":
        return f"{fate.fate} into {fate.into} by {fate.by}"
    return next(f"runs as {node.op}" for node in placed.nodes if node.name == name)


def bytes_written(placed: Placement) -> str:
    """The bytes of all results, without those that are only handed on."""
    makers = (node for node in placed.nodes if node.op not in costs.HAND_ON)
    sizes = [nodes.tensor_bytes(result) for node in makers for result in node.outputs]
    return "unknown" if None in sizes else size(sum(sizes))


def main() -> None:
    *_, built = lifecycle.walk("__main__:build", ON, stop="backward")
    assert isinstance(built, Backward)
    on, off = (placement.place(built, options) for options in (ON, OFF))
    step = session.step_of(on.program, on.fetches)
    on_ns, off_ns = lesson.in_rotation(on.program, step, (ON, OFF), ROUNDS)
    change = lesson.against(on_ns, off_ns)
    rows = (
        ("on", len(on.nodes), bytes_written(on), *lesson.spread(on_ns), ""),
        ("off", len(off.nodes), bytes_written(off), *lesson.spread(off_ns), change),
    )
    lesson.show(
        lesson.table(
            "What became of the three ops",
            ("op", "with the pass", "without"),
            [(op, outcome_of(op, on), outcome_of(op, off)) for op in OPS],
        ),
        lesson.table(
            f"A step of {ON.batch_size} images, {ROUNDS} of each in turn",
            ("the pass", "nodes", "written", "median", "p10", "p90", "against on"),
            rows,
        ),
    )


if __name__ == "__main__":
    lesson.give(main)
