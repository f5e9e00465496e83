"""Evaluation: what the network makes of the test images, with the weights as they are now."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.records import Program
from tflab.runtime import session
from tflab.train import gallery
from tflab.train.trainer import Trainer

ROWS = 500  # in a step
SHOWN = 40  # images of a picture


@dataclass(frozen=True)
class Evaluation:
    loss: float  # mean over all test rows
    accuracy: float  # share of them; nan where nothing is classified
    read: np.ndarray | None  # as what each row was read


def evaluate(trainer: Trainer, live: tf1.Session) -> Evaluation:
    """Read every row of the test data once. Every row counts the same, also in a last batch."""
    program = trainer.program
    dataset = program.dataset("test")
    columns = list(session.feed_columns(program, "test").values())
    step = trainer.test.callable(live)
    total, found = 0.0, []
    starts = range(0, dataset.size, ROWS)
    for start, values in zip(starts, datasets.slices(columns, 0, dataset.size, ROWS), strict=True):
        loss, *read = step(*values)
        total += float(loss) * min(ROWS, dataset.size - start)
        found += read
    if not found:
        return Evaluation(total / dataset.size, math.nan, None)
    read = np.concatenate(found)
    right = float(np.mean(read == dataset.columns["labels"]))
    return Evaluation(total / dataset.size, right, read)


def pictures(program: Program, read: np.ndarray) -> Iterator[tuple[str, gallery.Picture]]:
    """The first test images and the first mistakes, where images are what is classified."""
    labels = program.dataset("test").columns["labels"]
    images = next(filter(holds_images, session.feed_columns(program, "test").values()), None)
    if images is None or read.ndim > 1:
        return
    for tag, rows in (
        ("first", np.arange(len(read))),
        ("mistakes", np.flatnonzero(read != labels)),
    ):
        shown = rows[:SHOWN]
        if len(shown):
            yield f"predictions/{tag}", gallery.draw(images[shown], read[shown], labels[shown])


def holds_images(column: datasets.Column) -> bool:
    """Grey or coloured ones: [n, height, width, 1 or 3]."""
    return isinstance(column, np.ndarray) and column.ndim == 4 and column.shape[-1] in (1, 3)
