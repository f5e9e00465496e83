"""An epoch of LeNet: tflab's training compared with Keras' `fit`, and the accuracy of the recipe.

    python -m benchmarks.epochs

Both train on the same images in the same process, with the same batch size and optimiser, and count
correct predictions meanwhile. The time of tflab includes its files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import report, turns
from tflab.records.blocks import Block, Column, Table

SEEDS = (1, 2, 3)
MOMENTUM, RATE = 0.9, 0.05  # of Keras' optimiser; the rate does not change what a step costs
PUBLISHED = 0.9905  # accuracy on the test set in the paper


@dataclass(frozen=True)
class Race:
    data: str
    images: int
    batch_size: int
    keras: str  # its version
    epochs: int  # of the recipe
    times: dict[str, list[float]]  # seconds an epoch, round by round
    right: dict[int, float]  # seed -> share of the test images, at the end of the recipe


def measure(quick: bool) -> Race:
    import keras

    rounds = 1 if quick else 7
    trainer = prepare(quick, SEEDS[0])
    with (
        TemporaryDirectory(prefix="tflab-") as folder,
        closing(begin(trainer, Path(folder), rounds + 1)) as ours,
    ):
        works = {
            "tflab": partial(seconds_of_epoch, ours),
            "Keras fit": partial(turns.seconds, fit(trainer)),
        }
        turns.take(works, 1)  # kernels choose their algorithms, and Keras traces its step
        times = turns.take(works, rounds)
    data = trainer.program.dataset("train")
    return Race(
        data=data.name,
        images=data.size,
        batch_size=trainer.recipe.batch_size,
        keras=keras.__version__,
        epochs=epochs(trainer, quick),
        times=times,
        right={seed: accuracy_of_recipe(quick, seed) for seed in SEEDS},
    )


def prepare(quick: bool, seed: int) -> Any:
    """LeNet, ready for training; with `quick`, on a few images."""
    from tflab import models
    from tflab.train import trainer as trainers

    def few() -> Any:
        model = models.find("lenet")()
        return replace(model, data=lambda *args: first_rows(model.data(*args), 300))

    return trainers.prepare("lenet", few if quick else models.find("lenet"), seed)


def first_rows(dataset: Any, rows: int) -> Any:
    columns = {name: column[:rows] for name, column in dataset.columns.items()}
    return replace(dataset, columns=columns)


def epochs(trainer: Any, quick: bool) -> int:
    return 1 if quick else trainer.recipe.epochs


def begin(trainer: Any, folder: Path, count: int) -> Generator[Any, None, None]:
    """A training of this number of epochs, before its first."""
    from tflab.train.trainer import train

    return train(trainer, trainer.settings(count), folder)


def seconds_of_epoch(records: Iterator[Any]) -> float:
    """Seconds of the next epoch, without its test."""
    from tflab.records.measured import Epoch

    return next(record.seconds for record in records if isinstance(record, Epoch))


def fit(trainer: Any) -> Any:
    """An epoch of the same network in Keras."""
    import keras
    from keras import layers

    network = keras.Sequential(
        [
            layers.Input((32, 32, 1)),
            layers.Conv2D(6, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(10),
        ]
    )
    network.compile(
        optimizer=keras.optimizers.SGD(RATE, momentum=MOMENTUM, nesterov=True),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    columns = trainer.program.dataset("train").columns
    images, labels = columns["images"], columns["labels"]
    return partial(
        network.fit, images, labels, batch_size=trainer.recipe.batch_size, epochs=1, verbose=0
    )


def accuracy_of_recipe(quick: bool, seed: int) -> float:
    """The accuracy on the test set at the end of the recipe."""
    trainer = prepare(quick, seed)
    with TemporaryDirectory(prefix="tflab-") as folder:
        *_, last = begin(trainer, Path(folder), epochs(trainer, quick))
    return last.test_accuracy


def blocks(race: Race) -> Iterator[Block]:
    fits = race.times["Keras fit"]
    yield Table(
        f"An epoch of LeNet, {race.images:,} images of {race.data} in batches of "
        f"{race.batch_size}: tflab and Keras {race.keras}",
        (
            Column("", lambda row: row[0]),
            Column("time", lambda row: turns.duration(row[1]), right=True),
            Column(
                "images a second", lambda row: f"{race.images / median(row[1]):,.0f}", right=True
            ),
        ),
        tuple(race.times.items()),
    )
    yield (
        f"Keras' fit takes {turns.ratio(fits, race.times['tflab'])} times as long as tflab. "
        "Target: at least 1.3."
    )
    yield Table(
        f"LeNet on {race.data} after {race.epochs} epochs of its recipe "
        f"(asked for: {100 * PUBLISHED:.2f} %, as published)",
        (
            Column("seed", lambda row: str(row[0]), right=True),
            Column("right", lambda row: f"{100 * row[1]:.2f} %", right=True),
        ),
        tuple(race.right.items()),
    )


if __name__ == "__main__":
    report.show("epochs")
