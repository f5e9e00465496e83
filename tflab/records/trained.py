"""Trained: the settings of a training, and what it measured in each step and epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What determines a training."""

    model: str
    data: str  # the name of the data set; it says so if the data replace another set
    train_rows: int
    test_rows: int
    batch_size: int
    epochs: int
    seed: int  # of the initial weights and of the order of the rows

    @property
    def epoch_steps(self) -> int:
        return math.ceil(self.train_rows / self.batch_size)

    @property
    def steps(self) -> int:
        return self.epoch_steps * self.epochs


@dataclass(frozen=True)
class TrainingStep:
    """One step, measured on the batch that it learned from, before the update."""

    step: int  # from 1
    loss: float  # mean over the batch
    accuracy: float  # share of the batch
    rate: float  # learning rate
    seconds: float  # since the end of the previous step, or the start of the epoch


@dataclass(frozen=True)
class Epoch:
    """One pass over the training images, and the test after it. All numbers are true means."""

    epoch: int  # from 1
    step: int  # after this many steps
    train_loss: float  # mean over the images of the epoch, each before the update of its batch
    train_accuracy: float
    test_loss: float  # mean over the test images, with the weights at the end of the epoch
    test_accuracy: float
    seconds: float  # of the training alone, without the test
    images_per_second: float


@dataclass(frozen=True)
class History:
    """A training from its first step to its last epoch, as far as it came."""

    settings: Settings
    steps: tuple[TrainingStep, ...]
    epochs: tuple[Epoch, ...]

    @property
    def interrupted(self) -> bool:
        return not self.epochs or self.epochs[-1].epoch < self.settings.epochs


def history(settings: Settings, records: Sequence[TrainingStep | Epoch]) -> History:
    """Return the history of a training from what its loop yielded."""
    steps = tuple(record for record in records if isinstance(record, TrainingStep))
    return History(settings, steps, tuple(r for r in records if isinstance(r, Epoch)))
