"""The stand-in for CIFAR-10: the same in every run, ten classes, told apart by direction alone."""

import numpy as np
import pytest

from tflab.datasets import files, synthetic

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_the_images_have_the_shape_of_cifar10_and_say_once_what_they_are(capsys):
    files.announce.cache_clear()
    train, test = synthetic.load("train"), synthetic.load("test")
    for dataset, split, rows in ((train, "train", 5_000), (test, "test", 10_000)):
        images, labels = dataset.columns["images"], dataset.columns["labels"]
        assert (dataset.name, dataset.split) == ("made-up stripes, not CIFAR-10", split)
        assert dataset.stands_in_for == "CIFAR-10"
        assert (images.shape, images.dtype) == ((rows, 32, 32, 3), np.float32)
        assert (images.min(), images.max()) == (0, 1)
        assert (labels.shape, labels.dtype) == ((rows,), np.int32)
        assert set(labels) == set(range(10))
    assert capsys.readouterr().err == "Using made-up stripes of CIFAR-10's shape, not CIFAR-10.\n"
    assert np.array_equal(train.columns["images"], synthetic.load("train").columns["images"])
    assert not np.array_equal(train.columns["labels"][:100], test.columns["labels"][:100])
    assert not np.array_equal(train.columns["images"][:100], test.columns["images"][:100])


def test_the_class_is_the_direction_in_which_the_colour_changes():
    columns = synthetic.load("train").columns
    grey = columns["images"][:500].mean(axis=3)
    along_rows, along_columns = np.gradient(grey, axis=(1, 2))
    # The direction of a structure tensor: gradients to either side count as one (Bigun 1987).
    xy = (along_columns * along_rows).mean(axis=(1, 2))
    xx, yy = (np.square(g).mean(axis=(1, 2)) for g in (along_columns, along_rows))
    degrees = np.rad2deg(np.arctan2(2 * xy, xx - yy) / 2)
    off = (degrees - 18 * columns["labels"][:500] + 90) % 180 - 90
    assert np.median(np.abs(off)) < 5  # by chance 45, and noise costs 2
