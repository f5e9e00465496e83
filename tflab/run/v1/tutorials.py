"""tensorflow.examples.tutorials.mnist.input_data: MNIST in batches, from tflab's data.

The interface and the order of the rows are those of
tensorflow/contrib/learn/python/learn/datasets/mnist.py, TensorFlow 1.15.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from tflab.datasets import files, mnist
from tflab.run.v1 import note

CLASSES, SIDE = 10, 28
BRIGHTEST = 255
MOST_BYTES = 2**30  # of a file of the program's own
HELD_BACK = 12  # one of this many images of the training set is for validation, as in MNIST
Arrays = tuple[np.ndarray, np.ndarray]
NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


class DataSet:
    """Images and labels; `next_batch` returns the next ones.

    float32 images are of 0..1, uint8 ones of 0..255; [n, 784], or without `reshape` [n, 28, 28, 1].
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = tf.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        of_graph, of_op = tf.get_seed(seed)
        np.random.seed(of_graph if seed is None else of_op)
        kind = tf.as_dtype(dtype).base_dtype
        if kind not in (tf.uint8, tf.float32):
            raise TypeError(f"Invalid image dtype {kind!r}, expected uint8 or float32")
        self.one_hot, self.fake = one_hot, fake_data
        if fake_data:
            images, labels = np.zeros([10_000, SIDE, SIDE, 1], np.uint8), np.zeros(10_000)
        if len(images) != len(labels):
            raise ValueError(f"{len(images)} images have {len(labels)} labels.")
        if reshape:
            images = images.reshape(len(images), -1)
        if kind == tf.float32:
            images = np.multiply(images.astype(np.float32), 1.0 / BRIGHTEST)
        self._images, self._labels = images, labels
        self._epochs_completed = self._index_in_epoch = 0

    @property
    def images(self) -> np.ndarray:
        return self._images

    @property
    def labels(self) -> np.ndarray:
        return self._labels

    @property
    def num_examples(self) -> int:
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """So many images and their labels. Where an epoch ends within a batch, its last rows and
        the first ones of the next are in it; each epoch has an order of its own."""
        if fake_data:
            label: Any = [1] + [0] * (CLASSES - 1) if self.one_hot else 0
            return [[1] * SIDE**2] * batch_size, [label] * batch_size
        start, end = self._index_in_epoch, self._index_in_epoch + batch_size
        if shuffle and start == self._epochs_completed == 0:
            self._shuffle()
        if end <= self.num_examples:
            self._index_in_epoch = end
            return self._images[start:end], self._labels[start:end]
        images, labels = self._images[start:], self._labels[start:]
        self._epochs_completed += 1
        if shuffle:
            self._shuffle()
        self._index_in_epoch = end - self.num_examples
        return (
            np.concatenate([images, self._images[: self._index_in_epoch]]),
            np.concatenate([labels, self._labels[: self._index_in_epoch]]),
        )

    def _shuffle(self) -> None:
        order = np.arange(self.num_examples)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


class Datasets(NamedTuple):
    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = tf.float32,
    reshape: bool = True,
    validation_size: int = 5_000,
    seed: int | None = None,
    source_url: str = "",
) -> Datasets:
    """The first `validation_size` images of the training set, the others, and the test set."""

    def made(arrays: Arrays) -> DataSet:
        images, labels = arrays
        given = dense_to_one_hot(labels, CLASSES) if one_hot else labels
        return DataSet(images, given, fake_data, one_hot, dtype=dtype, reshape=reshape, seed=seed)

    train, test = read("train", train_dir), read("test", train_dir)
    rows = len(train[0])
    if rows < mnist.PUBLISHED["train"][0].shape[0]:  # the digits are fewer
        validation_size = min(validation_size, rows // HELD_BACK)
    if not 0 <= validation_size <= rows:
        raise ValueError(f"Validation size should be between 0 and {rows}: {validation_size}.")
    first = train[0][:validation_size], train[1][:validation_size]
    others = train[0][validation_size:], train[1][validation_size:]
    return Datasets(train=made(others), validation=made(first), test=made(test))


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    return read_data_sets(train_dir)


def load_data(path: str = "mnist.npz") -> tuple[Arrays, Arrays]:
    """tf.keras.datasets.mnist.load_data: uint8 images [n, 28, 28] and labels [n], twice."""
    (images, labels), (test_images, test_labels) = (
        read(split, "", "keras.datasets.mnist") for split in ("train", "test")
    )
    return (images[..., 0], labels), (test_images[..., 0], test_labels)


def read(split: str, folder: str, name: str = "input_data") -> Arrays:
    """uint8 images [n, 28, 28, 1] and labels [n]: those of the program's folder, else tflab's."""
    kinds = [published.name for published in mnist.PUBLISHED[split]]
    paths = [files.locate(Path(folder), kind) for kind in kinds] if folder else []
    if paths and all(paths):
        note(name)
        images, labels = (unpacked(path) for path in paths if path)
        return images[..., np.newaxis], labels
    found = mnist.load(split, side=SIDE)
    note(name if not found.stands_in_for else f"{name} ({found.name})")
    images = np.rint(found.columns["images"] * BRIGHTEST).astype(np.uint8)  # type: ignore[operator]
    return images, found.columns["labels"].astype(np.uint8)  # type: ignore[union-attr]


def unpacked(path: Path) -> np.ndarray:
    """The numbers in a file of the program's own, which may be another data set's."""
    content = files.read(path, MOST_BYTES)
    axes = content[3] if content[:3] == b"\0\0\x08" else 0
    shape = struct.unpack_from(f">{axes}I", content, 4) if len(content) >= 4 + 4 * axes else ()
    if not axes or len(content) != 4 + 4 * axes + math.prod(shape):
        raise ValueError(f"{path} is not an IDX file of bytes; the files of MNIST are.")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """float64 [n, classes]: 1 at the label, else 0."""
    return np.eye(num_classes)[labels_dense]


__all__ = ["DataSet", "Datasets", "dense_to_one_hot", "load_data", "load_mnist", "read_data_sets"]


# tensorflow.examples.tutorials.mnist.mnist: the network of the tutorial "TensorFlow Mechanics"


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """The logits of images [n, 784]: two layers with relu, and a linear one."""
    flowing, rows = images, IMAGE_PIXELS
    for name, columns in (("hidden1", hidden1_units), ("hidden2", hidden2_units)):
        flowing, rows = tf.nn.relu(layer(flowing, rows, columns, name)), columns
    return layer(flowing, rows, NUM_CLASSES, "softmax_linear")


def layer(inputs: Any, rows: int, columns: int, name: str) -> Any:
    with tf.name_scope(name):
        first = tf.truncated_normal([rows, columns], stddev=1 / math.sqrt(rows))
        weights = tf.Variable(first, name="weights")
        biases = tf.Variable(tf.zeros([columns]), name="biases")
        return tf.matmul(inputs, weights) + biases


def loss(logits: Any, labels: Any) -> Any:
    labels = tf.cast(labels, tf.int64)
    return tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    tf.summary.scalar("loss", loss)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many of the labels are the largest logit."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
