"""A model of your own is one function: it builds a graph and says which data are fed where.

This one is a network with a hidden layer that learns which points lie within a circle. You need
nothing else to follow it through all four stages, or to train it. Look at how the graph grows and
shrinks again, and at what it has learned. The command line takes the name of the function:

    PYTHONPATH=examples python -m tflab.lifecycle --model adding_a_model:build
"""

from __future__ import annotations

from collections.abc import Iterator

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.options import Model, Options
from tflab.records.stages import Backward
from tflab.runtime import session
from tflab.units import percent
from tflab.views import stages as views

BATCH = 64
HIDDEN = 16
RADIUS = 0.8  # half of the square's area
ROWS = {"train": 4096, "test": 1024}
REPORTED_STEPS = (0, 100, 300, 1_000)  # steps


def build() -> Model:
    """Called once, in a separate graph. Every line makes nodes, and no line computes anything."""
    points = tf1.placeholder(tf.float32, [None, 2], name="points")
    inside = tf1.placeholder(tf.float32, [None, 1], name="inside")
    hidden = tf.tanh(dense("hidden", points, units=HIDDEN))
    logits = dense("output", hidden, units=1)
    errors = tf.nn.sigmoid_cross_entropy_with_logits(labels=inside, logits=logits)
    return Model(
        output=logits,
        feeds={points: "points", inside: "inside"},
        data=circle,
        loss=tf.reduce_mean(errors, name="loss"),
        optimizer=tf1.train.GradientDescentOptimizer(0.5),
    )


def dense(name: str, inputs: tf.Tensor, units: int) -> tf.Tensor:
    with tf1.variable_scope(name, use_resource=True):
        kernel = tf1.get_variable("kernel", [inputs.shape[-1], units])
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        return inputs @ kernel + bias


def circle(split: str, data_dir: str | None = None) -> Dataset:
    """The data, by column: a name, and as many rows as there are points."""
    rng = np.random.default_rng(sorted(ROWS).index(split))
    points = rng.uniform(-1, 1, (ROWS[split], 2)).astype(np.float32)
    inside = (np.hypot(*points.T) < RADIUS).astype(np.float32)
    return Dataset("points in a square", split, {"points": points, "inside": inside[:, None]})


def training(built: Backward) -> Iterator[tuple[object, ...]]:
    """Now and then, the loss of a batch and the share of test points classified correctly."""
    program, model = built.program, built.program.model
    train = session.step_of(program, (model.loss.name, program.train_op))
    infer = session.Step(feeds=("points:0",), fetches=(model.output.name,), targets=())
    batches = session.feed_batches(program, BATCH)
    test = program.dataset("test").columns
    with session.opened(program.graph, Options()) as live:
        learn, answer = train.callable(live), infer.callable(live)
        for number in range(max(REPORTED_STEPS) + 1):
            (loss,) = learn(*next(batches))
            if number in REPORTED_STEPS:
                (logits,) = answer(test["points"])
                right = float(np.mean((logits > 0) == test["inside"]))
                yield number, f"{loss:.3f}", percent(right)


def main() -> None:
    stages = list(lifecycle.walk("__main__:build", Options(batch_size=BATCH)))
    built = stages[1]
    assert isinstance(built, Backward)
    summaries = zip(lifecycle.STAGES, (views.facts(stage)[0].text for stage in stages), strict=True)
    lesson.show(
        lesson.table("What each stage left", ("stage", "result"), summaries),
        lesson.table(
            "It learns", ("step", "loss of the batch", "test points right"), training(built)
        ),
    )


if __name__ == "__main__":
    lesson.give(main)
