"""Data sets: what a batch holds, and how images are framed."""

import itertools

import numpy as np

from tests.approval import approve, refused
from tflab.datasets import Dataset, batches, centred


def rows(count: int) -> Dataset:
    return Dataset("rows", "train", {"x": np.arange(count), "y": np.arange(count) * 10})


def first_batches(count: int, *args) -> list[list[int]]:
    return [b["x"].tolist() for b in itertools.islice(batches(*args), count)]


def test_batches_run_on_into_the_next_epoch():
    assert first_batches(2, rows(3), 3) == [[0, 1, 2], [0, 1, 2]]
    assert first_batches(4, rows(5), 3) == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]
    assert all((b["y"] == b["x"] * 10).all() for b in itertools.islice(batches(rows(5), 3), 4))


def test_what_cannot_be_cut_or_put_together_is_refused():
    said = [refused(batches, rows(5), size) for size in (6, 0, -1)]
    said.append(refused(Dataset, "odd", "train", {"x": np.zeros(2), "y": np.zeros(3)}))
    approve("data-refused.txt", "\n".join(said))


def test_images_are_centred_in_a_black_frame():
    images = centred(np.array([[[0, 4], [8, 16]]], np.uint8), brightest=16, side=4)
    assert images.dtype == np.float32
    assert images[0, :, :, 0].tolist() == [
        [0, 0, 0, 0],
        [0, 0, 0.25, 0],
        [0, 0.5, 1, 0],
        [0, 0, 0, 0],
    ]


def test_a_row_is_an_image_by_its_name():
    columns = ({"labels": np.zeros(2), name: np.zeros((2, 6))} for name in ("images", "x"))
    assert [Dataset("some", "train", own).unit for own in columns] == ["image", "row"]
