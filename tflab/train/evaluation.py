"""Evaluation: loss, accuracy and predictions on the test data, with the current weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.records.options import Program
from tflab.runtime import session
from tflab.train import prediction_images
from tflab.train.trainer import Trainer

ROWS = 500  # in a step
SHOWN = 40  # images in a picture


@dataclass(frozen=True)
class Evaluation:
    loss: float  # mean over all test rows
    accuracy: float  # share of correct predictions; nan if nothing is classified
    predicted: np.ndarray | None  # the class of each row


def evaluate(trainer: Trainer, live: tf1.Session) -> Evaluation:
    """Classify every row of the test data once. Each row counts the same, also in a short batch."""
    program = trainer.program
    dataset = program.dataset("test")
    columns = list(session.feed_columns(program, "test").values())
    step = trainer.test.callable(live)
    loss_sum, batches = 0.0, []
    starts = range(0, dataset.size, ROWS)
    for start, values in zip(starts, datasets.slices(columns, 0, dataset.size, ROWS), strict=True):
        loss, *classes = step(*values)
        loss_sum += float(loss) * min(ROWS, dataset.size - start)
        batches += classes
    if not batches:
        return Evaluation(loss_sum / dataset.size, math.nan, None)
    predicted = np.concatenate(batches)
    accuracy = float(np.mean(predicted == dataset.columns["labels"]))
    return Evaluation(loss_sum / dataset.size, accuracy, predicted)


def pictures(
    program: Program, predicted: np.ndarray
) -> Iterator[tuple[str, prediction_images.PngImage]]:
    """Pictures of the first test images and the first mistakes, if images are classified."""
    labels = program.dataset("test").columns["labels"]
    images = next(filter(holds_images, session.feed_columns(program, "test").values()), None)
    if images is None or predicted.ndim > 1:
        return
    for tag, rows in (
        ("first", np.arange(len(predicted))),
        ("mistakes", np.flatnonzero(predicted != labels)),
    ):
        shown = rows[:SHOWN]
        if len(shown):
            picture = prediction_images.draw(images[shown], predicted[shown], labels[shown])
            yield f"predictions/{tag}", picture


def holds_images(column: datasets.Column) -> bool:
    """Whether a column holds grey or coloured images: [n, height, width, 1 or 3]."""
    return isinstance(column, np.ndarray) and column.ndim == 4 and column.shape[-1] in (1, 3)
