"""Epochs: every row once, in an order of its own, and means that are true."""

import numpy as np
import pytest

from tflab import datasets
from tflab.errors import UsageError
from tflab.records.trained import Epoch
from tflab.train import epochs
from tflab.train.epochs import Settings, TimedStep

SETTINGS = Settings(
    model="m",
    data="d",
    train_rows=10,
    test_rows=4,
    batch_size=4,
    epochs=3,
    seed=7,
    one_thread=False,
)


def test_the_last_batch_of_an_epoch_is_a_step_too():
    assert (SETTINGS.epoch_steps, SETTINGS.steps) == (3, 9)


def test_an_epoch_is_every_row_once():
    assert sorted(epochs.order(SETTINGS, 0)) == list(range(10))


def test_every_epoch_has_its_own_order_and_always_the_same():
    orders = [tuple(epochs.order(SETTINGS, epoch)) for epoch in (0, 1, 2)]
    assert len(set(orders)) == 3
    assert orders == [tuple(epochs.order(SETTINGS, epoch)) for epoch in (0, 1, 2)]


def test_the_order_is_that_of_shuffled_batches():
    data = datasets.Dataset("d", "train", {"row": np.arange(10)})
    batch = next(datasets.batches(data, 10, seed=7))
    assert list(batch["row"]) == list(epochs.order(SETTINGS, 0))


@pytest.mark.parametrize("batch_size", [0, 11, 1_000])
def test_a_batch_that_cannot_be_cut_is_refused(batch_size):
    with pytest.raises(UsageError) as error:
        Settings("m", "d", 10, 4, batch_size, 3, 7, False)
    assert str(error.value) == (
        f"A batch of {batch_size:,} cannot be taken from the 10 training rows of d; choose a "
        "batch size from 1 to 10."
    )


def test_an_epoch_is_a_mean_over_rows_not_over_batches():
    steps = [
        TimedStep(step=4, loss=1.0, accuracy=0.25, rate=0.1, seconds=1.0),
        TimedStep(step=5, loss=2.0, accuracy=0.5, rate=0.1, seconds=1.5),
        TimedStep(step=6, loss=8.0, accuracy=1.0, rate=0.1, seconds=2.5),  # of two rows
    ]
    assert epochs.epoch_of(SETTINGS, steps, 0.5, 0.75) == Epoch(
        epoch=2,
        step=6,
        train_loss=(4 * 1 + 4 * 2 + 2 * 8) / 10,
        train_accuracy=(1 + 2 + 2) / 10,
        test_loss=0.5,
        test_accuracy=0.75,
        seconds=5.0,
        images_per_second=2.0,
    )


def test_traced_steps_count_in_the_time_and_not_in_the_rate():
    steps = [
        TimedStep(step=1, loss=1.0, accuracy=0.0, rate=0.1, seconds=1.0),
        TimedStep(step=2, loss=1.0, accuracy=0.0, rate=0.1, seconds=7.0, traced=True),
        TimedStep(step=3, loss=1.0, accuracy=0.0, rate=0.1, seconds=0.5),  # of two rows
    ]
    epoch = epochs.epoch_of(SETTINGS, steps, 0.5, 0.75)
    assert (epoch.seconds, epoch.images_per_second) == (8.5, 6 / 1.5)


def test_an_epoch_of_traced_steps_alone_has_their_rate():
    steps = [TimedStep(n, 1.0, 0.0, 0.1, seconds=1.0, traced=True) for n in (1, 2, 3)]
    assert epochs.epoch_of(SETTINGS, steps, 0.5, 0.75).images_per_second == pytest.approx(10 / 3)


def test_the_mean_of_an_epoch_whose_first_steps_were_lost_is_that_of_the_others():
    steps = [
        TimedStep(step=5, loss=2.0, accuracy=0.5, rate=0.1, seconds=1.0),
        TimedStep(step=6, loss=8.0, accuracy=1.0, rate=0.1, seconds=1.0),  # of two rows
    ]
    epoch = epochs.epoch_of(SETTINGS, steps, 0.5, 0.75)
    assert (epoch.train_loss, epoch.images_per_second) == ((4 * 2 + 2 * 8) / 6, 3.0)
