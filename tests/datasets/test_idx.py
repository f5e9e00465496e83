"""IDX: only the published files are read, and of any other it is said what is wrong with it."""

import gzip
import tracemalloc
import zlib
from pathlib import Path

import pytest

from tests.datasets.publication import (
    GZIPPED,
    IDX,
    PIXELS,
    PUBLICATION,
    TRAIN,
    idx,
    isolate,
    write_all,
)
from tflab import untrusted
from tflab.datasets import mnist
from tflab.errors import TflabError

IMAGES = IDX["t10k-images-idx3-ubyte"]
SIZE = len(IMAGES)
ZIPPED = GZIPPED["t10k-images-idx3-ubyte"]
BELONG = "3 images belong in a file of this name"
DIFFERS = (
    "differs from the published file (its SHA-256 differs). It is damaged, or belongs to another "
    "data set that uses these names, such as Fashion-MNIST. Download it again."
)
DAMAGES = {
    "empty": (b"", f"is empty; {BELONG}."),
    "empty gzip": (gzip.compress(b""), f"is empty; {BELONG}."),
    "web page": (
        b"\n<!DOCTYPE html><title>Sign in</title>",
        f"is a web page saved under this name, not an IDX file; {BELONG}.",
    ),
    "random bytes": (
        b"\x80\x04\x95\x10 pickled",
        "starts with the bytes 80 04 95 10 20 70 69 63 6b 6c 65 64 instead of 00 00 08 03 00 00 00 "
        f"03 00 00 00 1c 00 00 00 1c; {BELONG}.",
    ),
    "half a header": (IMAGES[:9], f"ends after 9 of {SIZE} bytes; download it again."),
    "labels": (
        IDX["t10k-labels-idx1-ubyte"],
        f"seems to be swapped with t10k-labels-idx1-ubyte: it has its header, but {BELONG}.",
    ),
    "training file": (
        IDX["train-images-idx3-ubyte"],
        f"seems to be swapped with train-images-idx3-ubyte: it has its header, but {BELONG}.",
    ),
    "another image size": (
        idx(PIXELS[:3, :20, :24]),
        "starts with the bytes 00 00 08 03 00 00 00 03 00 00 00 14 00 00 00 18 instead of 00 00 08 "
        f"03 00 00 00 03 00 00 00 1c 00 00 00 1c; {BELONG}.",
    ),
    "too short": (IMAGES[:-1], f"ends after {SIZE - 1} of {SIZE} bytes; download it again."),
    "too long": (IMAGES + b"\n", DIFFERS),
    "another byte": (IMAGES[:-1] + bytes([IMAGES[-1] ^ 1]), DIFFERS),
    "truncated gzip": (
        ZIPPED[:-20],
        "is a truncated or damaged gzip file (Compressed file ended before the end-of-stream "
        "marker was reached); download it again.",
    ),
    "damaged gzip": (
        ZIPPED[:-8] + bytes(8),
        "is a truncated or damaged gzip file (CRC check failed 0x0 != "
        f"{hex(zlib.crc32(IMAGES))}); download it again.",
    ),
}


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    isolate(tmp_path, monkeypatch)
    monkeypatch.setattr(mnist, "PUBLISHED", PUBLICATION)


@pytest.mark.parametrize("content, complaint", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_diagnosed(tmp_path, content, complaint):
    folder = write_all(tmp_path / "data")
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(TflabError) as error:
        mnist.load("test", folder)
    assert str(error.value) == f"{path} {complaint}"


def test_a_directory_of_that_name_is_named_unless_the_file_lies_beside_it(tmp_path):
    folder = write_all(tmp_path / "data")
    directory = folder / TRAIN[0]
    directory.mkdir()
    assert mnist.load("train", folder).size == 5
    (folder / f"{TRAIN[0]}.gz").unlink()
    with pytest.raises(TflabError) as error:
        mnist.load("train", folder)
    assert str(error.value) == (
        f"{directory} cannot be read: Is a directory; it should be a file that you may read."
    )


def test_a_file_without_permission_is_named(tmp_path, monkeypatch):
    folder = write_all(tmp_path / "data")

    def refuse(path: Path):  # chmod would not stop root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(untrusted, "opened", refuse)
    with pytest.raises(TflabError) as error:
        mnist.load("train", folder)
    assert str(error.value) == (
        f"{folder / TRAIN[0]}.gz cannot be read: Permission denied; "
        "it should be a file that you may read."
    )


def test_a_gzip_bomb_is_read_no_further_than_the_file_may_be_long(tmp_path):
    folder = write_all(tmp_path / "data")
    bomb = folder / f"{TRAIN[0]}.gz"
    bomb.write_bytes(gzip.compress(IDX[TRAIN[0]] + bytes(50_000_000), compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(TflabError, match=r"gz differs from the published file"):
            mnist.load("train", folder)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
