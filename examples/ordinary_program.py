"""An ordinary program: an embedding, a loop over the words, a loss with a logarithm, and Adam.

It learns whether a sequence contains a word after its opposite. Look at what each line costs, with
its gradients and its updates, and at how a bug shows: `buggy` is the same program, but lets a
probability be 0 before it takes the logarithm.

    PYTHONPATH=examples python -m tflab.compare --model ordinary_program:build --by line
    PYTHONPATH=examples python -m tflab.lifecycle --model ordinary_program:buggy
"""

from __future__ import annotations

import lesson
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import lifecycle
from tflab.datasets import Dataset
from tflab.records.options import Model, Options
from tflab.records.stages import Execution
from tflab.views import values

WORDS, LENGTH, UNITS = 200, 12, 16
ROWS = {"train": 4096, "test": 1024}


def build() -> Model:
    return model(least=1e-6)


def buggy() -> Model:
    return model(least=0.0)


def model(least: float) -> Model:
    words = tf1.placeholder(tf.int32, [None, LENGTH], name="words")
    labels = tf1.placeholder(tf.float32, [None], name="labels")
    with tf1.variable_scope("reader", use_resource=True):
        table = tf1.get_variable("table", [WORDS, UNITS])
        kernel = tf1.get_variable("kernel", [2 * UNITS, UNITS])
        score = tf1.get_variable("score", [UNITS, 1])
    vectors = tf.nn.embedding_lookup(table, words)

    def read(place: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        word = tf.gather(vectors, place, axis=1)
        return place + 1, tf.tanh(tf.concat([word, state], axis=1) @ kernel)

    start = tf.zeros([tf.shape(words)[0], UNITS])
    _, state = tf.while_loop(lambda place, _: place < LENGTH, read, [tf.constant(0), start])
    margin = tf.nn.relu(tf.squeeze(state @ score, axis=1))
    likely = tf.maximum(1 - tf.exp(-margin), least)
    hits = labels * tf.math.log(likely)
    loss = tf.reduce_mean((1 - labels) * margin - hits, name="loss")
    return Model(
        output=likely,
        feeds={words: "words", labels: "labels"},
        data=sequences,
        loss=loss,
        optimizer=tf1.train.AdamOptimizer(0.005),
    )


def sequences(split: str, data_dir: str | None = None) -> Dataset:
    """Word `n` and word `WORDS - 1 - n` are opposites; half of the sequences hold such a pair."""
    rng = np.random.default_rng(sorted(ROWS).index(split))
    words = rng.integers(0, WORDS // 2, (ROWS[split], LENGTH)).astype(np.int32)
    labels = rng.integers(0, 2, ROWS[split])
    rows, places = np.flatnonzero(labels), rng.integers(1, LENGTH, labels.sum())
    words[rows, places] = WORDS - 1 - words[rows, places - 1]
    columns = {"words": words, "labels": labels.astype(np.float32)}
    return Dataset("word sequences", split, columns)


def executed(function: str) -> Execution:
    *_, stage = lifecycle.walk(f"__main__:{function}", Options(batch_size=64))
    assert isinstance(stage, Execution)
    return stage


def main() -> None:
    sound, broken = executed("build"), executed("buggy")
    lesson.show(
        "The correct program:",
        *(list(values.not_finite(sound)) or ["No value in its first step is NaN or Inf."]),
        "The same program with a probability of 0:",
        *values.not_finite(broken),
    )


if __name__ == "__main__":
    lesson.give(main)
