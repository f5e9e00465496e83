"""Epochs: how a training is divided into epochs and steps, and the totals of an epoch's steps.

An epoch is every row of the training data once, in an order that follows from the seed. If the rows
do not divide evenly into batches, the last batch is smaller, so the totals of an epoch are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflab.errors import UsageError
from tflab.records.trained import Epoch, TrainingStep


@dataclass(frozen=True)
class Settings:
    """What determines a training."""

    model: str
    data: str  # the name of the data set
    train_rows: int
    test_rows: int
    batch_size: int
    epochs: int
    seed: int  # of the initial weights and of the order
    one_thread: bool

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.train_rows:
            raise UsageError(
                f"A batch of {self.batch_size:,} cannot be taken from the {self.train_rows:,} "
                f"training rows of {self.data}; choose a batch size from 1 to {self.train_rows:,}."
            )

    @property
    def epoch_steps(self) -> int:
        return math.ceil(self.train_rows / self.batch_size)

    @property
    def steps(self) -> int:
        return self.epoch_steps * self.epochs


@dataclass(frozen=True)
class TimedStep(TrainingStep):
    seconds: float  # since the end of the previous step, or the start of the epoch


def order(settings: Settings, epoch: int) -> np.ndarray:
    """The order of the rows of the training data in an epoch; epochs count from 0."""
    return np.random.default_rng((settings.seed, epoch)).permutation(settings.train_rows)


def epoch_of(
    settings: Settings, steps: Sequence[TimedStep], test_loss: float, test_accuracy: float
) -> Epoch:
    """The record of an epoch, from its steps. Each step is weighted by its number of rows.

    Traced steps take longer: the rate is that of the others.
    """
    pairs = [(step, rows_in(settings, step.step)) for step in steps]
    rows = sum(count for _, count in pairs)
    timed = [pair for pair in pairs if not pair[0].traced] or pairs
    return Epoch(
        epoch=steps[-1].step // settings.epoch_steps,
        step=steps[-1].step,
        train_loss=sum(step.loss * count for step, count in pairs) / rows,
        train_accuracy=sum(step.accuracy * count for step, count in pairs) / rows,
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        seconds=sum(step.seconds for step in steps),
        images_per_second=sum(count for _, count in timed) / sum(s.seconds for s, _ in timed),
    )


def rows_in(settings: Settings, step: int) -> int:
    """The number of rows in a step, counted from 1: the last of an epoch may have fewer."""
    before = (step - 1) % settings.epoch_steps * settings.batch_size
    return min(settings.batch_size, settings.train_rows - before)
