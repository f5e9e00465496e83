"""CIFAR-10: what comes out of its files, where they are looked for, and what stands in for them."""

import hashlib
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.publication import isolate, served
from tflab.datasets import cifar10, files
from tflab.errors import TflabError, UsageError

pytestmark = pytest.mark.slow

# A publication in miniature: two images in each of the six files.
NAMES = [*cifar10.BATCHES["train"], *cifar10.BATCHES["test"]]
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 2, 3, 32, 32), np.uint8)  # colour by colour
LABELS = np.arange(12, dtype=np.uint8).reshape(6, 2) % 10
FILES = {
    name: b"".join(bytes([label]) + image.tobytes() for label, image in zip(*batch, strict=True))
    for name, *batch in zip(NAMES, LABELS, PIXELS, strict=True)
}
SIZE = 2 * 3073
FIRST = NAMES[0]


def archived(members: dict[str, bytes]) -> bytes:
    """A tar.gz with a folder, a file that nobody asked for, and these."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        folder = tarfile.TarInfo(cifar10.FOLDER)
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, content in {"readme.html": b"<html>", **members}.items():
            member = tarfile.TarInfo(f"{cifar10.FOLDER}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


ARCHIVE = archived(dict(sorted(FILES.items(), reverse=True)))


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    isolate(tmp_path, monkeypatch)
    md5 = {name: hashlib.md5(content).hexdigest() for name, content in FILES.items()}
    splits = {"train": NAMES[:5], "test": NAMES[5:]}
    batches = {split: {name: md5[name] for name in names} for split, names in splits.items()}
    monkeypatch.setattr(cifar10, "BATCHES", batches)
    monkeypatch.setattr(cifar10, "BATCH_BYTES", SIZE)
    monkeypatch.setattr(cifar10, "ADDRESS", "http://nowhere.invalid/")
    publish(monkeypatch, ARCHIVE)


def publish(monkeypatch, archive: bytes) -> None:
    monkeypatch.setattr(cifar10, "ARCHIVE_BYTES", len(archive))
    monkeypatch.setattr(cifar10, "ARCHIVE_SHA256", hashlib.sha256(archive).hexdigest())


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def assert_is_small_cifar10(dataset, split: str) -> None:
    which = slice(0, 5) if split == "train" else slice(5, 6)
    expected = np.moveaxis(PIXELS[which].reshape(-1, 3, 32, 32), 1, 3) / np.float32(255)
    assert (dataset.name, dataset.split, dataset.stands_in_for) == ("CIFAR-10", split, None)
    assert [column.dtype for column in dataset.columns.values()] == [np.float32, np.int32]
    assert np.array_equal(dataset.columns["images"], expected)
    assert np.array_equal(dataset.columns["labels"], LABELS[which].ravel())


# Where the files are


@pytest.mark.parametrize("inner", [".", cifar10.FOLDER])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_files_are_read_from_a_folder_or_as_they_were_unpacked(tmp_path, inner, split):
    write(tmp_path / "data" / inner, FILES)
    assert_is_small_cifar10(cifar10.load(split, tmp_path / "data"), split)


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_files_are_read_from_the_archive_without_unpacking_it(tmp_path, split):
    folder = write(tmp_path / "data", {cifar10.ARCHIVE: ARCHIVE})
    assert_is_small_cifar10(cifar10.load(split, folder), split)
    assert [path.name for path in folder.rglob("*")] == [cifar10.ARCHIVE]


def test_missing_files_of_the_split_are_listed(tmp_path):
    folder = write(tmp_path / "data", {name: FILES[name] for name in NAMES[2:]})
    assert_is_small_cifar10(cifar10.load("test", folder), "test")
    with pytest.raises(TflabError) as error:
        cifar10.load("train", folder)
    assert str(error.value) == (
        f"{folder} lacks data_batch_1.bin, data_batch_2.bin (tflab looked for each name as it is, "
        "with .gz, in cifar-10-batches-bin and in cifar-10-binary.tar.gz)."
    )


class Bomb:
    """What a pickle runs when it is opened."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.mark.parametrize(
    "name", ["data_batch_1", "cifar-10-batches-py/data_batch_1", "cifar-10-python.tar.gz"]
)
def test_the_version_for_python_is_refused_and_never_unpickled(tmp_path, name):
    mark, file = tmp_path / "ran", tmp_path / "data" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(UsageError) as error:
        cifar10.load("train", tmp_path / "data")
    assert str(error.value).startswith(f"{tmp_path / 'data'} lacks data_batch_1.bin, data_batch_2")
    assert str(error.value).endswith(
        " The pickled version for Python is there, but tflab never opens it, because a pickle can "
        "run any code. Use the binary version, cifar-10-binary.tar.gz."
    )
    assert not mark.exists()


def test_a_given_folder_must_have_it_but_that_of_the_variable_may_be_for_mnist(
    tmp_path, monkeypatch
):
    other = write(tmp_path / "mnist", {"train-images-idx3-ubyte": b""})
    write(tmp_path / "cache/tflab/cifar10", FILES)
    with pytest.raises(UsageError, match=f"^{other} lacks data_batch_1.bin, data_batch_2.bin, da"):
        cifar10.load("train", other)
    monkeypatch.setenv("TFLAB_DATA_DIR", str(other))
    assert_is_small_cifar10(cifar10.load("train"), "train")
    write(other, {FIRST: FILES[FIRST]})  # now it is meant for this, and not all there
    with pytest.raises(UsageError, match=f"^{other} lacks data_batch_2.bin, data_batch_3.bin, da"):
        cifar10.load("train")
    with pytest.raises(UsageError, match=r"nowhere \(the data directory given\) cannot be read: N"):
        cifar10.load("train", tmp_path / "nowhere")


def test_an_unknown_split_is_refused():
    with pytest.raises(TflabError, match=r"^No split named 'valid'; choose from train, test\.$"):
        cifar10.load("valid")


# Damaged files

DAMAGES = {
    "empty": (b"", f"ends after 0 of {SIZE} bytes; download it again."),
    "too short": (FILES[FIRST][:-1], f"ends after {SIZE - 1} of {SIZE} bytes; download it again."),
    "too long": (
        FILES[FIRST] + b"\n",
        f"has more than {SIZE} bytes; 2 images belong in a file of this name.",
    ),
    "web page": (
        b"<!DOCTYPE html>",
        "is a web page saved under this name; 2 images belong in a file of this name.",
    ),
    "swapped": (
        FILES["test_batch.bin"],
        "seems to be swapped with another file: it is test_batch.bin.",
    ),
    "another byte": (
        FILES[FIRST][:-1] + bytes([FILES[FIRST][-1] ^ 1]),
        "differs from the published file (its MD5 differs); download it again.",
    ),
}


@pytest.mark.parametrize("content, complaint", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_diagnosed(tmp_path, content, complaint):
    folder = write(tmp_path / "data", FILES | {FIRST: content})
    with pytest.raises(TflabError) as error:
        cifar10.load("train", folder)
    assert str(error.value) == f"{folder / FIRST} {complaint}"


DAMAGED_ARCHIVES = {
    "too short": (
        ARCHIVE[:-1],
        f"has {len(ARCHIVE) - 1} bytes instead of {len(ARCHIVE)}; download it again.",
    ),
    "web page": (
        b"<html>Sign in</html>",
        "is a web page saved under this name; download it again.",
    ),
    "another byte": (
        ARCHIVE[:-1] + bytes([ARCHIVE[-1] ^ 1]),
        "differs from the published archive (its SHA-256 differs); download it again.",
    ),
}


@pytest.mark.parametrize(
    "content, complaint", DAMAGED_ARCHIVES.values(), ids=DAMAGED_ARCHIVES.keys()
)
def test_an_archive_that_is_not_the_published_one_is_not_opened(
    tmp_path, monkeypatch, content, complaint
):
    monkeypatch.setattr(tarfile, "open", None)
    folder = write(tmp_path / "data", {cifar10.ARCHIVE: content})
    with pytest.raises(TflabError) as error:
        cifar10.load("train", folder)
    assert str(error.value) == f"{folder / cifar10.ARCHIVE} {complaint}"


def test_a_damaged_file_in_the_archive_is_named(tmp_path, monkeypatch):
    archive = archived(FILES | {FIRST: FILES[FIRST][:-1]})
    publish(monkeypatch, archive)
    folder = write(tmp_path / "data", {cifar10.ARCHIVE: archive})
    with pytest.raises(TflabError) as error:
        cifar10.load("train", folder)
    assert str(error.value) == (
        f"{folder / cifar10.ARCHIVE}: {FIRST} ends after {SIZE - 1} of {SIZE} bytes; download it "
        "again."
    )


def test_a_file_that_is_missing_in_the_archive_is_named(tmp_path, monkeypatch):
    archive = archived({name: FILES[name] for name in NAMES[1:]})
    publish(monkeypatch, archive)
    folder = write(tmp_path / "data", {cifar10.ARCHIVE: archive})
    with pytest.raises(TflabError) as error:
        cifar10.load("train", folder)
    assert str(error.value) == (f"{folder / cifar10.ARCHIVE} lacks {FIRST}; download it again.")


# The download


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A server of this machine in place of the university's, and the folder that it hands out."""
    folder = write(tmp_path / "host", {cifar10.ARCHIVE: ARCHIVE})
    with served(folder) as address:
        monkeypatch.setattr(cifar10, "ADDRESS", address)
        monkeypatch.delenv("TFLAB_OFFLINE")
        yield folder


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache/tflab/cifar10").rglob("*"))


def test_a_download_fills_the_cache_and_serves_later_runs(host, tmp_path, monkeypatch):
    assert_is_small_cifar10(cifar10.load("train"), "train")
    assert cached_files(tmp_path) == [cifar10.ARCHIVE]
    monkeypatch.setenv("TFLAB_OFFLINE", "1")
    assert_is_small_cifar10(cifar10.load("test"), "test")


@pytest.mark.parametrize("damaged", [FIRST, cifar10.ARCHIVE])
def test_a_damaged_cache_is_mended(host, tmp_path, damaged):
    cache = write(tmp_path / "cache/tflab/cifar10", FILES | {damaged: b"damaged"})
    for split in ("train", "test"):
        assert_is_small_cifar10(cifar10.load(split), split)
    assert (cache / cifar10.ARCHIVE).read_bytes() == ARCHIVE


def test_a_cache_of_unpacked_files_serves(tmp_path):
    cache = write(tmp_path / "cache/tflab/cifar10", FILES)
    assert_is_small_cifar10(cifar10.load("train"), "train")
    (cache / NAMES[5]).unlink()  # then training does not use CIFAR-10 either
    assert cifar10.load("train").stands_in_for == "CIFAR-10"


def test_a_spoiled_download_leaves_no_file_and_is_told(host, tmp_path, capsys):
    (host / cifar10.ARCHIVE).write_bytes(ARCHIVE[: len(ARCHIVE) // 2])
    assert cifar10.load("train").stands_in_for == "CIFAR-10"
    assert cached_files(tmp_path) == []
    assert capsys.readouterr().err == (
        f"{NOT_CIFAR10} {cifar10.ADDRESS}{cifar10.ARCHIVE} differs from the published file (its "
        "SHA-256 differs).\n"
    )


# The stand-in

NOT_CIFAR10 = (
    "Using made-up images, not CIFAR-10; "
    "set TFLAB_DATA_DIR to a folder with cifar-10-binary.tar.gz or the six files in it."
)


def test_offline_made_up_images_stand_in_and_one_line_says_so(tmp_path, capsys):
    loaded = [cifar10.load(split) for split in ("train", "test")]
    assert [(d.name, d.split, d.stands_in_for) for d in loaded] == [
        ("made-up stripes, not CIFAR-10", "train", "CIFAR-10"),
        ("made-up stripes, not CIFAR-10", "test", "CIFAR-10"),
    ]
    assert capsys.readouterr() == (
        "",
        f"{NOT_CIFAR10} {tmp_path}/cache/tflab/cifar10 lacks {', '.join(NAMES)} (tflab looked for "
        "each name as it is and with .gz). TFLAB_OFFLINE forbids downloads.\n",
    )


def test_each_stand_in_is_announced_once(capsys):
    for _ in range(2):
        files.announce("one", "one stands in")
        files.announce("other", "another stands in")
    assert capsys.readouterr().err == "one stands in\nanother stands in\n"
