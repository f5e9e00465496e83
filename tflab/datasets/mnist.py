"""MNIST: 70,000 handwritten digits of 28x28 pixels, in four files.

The files come from the folder that was given, else from the cache, else from a mirror. They are
used only if they are, byte for byte, the published ones. Without them the digits of scikit-learn
are used, with a line on stderr.

A file has the IDX format: a header of a magic number and the length of each axis, 32 bits each,
then the bytes. yann.lecun.com/exdb/mnist, where MNIST was first published, describes it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import math
import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from tflab.cli import environment
from tflab.datasets import Dataset, centred, files
from tflab.errors import TflabError


@dataclass(frozen=True)
class Published:
    """One of the files as it was published."""

    name: str
    shape: tuple[int, ...]
    sha256: str  # of the content


def read(path: Path, published: Published) -> np.ndarray:
    """Return the array in a file if it is exactly the published one."""
    header_bytes = 4 * (1 + len(published.shape))
    content = files.read(path, header_bytes + math.prod(published.shape) + 1)
    if hashlib.sha256(content).hexdigest() != published.sha256:
        raise TflabError(
            f"{path} is not the published file: its SHA-256 differs. Download it again."
        )
    return np.frombuffer(content, np.uint8, offset=header_bytes).reshape(published.shape)


SET = "set TFLAB_DATA_DIR to a folder with its four files"
MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
PUBLISHED = {
    "train": (
        Published(
            "train-images-idx3-ubyte",
            (60000, 28, 28),
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        Published(
            "train-labels-idx1-ubyte",
            (60000,),
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        Published(
            "t10k-images-idx3-ubyte",
            (10000, 28, 28),
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        Published(
            "t10k-labels-idx1-ubyte",
            (10000,),
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}


def load(split: str, data_dir: str | Path | None = None, side: int = 32) -> Dataset:
    """Return columns `images`, float32 [n, side, side, 1] of 0..1, and `labels`, int32 [n]."""
    if split not in PUBLISHED:
        raise TflabError(f"No split named {split!r}; choose from {', '.join(PUBLISHED)}.")
    if folder := files.given_folder(data_dir, "the four files of MNIST"):
        images, labels = read_split(folder, split)
    else:
        try:
            images, labels = read_cached(split)
        except TflabError as reason:
            digits = stand_in(split, side)
            files.announce(f"Using the digits of scikit-learn, not MNIST; {SET}. {reason}")
            return digits
    columns = {"images": centred(images, 255, side), "labels": labels.astype(np.int32)}
    return Dataset("MNIST", split, columns)


def read_split(folder: Path, split: str) -> list[np.ndarray]:
    """Return images and labels of a split."""
    paths = files.require(folder, [file.name for file in PUBLISHED[split]])
    return [read(path, published) for path, published in zip(paths, PUBLISHED[split], strict=True)]


def read_cached(split: str) -> list[np.ndarray]:
    """Return images and labels from the cache, which is filled if it is not whole. All four files
    are required, or else training could use MNIST and the test the digits."""
    folder = files.cache_folder("mnist")
    try:
        files.require(folder, [file.name for file in chain(*PUBLISHED.values())])
        return read_split(folder, split)
    except TflabError as error:
        if os.environ.get("TFLAB_OFFLINE", "0") not in ("", "0"):
            raise TflabError(f"{error} TFLAB_OFFLINE forbids downloads.") from error
    if failure := fill(folder):
        raise TflabError(failure)
    return read_split(folder, split)


@functools.cache
def fill(folder: Path) -> str | None:
    """Download what the cache lacks, once per process. Return why that failed, or None."""

    def is_published(path: Path) -> bool:
        try:
            read(path, file)
        except TflabError:
            return False
        return True

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in chain(*PUBLISHED.values()):
            path = folder / f"{file.name}.gz"
            if not is_published(path):
                files.fetch(path, is_published, MIRRORS)
    except OSError as error:
        return f"The cache {folder} cannot be written: {error.strerror}."
    except TflabError as error:
        return str(error)
    return None


# The stand-in for MNIST: the 1,797 handwritten digits that come with scikit-learn, scanned at 8x8
# pixels. They are easier to learn, so the accuracy says nothing about MNIST.

BRIGHTEST = 16  # the largest value: a pixel counts the dark dots in a 4x4 square of the scan
ENLARGED = 3  # 8 x 3 = 24 pixels in MNIST's 28, which leaves a border as in MNIST
STAND_IN_ROWS = {  # in scikit-learn's order, which mixes the ten digits evenly
    "train": slice(0, 1500),
    "test": slice(1500, 1797),
}


def stand_in(split: str, side: int = 32) -> Dataset:
    """Return scikit-learn's digits of a split, in the columns and shapes of `mnist.load`."""
    environment.require(f"There is no MNIST ({SET}), and the stand-in", "sklearn")
    package = importlib.util.find_spec("sklearn")
    assert package and package.origin
    bundled = Path(package.origin).with_name("datasets") / "data" / "digits.csv.gz"
    if not bundled.is_file():  # as in scikit-learn 1.9
        raise TflabError(f"The digits of scikit-learn are not at '{bundled}'; {SET}.")
    # Not by `load_digits`, because scikit-learn takes seconds to import
    rows = np.loadtxt(bundled, np.uint8, delimiter=",")[STAND_IN_ROWS[split]]
    pixels = rows[:, :-1].reshape(-1, 8, 8)
    enlarged = pixels.repeat(ENLARGED, axis=1).repeat(ENLARGED, axis=2)
    images, labels = centred(enlarged, BRIGHTEST, side), rows[:, -1].astype(np.int32)
    return Dataset("digits, not MNIST", split, {"images": images, "labels": labels}, "MNIST")
