"""CIFAR-10: 60,000 small colour photographs of ten kinds of things, in six files.

The binary version of Krizhevsky (2009), www.cs.toronto.edu/~kriz/cifar.html: a record is a label
and 3,072 bytes, all red ones, all green ones, all blue ones, each row by row. (The version for
Python is pickled, and a pickle can run any code.) The files, or the archive that they come in, are
looked for in the folder that was given, then in the cache, and then downloaded. Without them
made-up images are used, and a line on stderr says so.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from tflab import untrusted
from tflab.datasets import Dataset, files
from tflab.errors import TflabError, UsageError, reason

ADDRESS = "https://www.cs.toronto.edu/~kriz/"
ARCHIVE = "cifar-10-binary.tar.gz"
ARCHIVE_BYTES = 170_052_171
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
FOLDER = "cifar-10-batches-bin"  # in the archive, and where a user has unpacked it
# Of the version for Python: archive, folder and two of its files
PICKLED = ("cifar-10-python.tar.gz", "cifar-10-batches-py", "data_batch_1", "test_batch")
NOT_OPENED = (
    " The pickled version for Python is there, but tflab never opens it, because a pickle can run "
    f"any code. Use the binary version, {ARCHIVE}."
)
BATCHES = {  # file -> its MD5, for each split
    "train": {
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    },
    "test": {"test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d"},
}
RECORD_BYTES = 1 + 3 * 32 * 32
BATCH_BYTES = 10_000 * RECORD_BYTES
WANTED = f"{ARCHIVE} or the six files in it"


def load(split: str, data_dir: str | Path | None = None) -> Dataset:
    """Columns `images`, float32 [n, 32, 32, 3] of 0..1, and `labels`, int32 [n]."""
    if split not in BATCHES:
        raise TflabError(f"No split named {split!r}; choose from {', '.join(BATCHES)}.")
    folder = files.given_folder(data_dir, WANTED)
    # TFLAB_DATA_DIR may be set for MNIST only, but a folder given as argument is for this data set.
    if folder and (data_dir or holds_any(folder)):
        contents = read_split(folder, split)
    else:
        try:
            contents = read_cached(split)
        except TflabError as reason:
            files.announce(
                "stripes",
                "Using made-up images, not CIFAR-10; "
                f"set TFLAB_DATA_DIR to a folder with {WANTED}. {reason}",
            )
            return stand_in(split)
    return Dataset("CIFAR-10", split, columns(contents))


def columns(contents: list[bytes]) -> dict[str, np.ndarray]:
    records = [np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES) for content in contents]
    images: np.ndarray = np.empty((sum(map(len, records)), 32, 32, 3), np.float32)
    start = 0
    for part in records:  # one file at a time, because float32 needs four times the memory
        pixels = part[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        np.divide(pixels, 255, out=images[start : start + len(part)], dtype=np.float32)
        start += len(part)
    labels = np.concatenate([part[:, 0] for part in records]).astype(np.int32)
    return {"images": images, "labels": labels}


# Where the files are


def every_file() -> list[str]:
    return [name for batches in BATCHES.values() for name in batches]


def places(folder: Path) -> tuple[Path, Path]:
    return folder, folder / FOLDER


def holds_any(folder: Path) -> bool:
    paths = (files.locate(place, name) for place in places(folder) for name in every_file())
    return (folder / ARCHIVE).exists() or any(paths)


def read_split(folder: Path, split: str) -> list[bytes]:
    """The content of each file of a split, from the first place that has all of them."""
    for place in places(folder):
        if all(files.locate(place, name) for name in BATCHES[split]):
            paths = files.require(place, BATCHES[split])
            return [
                verified(files.read(path, BATCH_BYTES + 1), name, str(path))
                for path, name in zip(paths, BATCHES[split], strict=True)
            ]
    if (folder / ARCHIVE).exists():
        return from_archive(folder / ARCHIVE, BATCHES[split])
    raise UsageError(
        f"{folder} lacks {', '.join(n for n in BATCHES[split] if not files.locate(folder, n))} "
        f"(tflab looked for each name as it is, with .gz, in {FOLDER} and in "
        f"{ARCHIVE}).{NOT_OPENED if holds_pickles(folder) else ''}"
    )


def holds_pickles(folder: Path) -> bool:
    """Whether the folder has the version for Python, packed or unpacked."""
    names = (*PICKLED, *(f"{PICKLED[1]}/{name}" for name in PICKLED[2:]))
    return any((folder / name).exists() for name in names)


def read_cached(split: str) -> list[bytes]:
    def read(folder: Path) -> list[bytes]:
        if (folder / ARCHIVE).exists():
            return from_archive(folder / ARCHIVE, BATCHES[split])
        # All six are required, or else training could use CIFAR-10 and the test made-up images.
        files.require(folder, every_file())
        return read_split(folder, split)

    return files.cached(files.cache_folder("cifar10"), read, fill)


# Whether they are right


def verified(content: bytes, name: str, called: str) -> bytes:
    """The content of a file if it is exactly the published one. `called` names it in errors."""
    if complaint := diagnose(content, name):
        raise TflabError(f"{called} {complaint}.")
    return content


def diagnose(content: bytes, name: str) -> str | None:
    """What is wrong with the content of a file and what it should be, or None."""
    right = f"{BATCH_BYTES // RECORD_BYTES} images belong in a file of this name"
    if files.is_web_page(content):
        return f"is a web page saved under this name; {right}"
    if len(content) < BATCH_BYTES:
        return f"ends after {len(content)} of {BATCH_BYTES} bytes; download it again"
    if len(content) > BATCH_BYTES:
        return f"has more than {BATCH_BYTES} bytes; {right}"
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    published = {md5: file for batches in BATCHES.values() for file, md5 in batches.items()}
    if digest not in published:
        return "differs from the published file (its MD5 differs); download it again"
    if published[digest] != name:
        return f"seems to be swapped with another file: it is {published[digest]}"
    return None


# The archive


def from_archive(path: Path, names: Collection[str]) -> list[bytes]:
    """The content of these files of the archive.

    Nothing is written to disk, and an archive that is not the published one is not unpacked.
    """
    name_of_member = {f"{FOLDER}/{name}": name for name in names}
    contents = {}
    try:
        if complaint := diagnose_archive(path):
            raise TflabError(f"{path} {complaint}.")
        with (
            untrusted.opened(path) as file,
            # A stream, because seeking back is slow
            tarfile.open(fileobj=file, mode="r|gz") as archive,
        ):
            for member in archive:
                if member.name in name_of_member and (part := archive.extractfile(member)):
                    contents[name_of_member[member.name]] = part.read(BATCH_BYTES + 1)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise TflabError(
            f"{path} cannot be unpacked: {reason(error)}; download it again."
        ) from error
    if missing := [name for name in names if name not in contents]:
        raise TflabError(f"{path} lacks {', '.join(missing)}; download it again.")
    return [verified(contents[name], name, f"{path}: {name}") for name in names]


def diagnose_archive(path: Path) -> str | None:
    digest, size = hashlib.sha256(), 0
    with untrusted.opened(path) as file:
        beginning = file.peek(64)
        while chunk := file.read(files.CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    if files.is_web_page(beginning):
        return "is a web page saved under this name; download it again"
    if size != ARCHIVE_BYTES:
        return f"has {size} bytes instead of {ARCHIVE_BYTES}; download it again"
    if digest.hexdigest() != ARCHIVE_SHA256:
        return "differs from the published archive (its SHA-256 differs); download it again"
    return None


def fill(folder: Path) -> None:
    files.fetch(folder, ARCHIVE, ARCHIVE_SHA256, [ADDRESS])


# The stand-in for CIFAR-10: made-up images of coloured stripes, ten classes by their direction.
#
# To distinguish them a network has to find edges between any two colours, at any place and of any
# width. The accuracy says nothing about CIFAR-10. With these images every command runs without an
# internet connection.


SIDE = 32
CLASSES = 10  # 18 degrees apart
STAND_IN_ROWS = {"train": 5_000, "test": 10_000}
CYCLES = (2.0, 5.0)  # periods across an image: stripes of 3 to 8 pixels
NOISE = 0.1  # standard deviation, in a range of 0..1


def stand_in(split: str) -> Dataset:
    """Images in the columns and shapes of `cifar10.load`; the same in every run."""
    if split not in STAND_IN_ROWS:
        raise TflabError(f"No split named {split!r}; choose from {', '.join(STAND_IN_ROWS)}.")
    rng = np.random.default_rng(sorted(STAND_IN_ROWS).index(split))
    count = STAND_IN_ROWS[split]
    labels = rng.integers(0, CLASSES, count)
    directions = labels * (np.pi / CLASSES)
    across = 2 * np.pi * rng.uniform(*CYCLES, count)
    phases = rng.uniform(0, 2 * np.pi, (count, 1))
    along = (across * np.cos(directions), across * np.sin(directions))  # a column, a row
    row, column = np.mgrid[:SIDE, :SIDE].reshape(2, SIDE * SIDE).astype(np.float32) / SIDE
    angles = np.outer(along[0], column) + np.outer(along[1], row) + phases
    share = (1 + np.sin(angles.astype(np.float32))[..., None]) / 2  # of one colour
    first, second = rng.uniform(0, 1, (2, count, 1, 3)).astype(np.float32)
    images = second + share * (first - second)
    images += NOISE * rng.standard_normal(images.shape, np.float32)
    np.clip(images, 0, 1, out=images)
    return Dataset(
        name="made-up stripes, not CIFAR-10",
        split=split,
        columns={
            "images": images.reshape(count, SIDE, SIDE, 3),
            "labels": labels.astype(np.int32),
        },
        stands_in_for="CIFAR-10",
    )
