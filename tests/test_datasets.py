"""Data sets: what a batch holds, where MNIST is looked for, and what is said of a damaged file."""

import gzip
import hashlib
import itertools
import os
import shutil
import struct
import time
import tracemalloc
import urllib.request
import zlib
from pathlib import Path

import numpy as np
import pytest

from tflab.datasets import Dataset, batches, centred, digits, mnist
from tflab.errors import TflabError

REAL_FILES = os.environ.get("TFLAB_DATA_DIR") or Path(__file__).parents[2] / "shared" / "mnist"

# A publication in miniature: five images to train with, three to test with.
PIXELS = np.random.default_rng(0).integers(0, 256, (8, 28, 28), np.uint8)
LABELS = np.arange(8, dtype=np.uint8)
ARRAYS = {
    "train-images-idx3-ubyte": PIXELS[:5],
    "train-labels-idx1-ubyte": LABELS[:5],
    "t10k-images-idx3-ubyte": PIXELS[5:],
    "t10k-labels-idx1-ubyte": LABELS[5:],
}
TRAIN = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">{1 + array.ndim}I", 2048 + array.ndim, *array.shape) + array.tobytes()


IDX = {name: idx(array) for name, array in ARRAYS.items()}
GZIPPED = {name: gzip.compress(content, mtime=0) for name, content in IDX.items()}


def write_all(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, content in GZIPPED.items():
        (folder / f"{name}.gz").write_bytes(content)
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """No test sees the user's data, cache or network, or what an earlier one left in memory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TFLAB_OFFLINE", "1")
    monkeypatch.delenv("TFLAB_DATA_DIR", raising=False)
    monkeypatch.setattr(mnist, "said", [])
    mnist.fetch.cache_clear()


@pytest.fixture
def small(monkeypatch):
    """The small publication takes the place of MNIST."""

    def published(name: str) -> mnist.Published:
        return mnist.Published(name, ARRAYS[name].shape, hashlib.sha256(IDX[name]).hexdigest())

    train, test = list(ARRAYS)[:2], list(ARRAYS)[2:]
    files = {"train": tuple(map(published, train)), "test": tuple(map(published, test))}
    monkeypatch.setattr(mnist, "PUBLISHED", files)


@pytest.fixture
def mirrors(small, tmp_path, monkeypatch):
    """Two mirrors with all files, which are folders: a `file:` URL is opened like any other."""
    folders = [write_all(tmp_path / "mirror1"), write_all(tmp_path / "mirror2")]
    monkeypatch.setattr(mnist, "MIRRORS", tuple(f"{folder.as_uri()}/" for folder in folders))
    monkeypatch.delenv("TFLAB_OFFLINE")
    return folders


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache/tflab/mnist").rglob("*"))


# Batches


def rows(count: int) -> Dataset:
    return Dataset("rows", "train", {"x": np.arange(count), "y": np.arange(count) * 10})


def first_batches(count: int, *args, **kwargs) -> list[list[int]]:
    return [b["x"].tolist() for b in itertools.islice(batches(*args, **kwargs), count)]


def test_batches_run_on_into_the_next_epoch():
    assert first_batches(4, rows(5), 3) == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]


def test_a_batch_may_be_the_whole_data_set():
    assert first_batches(2, rows(3), 3) == [[0, 1, 2], [0, 1, 2]]


def test_a_batch_keeps_the_columns_together():
    for batch in itertools.islice(batches(rows(7), 4, seed=1), 10):
        assert (batch["y"] == batch["x"] * 10).all()


def test_with_a_seed_each_epoch_is_another_permutation_and_the_same_in_every_run():
    dealt = first_batches(6, rows(8), 4, seed=3)
    epochs = [dealt[0] + dealt[1], dealt[2] + dealt[3], dealt[4] + dealt[5]]
    expected = [np.random.default_rng((3, epoch)).permutation(8).tolist() for epoch in range(3)]
    assert epochs == expected
    assert len(set(map(tuple, epochs))) == 3
    assert dealt == first_batches(6, rows(8), 4, seed=3) != first_batches(6, rows(8), 4, seed=4)


def test_shuffled_epochs_stay_whole_when_batches_run_across_them():
    dealt = list(itertools.chain(*first_batches(5, rows(5), 3, seed=0)))
    assert [sorted(dealt[start : start + 5]) for start in (0, 5, 10)] == [list(range(5))] * 3


def test_batches_in_order_are_views():
    dataset = rows(5)
    first, second = itertools.islice(batches(dataset, 3), 2)
    assert np.shares_memory(first["x"], dataset.columns["x"])
    assert not np.shares_memory(second["x"], dataset.columns["x"])  # runs into the next epoch


@pytest.mark.parametrize("batch_size", [6, 0, -1])
def test_a_batch_that_cannot_be_cut_is_refused_at_the_call(batch_size):
    with pytest.raises(TflabError) as error:
        batches(rows(5), batch_size)
    assert str(error.value) == (
        f"A batch of {batch_size} cannot be cut from the 5 rows of rows (train); "
        "choose a batch size from 1 to 5."
    )


def test_columns_of_different_lengths_are_no_data_set():
    with pytest.raises(TflabError, match=r"these have rows \{'x': 2, 'y': 3\}"):
        Dataset("odd", "train", {"x": np.zeros(2), "y": np.zeros(3)})


def test_images_are_centred_in_a_black_frame():
    images = centred(np.array([[[0, 4], [8, 16]]], np.uint8), brightest=16, side=4)
    assert images.dtype == np.float32
    assert images[0, :, :, 0].tolist() == [
        [0, 0, 0, 0],
        [0, 0, 0.25, 0],
        [0, 0.5, 1, 0],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize("side", [27, 26])
def test_a_side_without_room_for_an_even_frame_is_refused(side):
    with pytest.raises(TflabError, match=f"28x28 cannot be centred in {side}x{side}; choose a"):
        centred(PIXELS, 255, side)


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


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("side", [28, 32])
def test_mnist_comes_padded_and_scaled(small, tmp_path, split, side):
    folder = write_all(tmp_path / "data")
    assert_is_small_mnist(mnist.load(split, folder, side), split, side)


def test_gzip_is_told_by_content_not_by_name(small, tmp_path):
    (tmp_path / TRAIN[0]).write_bytes(GZIPPED[TRAIN[0]])
    (tmp_path / f"{TRAIN[1]}.gz").write_bytes(IDX[TRAIN[1]])
    assert_is_small_mnist(mnist.load("train", tmp_path), "train")


def test_an_unknown_split_is_refused():
    with pytest.raises(TflabError, match=r"^No split named 'valid'; choose from train, test\.$"):
        mnist.load("valid")
    with pytest.raises(TflabError, match=r"^No split named 'valid'; choose from train, test\.$"):
        digits.load("valid")


@pytest.fixture
def real_files():
    if not os.path.isdir(REAL_FILES):
        pytest.skip(f"The files of MNIST are not in {REAL_FILES}; set TFLAB_DATA_DIR to read them.")
    return REAL_FILES


@pytest.mark.parametrize(
    "split, counts, mean",
    [
        ("train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], 0.1307),
        ("test", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], 0.1325),
    ],
)
def test_the_real_files_are_the_published_ones(real_files, split, counts, mean):
    dataset = mnist.load(split, real_files, side=28)
    assert np.bincount(dataset.columns["labels"]).tolist() == counts
    assert dataset.columns["images"].shape == (sum(counts), 28, 28, 1)
    assert round(float(dataset.columns["images"].mean(dtype=np.float64)), 4) == mean


# Damaged files

IMAGES = IDX["t10k-images-idx3-ubyte"]
SIZE = len(IMAGES)
ZIPPED = GZIPPED["t10k-images-idx3-ubyte"]
BELONG = "3 images belong under this name"
DAMAGES = {
    "empty": (b"", f"is empty; {BELONG}."),
    "empty gzip": (gzip.compress(b""), f"is empty; {BELONG}."),
    "web page": (
        b"\n<!DOCTYPE html><title>Sign in</title>",
        f"is not an IDX file but a web page saved under that name; {BELONG}.",
    ),
    "random bytes": (
        b"\x80\x04\x95\x10 pickled",
        "is not an IDX file: it begins with the bytes 80 04 95 10 "
        f"instead of 00 00 08 03; {BELONG}.",
    ),
    "three bytes": (
        b"\0\0\x08",
        f"is not an IDX file: it begins with the bytes 00 00 08 instead of 00 00 08 03; {BELONG}.",
    ),
    "half a header": (IMAGES[:9], f"ends after 9 bytes, within its header; {BELONG}."),
    "labels": (
        IDX["t10k-labels-idx1-ubyte"],
        f"looks swapped: it holds labels (magic number 2049), but {BELONG}.",
    ),
    "training file": (
        IDX["train-images-idx3-ubyte"],
        f"looks swapped: it holds the 5 images of the training file, but {BELONG}.",
    ),
    "another number": (idx(PIXELS[:4]), f"holds 4 images, but {BELONG}."),
    "another image size": (
        idx(PIXELS[:3, :20, :24]),
        "holds images of 20x24 pixels; those of MNIST have 28x28.",
    ),
    "too short": (IMAGES[:-1], f"ends after {SIZE - 1} of {SIZE} bytes; fetch it again."),
    "too long": (
        IMAGES + b"\n",
        f"goes on after the {SIZE} bytes that its header announces.",
    ),
    "another byte": (
        IMAGES[:-1] + bytes([IMAGES[-1] ^ 1]),
        "differs from the published file in some byte (its SHA-256 is another): damaged, "
        "or of another data set with these names, like Fashion-MNIST; fetch it again.",
    ),
    "truncated gzip": (
        ZIPPED[:-20],
        "is a truncated or damaged gzip file (Compressed file ended before the end-of-stream "
        "marker was reached); fetch it again.",
    ),
    "damaged gzip": (
        ZIPPED[:-8] + bytes(8),
        "is a truncated or damaged gzip file (CRC check failed "
        f"0x0 != {hex(zlib.crc32(IMAGES))}); fetch it again.",
    ),
}


@pytest.mark.parametrize("content, complaint", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_diagnosed(small, tmp_path, content, complaint):
    folder = write_all(tmp_path / "data")
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(TflabError) as error:
        mnist.load("test", folder)
    assert str(error.value) == f"{path} {complaint}"


@pytest.mark.parametrize(
    "split, name, other, complaint",
    [
        (
            "train",
            "train-images-idx3-ubyte",
            "t10k-images-idx3-ubyte",
            "looks swapped: it holds the 3 images of the test file, "
            "but 5 images belong under this name.",
        ),
        (
            "test",
            "t10k-labels-idx1-ubyte",
            "train-labels-idx1-ubyte",
            "looks swapped: it holds the 5 labels of the training file, "
            "but 3 labels belong under this name.",
        ),
        (
            "train",
            "train-labels-idx1-ubyte",
            "train-images-idx3-ubyte",
            "looks swapped: it holds images (magic number 2051), "
            "but 5 labels belong under this name.",
        ),
    ],
)
def test_files_swapped_for_each_other_are_named(small, tmp_path, split, name, other, complaint):
    folder = write_all(tmp_path / "data")
    shutil.copy(folder / f"{other}.gz", folder / f"{name}.gz")
    with pytest.raises(TflabError) as error:
        mnist.load(split, folder)
    assert str(error.value) == f"{folder / name}.gz {complaint}"


def test_a_directory_of_that_name_is_named_unless_the_file_lies_beside_it(small, tmp_path):
    folder = write_all(tmp_path / "data")
    directory = folder / TRAIN[0]
    directory.mkdir()
    assert_is_small_mnist(mnist.load("train", folder), "train")
    (folder / f"{TRAIN[0]}.gz").unlink()
    with pytest.raises(TflabError) as error:
        mnist.load("train", folder)
    assert str(error.value) == (
        f"{directory} cannot be read: Is a directory; it should be a file that you may read."
    )


def test_a_file_without_permission_is_named(small, tmp_path, monkeypatch):
    folder = write_all(tmp_path / "data")

    def refuse(path: Path, mode: str):  # chmod would not stop root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TflabError) as error:
        mnist.load("train", folder)
    assert str(error.value) == (
        f"{folder / TRAIN[0]}.gz cannot be read: Permission denied; "
        "it should be a file that you may read."
    )


def test_a_gzip_bomb_is_read_no_further_than_the_file_may_be_long(small, tmp_path):
    folder = write_all(tmp_path / "data")
    bomb = folder / f"{TRAIN[0]}.gz"
    bomb.write_bytes(gzip.compress(IDX[TRAIN[0]] + bytes(50_000_000), compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(TflabError, match=r"gz goes on after the 3936 bytes that its header"):
            mnist.load("train", folder)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# Where the files are looked for


def test_missing_files_of_the_split_are_listed(small, tmp_path):
    folder = write_all(tmp_path / "data")
    for name in TRAIN:
        (folder / f"{name}.gz").unlink()
    assert_is_small_mnist(mnist.load("test", folder), "test")
    with pytest.raises(TflabError) as error:
        mnist.load("train", folder)
    assert str(error.value) == (
        f"{folder} lacks train-images-idx3-ubyte, train-labels-idx1-ubyte "
        "(looked for as is and with .gz)."
    )


def test_a_given_folder_must_exist(small, tmp_path, monkeypatch):
    nowhere = tmp_path / "nowhere"
    with pytest.raises(TflabError) as error:
        mnist.load("train", nowhere)
    assert str(error.value) == (
        f"{nowhere} (the data directory given) cannot be read: No such file or directory; "
        "it should be a folder with the four files of MNIST."
    )
    monkeypatch.setenv("TFLAB_DATA_DIR", str(nowhere))
    with pytest.raises(TflabError, match=r"nowhere \(from TFLAB_DATA_DIR\) cannot be read: No su"):
        mnist.load("train")


def test_the_argument_comes_before_the_variable_and_both_before_the_cache(
    small, tmp_path, monkeypatch
):
    data = write_all(tmp_path / "data")
    empty = tmp_path / "empty"
    empty.mkdir()
    write_all(tmp_path / "cache/tflab/mnist")
    assert_is_small_mnist(mnist.load("train"), "train")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(empty))
    with pytest.raises(TflabError, match=f"^{empty} lacks"):
        mnist.load("train")
    assert_is_small_mnist(mnist.load("train", data), "train")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(data))
    assert_is_small_mnist(mnist.load("train"), "train")
    with pytest.raises(TflabError, match=f"^{empty} lacks"):
        mnist.load("train", empty)


def test_without_xdg_cache_home_the_cache_is_in_the_home_directory(small, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    write_all(tmp_path / "home/.cache/tflab/mnist")
    assert_is_small_mnist(mnist.load("test"), "test")


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
        f"{NOT_MNIST} {tmp_path}/cache/tflab/mnist lacks "
        "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
        "t10k-labels-idx1-ubyte (looked for as is and with .gz). "
        "TFLAB_OFFLINE forbids a download.\n",
    )


@pytest.mark.parametrize("side", [28, 32])
def test_the_digits_are_enlarged_threefold_in_a_black_frame(side):
    from sklearn.datasets import load_digits

    dataset = digits.load("test", side)
    images, labels = dataset.columns["images"], dataset.columns["labels"]
    margin = (side - 24) // 2
    inside = images[:, margin:-margin, margin:-margin, 0]
    assert (images.dtype, labels.dtype) == (np.float32, np.int32)
    assert images.shape == (297, side, side, 1)
    assert np.array_equal(inside[:, 1::3, 1::3] * 16, load_digits().images[1500:])
    assert np.array_equal(inside, inside[:, 1::3, 1::3].repeat(3, 1).repeat(3, 2))
    assert images.sum() == inside.sum()
    assert np.array_equal(labels, load_digits().target[1500:])


def test_half_a_cache_is_not_mixed_with_the_stand_in(small, tmp_path):
    folder = write_all(tmp_path / "cache/tflab/mnist")
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    assert [mnist.load(split).stands_in_for for split in ("train", "test")] == ["MNIST", "MNIST"]


def test_a_damaged_cache_is_told_when_it_cannot_be_mended(small, tmp_path, capsys):
    damaged = write_all(tmp_path / "cache/tflab/mnist") / f"{TRAIN[0]}.gz"
    damaged.write_bytes(b"")
    assert mnist.load("train").stands_in_for == "MNIST"
    assert capsys.readouterr().err == (
        f"{NOT_MNIST} {damaged} is empty; "
        "5 images belong under this name. TFLAB_OFFLINE forbids a download.\n"
    )


def test_a_cache_that_cannot_be_written_is_told(mirrors, tmp_path, monkeypatch, capsys):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert mnist.load("train").stands_in_for == "MNIST"
    assert capsys.readouterr().err == (
        f"{NOT_MNIST} The cache {tmp_path}/cache/tflab/mnist cannot be written: Not a directory.\n"
    )


def test_a_cache_without_an_absolute_path_is_not_used(small, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert mnist.load("train").stands_in_for == "MNIST"
    assert capsys.readouterr().err == (
        f"{NOT_MNIST} The cache here is no absolute path; set XDG_CACHE_HOME to one.\n"
    )


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


SPOILED = {
    "cut half-way": GZIPPED[TRAIN[0]][:1500],
    "another byte": gzip.compress(DAMAGES["another byte"][0]),
    "web page": b"<html>Sign in</html>",
}


@pytest.mark.parametrize("content", SPOILED.values(), ids=SPOILED.keys())
def test_a_spoiled_download_tries_the_next_mirror(mirrors, content):
    (mirrors[0] / f"{TRAIN[0]}.gz").write_bytes(content)
    assert_is_small_mnist(mnist.load("train"), "train")


@pytest.mark.parametrize("content", SPOILED.values(), ids=SPOILED.keys())
def test_a_download_spoiled_everywhere_leaves_no_file(mirrors, tmp_path, capsys, content):
    for mirror in mirrors:
        (mirror / f"{TRAIN[0]}.gz").write_bytes(content)
    assert mnist.load("train").name == "digits, not MNIST"
    assert cached_files(tmp_path) == []
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"{NOT_MNIST} {mirrors[0].as_uri()}")
    assert f" {mirrors[1].as_uri()}/{TRAIN[0]}.gz " in told


class Breaking:
    """A response that delivers a little, and then what it was given instead."""

    def __init__(self, ending: BaseException) -> None:
        self.headers = {"Content-Length": "1500"}
        self.chunks = iter([GZIPPED[TRAIN[0]][:1000]])
        self.ending = ending

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass

    def read(self, _) -> bytes:
        for chunk in self.chunks:
            return chunk
        raise self.ending


def test_without_a_network_the_one_line_is_all_that_is_printed(mirrors, capsys):
    for mirror in mirrors:
        (mirror / f"{TRAIN[0]}.gz").unlink()
    assert mnist.load("train").stands_in_for == "MNIST"
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith(f"{NOT_MNIST} {mirrors[0].as_uri()}/{TRAIN[0]}.gz failed: ")


def test_a_broken_connection_leaves_no_file_and_is_not_tried_again(
    mirrors, tmp_path, monkeypatch, capsys
):
    asked = []

    def ask(url: str) -> Breaking:
        asked.append(url)
        return Breaking(ConnectionResetError(104, "Connection reset by peer"))

    monkeypatch.setattr(mnist, "ask", ask)
    assert [mnist.load(split).size for split in ("train", "test", "train")] == [1500, 297, 1500]
    assert asked == [f"{mirror.as_uri()}/{TRAIN[0]}.gz" for mirror in mirrors]
    assert cached_files(tmp_path) == []
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"{NOT_MNIST} {asked[0]} failed: [Errno 104] Connection reset by peer. "
        f"{asked[1]} failed: [Errno 104] Connection reset by peer."
    )


def test_an_interrupted_download_leaves_no_file(mirrors, tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "ask", lambda url: Breaking(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        mnist.load("train")
    assert cached_files(tmp_path) == []


def test_a_silent_mirror_is_given_up_in_time(monkeypatch):
    monkeypatch.setattr(mnist, "ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: time.sleep(2))
    started = time.monotonic()
    with pytest.raises(TflabError, match=r"^http://silent/ did not answer within 0.02 s\.$"):
        mnist.ask("http://silent/")
    assert time.monotonic() - started < 1


def test_an_endless_download_is_cut_off(small, tmp_path, monkeypatch):
    class Endless(Breaking):
        def read(self, count: int) -> bytes:
            return bytes(count)

    monkeypatch.setattr(mnist, "ask", lambda url: Endless(EOFError()))
    mnist.receive("http://endless/", tmp_path / "part", limit=1000)
    assert (tmp_path / "part").stat().st_size == mnist.CHUNK_BYTES
