"""Epochs: how a training is cut into epochs and steps, and steps are folded into epochs again.

An epoch is every row of the training data once, in an order of its own that follows from the seed.
Where the batches do not come out even the last one is smaller, so the sums of an epoch are true.
No TensorFlow in here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflab.errors import UsageError
from tflab.records import Epoch, TrainingStep


@dataclass(frozen=True)
class Settings:
    """What makes a training the one it is. The same settings give the same weights."""

    model: str
    data: str  # the name of the data set
    train_rows: int
    test_rows: int
    batch_size: int
    epochs: int
    seed: int  # of the first weights and of the order
    one_thread: bool

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.train_rows:
            raise UsageError(
                f"A batch of {self.batch_size:,} cannot be cut from the {self.train_rows:,} "
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
    seconds: float  # since the end of the step before, or the start of the epoch


def order(settings: Settings, epoch: int) -> np.ndarray:
    """The rows of the training data as they come in an epoch, which is counted from 0."""
    return np.random.default_rng((settings.seed, epoch)).permutation(settings.train_rows)


def fold(
    settings: Settings, steps: Sequence[TimedStep], test_loss: float, test_accuracy: float
) -> Epoch:
    """All steps of an epoch as one. Each counts by its rows, of which the last may have fewer."""
    size, rows = settings.batch_size, settings.train_rows
    counts = [min(size, rows - start) for start in range(0, rows, size)]
    pairs = list(zip(steps, counts, strict=True))
    seconds = sum(step.seconds for step in steps)
    return Epoch(
        epoch=steps[-1].step // settings.epoch_steps,
        step=steps[-1].step,
        train_loss=sum(step.loss * count for step, count in pairs) / rows,
        train_accuracy=sum(step.accuracy * count for step, count in pairs) / rows,
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        seconds=seconds,
        images_per_second=rows / seconds,
    )
