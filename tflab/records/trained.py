"""What a training wrote down: the curves that are drawn from it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingStep:
    """One step, measured on the batch that it learned from, before the update."""

    step: int  # from 1
    loss: float  # mean over the batch
    accuracy: float  # share of the batch
    rate: float  # learning rate
    # Histories of before this was recorded have no such field.
    traced: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Epoch:
    """One pass over the training images, and the test that followed it. All are true means."""

    epoch: int  # from 1
    step: int  # after this many steps
    train_loss: float  # mean over the images of the epoch, as they came
    train_accuracy: float
    test_loss: float  # mean over the test images, with the weights at the end of the epoch
    test_accuracy: float
    seconds: float  # of the training alone, without the test
    images_per_second: float  # in the steps that were not traced, if there are any


@dataclass(frozen=True)
class History:
    model: str
    data: str  # the name of the data set, which says so if it stands in for another
    batch_size: int
    seed: int
    steps: tuple[TrainingStep, ...]
    epochs: tuple[Epoch, ...]
    interrupted: bool = False
