"""MNIST: what comes out of its files, where they are looked for, and what stands in for them."""

import gzip
import itertools
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.approval import approve, refused
from tests.datasets.publication import (
    ARRAYS,
    GZIPPED,
    IDX,
    LABELS,
    PIXELS,
    PUBLICATION,
    TRAIN,
    isolate,
    served,
    write_all,
)
from tflab.datasets import Dataset, mnist
from tflab.errors import TflabError, UsageError

pytestmark = pytest.mark.slow

REAL_FILES = os.environ.get("TFLAB_DATA_DIR")  # before `isolate` takes it away


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    isolate(tmp_path, monkeypatch)


@pytest.fixture
def small(monkeypatch):
    """The small publication takes the place of MNIST."""
    monkeypatch.setattr(mnist, "PUBLISHED", PUBLICATION)


@pytest.fixture
def mirrors(small, tmp_path, monkeypatch):
    """The folders of two mirrors on this machine, which have all files."""
    folders = [write_all(tmp_path / "mirror1"), write_all(tmp_path / "mirror2")]
    with served(folders[0]) as first, served(folders[1]) as second:
        monkeypatch.setattr(mnist, "MIRRORS", (first, second))
        monkeypatch.delenv("TFLAB_OFFLINE")
        yield folders


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache/tflab/mnist").rglob("*"))


# Whole files


def assert_is_small_mnist(dataset: Dataset, split: str, side: int = 32) -> None:
    which = slice(0, 5) if split == "train" else slice(5, 8)
    margin = (side - 28) // 2
    frame = ((0, 0), (margin, margin), (margin, margin))
    expected = np.pad(PIXELS[which], frame)[..., None] / np.float32(255)
    assert (dataset.name, dataset.split, dataset.stands_in_for) == ("MNIST", split, None)
    assert dataset.size == len(expected)
    assert {name: column.dtype for name, column in dataset.columns.items()} == {
        "images": np.float32,
        "labels": np.int32,
    }
    assert np.array_equal(dataset.columns["images"], expected)
    assert np.array_equal(dataset.columns["labels"], LABELS[which])


def test_mnist_comes_padded_and_scaled_from_files_that_are_told_by_content(small, tmp_path):
    folder = write_all(tmp_path / "data")
    for split, side in itertools.product(("train", "test"), (28, 32)):
        assert_is_small_mnist(mnist.load(split, folder, side), split, side)
    (tmp_path / TRAIN[0]).write_bytes(GZIPPED[TRAIN[0]])
    (tmp_path / f"{TRAIN[1]}.gz").write_bytes(IDX[TRAIN[1]])
    assert_is_small_mnist(mnist.load("train", tmp_path), "train")


IMAGES = IDX["t10k-images-idx3-ubyte"]
ZIPPED = GZIPPED["t10k-images-idx3-ubyte"]
DAMAGES = (
    *(b"", IDX["t10k-labels-idx1-ubyte"], IMAGES[:-1], IMAGES + b"\n"),
    *(IMAGES[:-1] + bytes([IMAGES[-1] ^ 1]), ZIPPED[:-20]),
)


def test_what_is_not_the_published_data_is_refused(small, tmp_path, monkeypatch):
    said = [refused(mnist.load, "valid")]
    folder = write_all(tmp_path / "data")
    for content in DAMAGES:
        (folder / "t10k-images-idx3-ubyte.gz").write_bytes(content)
        said.append(refused(mnist.load, "test", folder))
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(ZIPPED[:-8] + bytes(8))
    assert "is a truncated or damaged gzip file (CRC check " in refused(mnist.load, "test", folder)
    (folder / TRAIN[0]).mkdir()
    assert mnist.load("train", folder).size == 5  # the file lies beside it
    (folder / f"{TRAIN[1]}.gz").unlink()
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(ZIPPED)
    assert mnist.load("test", folder).size == 3  # files of the other split may be missing
    said += [refused(mnist.load, "train", folder), refused(mnist.load, "train", tmp_path / "no")]
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path / "no"))
    said.append(refused(mnist.load, "train"))
    approve("mnist-refused.txt", "\n".join(said).replace(str(tmp_path), "FOLDER"))


def test_a_gzip_bomb_is_read_no_further_than_the_file_may_be_long(small, tmp_path):
    folder = write_all(tmp_path / "data")
    bomb = folder / f"{TRAIN[0]}.gz"
    bomb.write_bytes(gzip.compress(IDX[TRAIN[0]] + bytes(50_000_000), compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(TflabError, match=r"gz is not the published file"):
            mnist.load("train", folder)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.mnist
@pytest.mark.parametrize(
    "split, counts, mean",
    [
        ("train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], 0.1307),
        ("test", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], 0.1325),
    ],
)
def test_the_real_files_are_the_published_ones(split, counts, mean):
    dataset = mnist.load(split, REAL_FILES, side=28)
    assert np.bincount(dataset.columns["labels"]).tolist() == counts
    assert dataset.columns["images"].shape == (sum(counts), 28, 28, 1)
    assert round(float(dataset.columns["images"].mean(dtype=np.float64)), 4) == mean


def test_the_argument_comes_before_the_variable_and_both_before_the_cache(
    small, tmp_path, monkeypatch
):
    data = write_all(tmp_path / "data")
    empty = tmp_path / "empty"
    empty.mkdir()
    write_all(tmp_path / "cache/tflab/mnist")
    assert_is_small_mnist(mnist.load("train"), "train")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(empty))
    with pytest.raises(UsageError, match=f"^{empty} lacks"):
        mnist.load("train")
    assert_is_small_mnist(mnist.load("train", data), "train")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(data))
    assert_is_small_mnist(mnist.load("train"), "train")
    with pytest.raises(TflabError, match=f"^{empty} lacks"):
        mnist.load("train", empty)


# The stand-in

NOT_MNIST = (
    "Using the digits of scikit-learn, not MNIST; "
    "set TFLAB_DATA_DIR to a folder with its four files."
)


def test_offline_the_digits_stand_in_and_one_line_says_so(tmp_path, capsys):
    train, test = mnist.load("train"), mnist.load("test")
    assert [(d.name, d.split, d.size, d.stands_in_for) for d in (train, test)] == [
        ("digits, not MNIST", "train", 1500, "MNIST"),
        ("digits, not MNIST", "test", 297, "MNIST"),
    ]
    assert capsys.readouterr() == (
        "",
        f"{NOT_MNIST} {tmp_path}/cache/tflab/mnist lacks train-images-idx3-ubyte, "
        "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (tflab looked "
        "for each name as it is and with .gz). TFLAB_OFFLINE forbids downloads.\n",
    )


@pytest.mark.parametrize("side", [28, 32])
def test_the_digits_are_enlarged_threefold_in_a_black_frame(side):
    from sklearn.datasets import load_digits

    dataset = mnist.stand_in("test", side)
    images, labels = dataset.columns["images"], dataset.columns["labels"]
    margin = (side - 24) // 2
    inside = images[:, margin:-margin, margin:-margin, 0]
    assert (images.dtype, labels.dtype) == (np.float32, np.int32)
    assert images.shape == (297, side, side, 1)
    assert np.array_equal(inside[:, 1::3, 1::3] * 16, load_digits().images[1500:])
    assert np.array_equal(inside, inside[:, 1::3, 1::3].repeat(3, 1).repeat(3, 2))
    assert images.sum() == inside.sum()
    assert np.array_equal(labels, load_digits().target[1500:])


def half(folder):
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    return (
        f"{folder} lacks t10k-labels-idx1-ubyte (tflab looked for each name as it is and with .gz)."
    )


def damaged(folder):
    path = folder / f"{TRAIN[0]}.gz"
    path.write_bytes(b"")
    return f"{path} is not the published file: its SHA-256 differs. Download it again."


@pytest.mark.parametrize("spoil", [half, damaged])
def test_a_cache_that_cannot_be_mended_is_told_and_not_mixed_with_the_stand_in(
    spoil, small, tmp_path, capsys
):
    why = spoil(write_all(tmp_path / "cache/tflab/mnist"))
    assert mnist.load("train").stands_in_for == "MNIST"
    said = f"{NOT_MNIST} {why} TFLAB_OFFLINE forbids downloads.\n"
    assert capsys.readouterr().err == said


# The download


def test_a_download_fills_the_cache_and_serves_later_runs(mirrors, tmp_path, monkeypatch):
    assert_is_small_mnist(mnist.load("train"), "train")
    assert cached_files(tmp_path) == sorted(f"{name}.gz" for name in ARRAYS)
    monkeypatch.setenv("TFLAB_OFFLINE", "1")
    assert_is_small_mnist(mnist.load("test"), "test")


def test_a_damaged_file_in_the_cache_is_fetched_anew(mirrors, tmp_path):
    folder = write_all(tmp_path / "cache/tflab/mnist")
    (folder / f"{TRAIN[1]}.gz").write_bytes(b"damaged")
    (mirrors[0] / f"{TRAIN[0]}.gz").unlink()
    (mirrors[1] / f"{TRAIN[0]}.gz").unlink()  # not missed: that one is whole in the cache
    assert_is_small_mnist(mnist.load("train"), "train")
    assert (folder / f"{TRAIN[1]}.gz").read_bytes() == GZIPPED[TRAIN[1]]


def test_a_download_that_failed_is_not_tried_again(mirrors, capsys):
    for mirror in mirrors:
        (mirror / f"{TRAIN[0]}.gz").unlink()
    assert mnist.load("train").size == 1500
    for mirror in mirrors:
        (mirror / f"{TRAIN[0]}.gz").write_bytes(GZIPPED[TRAIN[0]])
    assert [mnist.load(split).size for split in ("test", "train")] == [297, 1500]
    missing = f"{TRAIN[0]}.gz failed: HTTP Error 404: File not found."
    assert capsys.readouterr().err == (
        f"{NOT_MNIST} {mnist.MIRRORS[0]}{missing} {mnist.MIRRORS[1]}{missing}\n"
    )
