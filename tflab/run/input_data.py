"""tensorflow.examples.tutorials.mnist.input_data: MNIST in batches, from tflab's data, as in
tensorflow/contrib/learn/python/learn/datasets/mnist.py, TensorFlow 1.15."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from tflab.datasets import files, mnist

CLASSES, SIDE = 10, 28
HELD_BACK = 12  # one of this many images of the training set is for validation, as in MNIST

notes: dict[str, None] = {}  # which data the program got, in order


class DataSet:
    """Images and labels; `next_batch` returns the next ones."""

    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels, self.num_examples = images, labels, len(images)
        self.epochs_completed = self.index_in_epoch = 0

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the next images and their labels. A batch may run on into the next epoch."""
        start, end = self.index_in_epoch, self.index_in_epoch + batch_size
        if shuffle and start == self.epochs_completed == 0:
            self.shuffle()
        images, labels = self.images[start:end], self.labels[start:end]
        if end > self.num_examples:
            end -= self.num_examples
            self.epochs_completed += 1
            if shuffle:
                self.shuffle()
            images = np.concatenate([images, self.images[:end]])
            labels = np.concatenate([labels, self.labels[:end]])
        self.index_in_epoch = end
        return images, labels

    def shuffle(self) -> None:
        order = np.arange(self.num_examples)
        np.random.shuffle(order)
        self.images, self.labels = self.images[order], self.labels[order]


Datasets = namedtuple("Datasets", ("train", "validation", "test"))


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: tf.DType = tf.float32,
    reshape: bool = True,
    validation_size: int = 5_000,
    seed: int | None = None,
    source_url: str = "",
) -> Datasets:
    """Return MNIST: from `train_dir` if its files are there, else from where tflab has it. Images
    are float32 of 0..1, [n, 784], or without `reshape` [n, 28, 28, 1]."""
    if fake_data:
        raise ValueError("fake_data is not supported; without it, read_data_sets reads MNIST.")
    if tf.as_dtype(dtype).base_dtype != tf.float32:
        raise TypeError(f"The dtype {dtype!r} is not supported; images are float32.")
    of_graph, of_op = tf.get_seed(seed)
    np.random.seed(of_graph if seed is None else of_op)

    def read(split: str) -> tuple[np.ndarray, np.ndarray]:
        names = [file.name for file in mnist.PUBLISHED[split]]
        own = train_dir and all(files.locate(Path(train_dir), name) for name in names)
        found = mnist.load(split, train_dir if own else None, side=SIDE)
        if found.stands_in_for:
            notes[f"input_data.read_data_sets returned {found.name}."] = None
        images, labels = (np.asarray(found.columns[name]) for name in ("images", "labels"))
        labels = np.eye(CLASSES)[labels] if one_hot else labels.astype(np.uint8)
        return images.reshape(len(images), -1) if reshape else images, labels

    (images, labels), test = read("train"), read("test")
    if len(images) < mnist.PUBLISHED["train"][0].shape[0]:  # the digits are fewer
        validation_size = min(validation_size, len(images) // HELD_BACK)
    return Datasets(
        DataSet(images[validation_size:], labels[validation_size:]),
        DataSet(images[:validation_size], labels[:validation_size]),
        DataSet(*test),
    )
