"""A training on tiny data: a dense layer on images of noise, of which a pixel tells the label; and
the same training in NumPy."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.datasets import Dataset
from tflab.records.measured import Epoch, Settings, TrainingStep
from tflab.records.options import Model, Options, Recipe
from tflab.train import checkpoints, trainer

ROWS = {"train": 70, "test": 30}  # 70 rows in batches of 16: four, and one of 6
CLASSES = 5
MOMENTUM = 0.9
SETTINGS = Settings("small", "noise", 70, 30, 16, epochs=3, seed=1)
STEPS = 15


def data(split, data_dir):
    rng = np.random.default_rng(len(split))
    labels = rng.integers(0, CLASSES, ROWS[split]).astype(np.int32)
    images = rng.normal(size=(ROWS[split], 8, 8, 1)).astype(np.float32)
    images[:, 0, 0, 0] += labels
    return Dataset("noise", split, {"images": images, "labels": labels})


def rate(step, epoch_steps, steps):
    return 0.02 * (1 - step / steps) + 0.01 * (step // epoch_steps)


def build() -> Model:
    images = tf1.placeholder(tf.float32, [None, 8, 8, 1], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    weights = tf1.get_variable("weights", [64, CLASSES], use_resource=True)
    logits = tf.matmul(tf.reshape(images, [-1, 64]), weights)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return Model(
        output=logits,
        feeds={images: "images", labels: "labels"},
        data=data,
        loss=tf.reduce_mean(losses),
        recipe=Recipe(3, 16, lambda rate: tf1.train.MomentumOptimizer(rate, MOMENTUM), rate),
    )


def with_rate(function):
    """The same by plain gradient descent at another rate."""

    def other() -> Model:
        model = build()
        recipe = replace(model.recipe, optimizer=tf1.train.GradientDescentOptimizer, rate=function)
        return replace(model, recipe=recipe)

    return other


def trained(folder: Path, function=build, epochs=3):
    """All that a training yields, from where it stands in this folder."""
    ready = trainer.prepare("small", function, Options())
    settings = ready.settings(epochs)
    return trainer.train(ready, settings, folder, checkpoints.newest(folder))


def saved(folder: Path, step: int) -> dict[str, np.ndarray]:
    """The variables in a checkpoint."""
    reader = tf.train.load_checkpoint(str(folder / "checkpoints" / f"step-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def steps_in(folder: Path) -> list[int]:
    """The steps of the checkpoints, the oldest first."""
    return sorted(int(p.stem.partition("-")[2]) for p in folder.glob("checkpoints/step-*.index"))


def untimed(records: list) -> list:
    """The records without times."""
    times = {"seconds", "images_per_second"}
    return [replace(record, **dict.fromkeys(times & {*asdict(record)}, 0)) for record in records]


# The same in NumPy


def first_weights() -> np.ndarray:
    ready = trainer.prepare("small", build, Options())
    with tf1.Session(graph=ready.program.graph) as session:
        session.run(ready.weights[0].initializer)
        return session.run(ready.weights)[0].astype(np.float64)


def judged(weights, images, labels) -> tuple[float, float, np.ndarray]:
    """Mean loss, share of right answers, and the gradient of the loss."""
    logits = images @ weights
    odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    wanted = np.eye(CLASSES)[labels]
    loss = -np.log((odds * wanted).sum(axis=1)).mean()
    return loss, (logits.argmax(axis=1) == labels).mean(), images.T @ (odds - wanted) / len(labels)


def in_numpy() -> tuple[list, np.ndarray]:
    """What a training of three epochs yields, without times, and its last weights."""
    weights, velocity, records = first_weights(), 0.0, []
    columns = {split: list(data(split, None).columns.values()) for split in ROWS}
    flat = {split: images.reshape(-1, 64) for split, (images, _) in columns.items()}
    for epoch in range(3):
        shuffled = np.random.default_rng((1, epoch)).permutation(70)
        batches = [shuffled[start : start + 16] for start in range(0, 70, 16)]
        losses, rights = [], []
        for rows in batches:
            step = sum(isinstance(record, TrainingStep) for record in records)
            loss, right, gradient = judged(weights, flat["train"][rows], columns["train"][1][rows])
            velocity = MOMENTUM * velocity + gradient
            weights = weights - rate(step, 5, 15) * velocity
            records.append(TrainingStep(step + 1, loss, right, rate(step, 5, 15), 0))
            losses.append(loss * len(rows))
            rights.append(right * len(rows))
        of_test = judged(weights, flat["test"], columns["test"][1])[:2]
        means = sum(losses) / 70, sum(rights) / 70
        records.append(Epoch(epoch + 1, 5 * epoch + 5, *means, *of_test, 0, 0))
    return records, weights
