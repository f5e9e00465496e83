"""Trained: the log of a training, from which its curves are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingStep:
    """One step, measured on the batch that it learned from, before the update."""

    step: int  # from 1
    loss: float  # mean over the batch
    accuracy: float  # share of the batch
    rate: float  # learning rate
    # Older histories do not have this field.
    traced: bool = field(default=False, kw_only=True)


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
    images_per_second: float  # in the untraced steps, if there are any


@dataclass(frozen=True)
class History:
    model: str
    data: str  # name of the data set; it says so if the data replace another set
    batch_size: int
    seed: int
    steps: tuple[TrainingStep, ...]
    epochs: tuple[Epoch, ...]
    interrupted: bool = False
