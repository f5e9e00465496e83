"""MNIST: 70,000 handwritten digits of 28x28 pixels, in four files.

The files come from the folder that was given, else from the cache, else from a mirror. They are
used only if they are, byte for byte, the published ones. Where there are none, the digits of
scikit-learn stand in, and say so.
"""

import functools
import gzip
import hashlib
import http.client
import math
import os
import struct
import sys
import tempfile
import threading
import urllib.request
import zlib
from collections.abc import Iterable
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tflab.datasets import Dataset, centred, digits
from tflab.errors import TflabError

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
ANSWER_SECONDS = 5  # a mirror that needs longer is taken for unreachable
CHUNK_BYTES = 1 << 16
KINDS = {3: "images", 1: "labels"}  # by the number of axes, which is the fourth byte of the file


@dataclass(frozen=True)
class Published:
    """One of the four files as it was published. IDX: magic number, length of each axis, bytes."""

    name: str
    shape: tuple[int, ...]
    sha256: str  # of the content, not of its gzipped form: that differs between mirrors

    @property
    def kind(self) -> str:
        return KINDS[len(self.shape)]

    @property
    def header_bytes(self) -> int:
        return 4 + 4 * len(self.shape)

    @property
    def content_bytes(self) -> int:
        return self.header_bytes + math.prod(self.shape)


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
    """Columns `images`, float32 [n, side, side, 1] of 0..1, and `labels`, int32 [n]."""
    if split not in PUBLISHED:
        raise TflabError(f"No split named {split!r}; choose from {', '.join(PUBLISHED)}.")
    if folder := given_folder(data_dir):
        images, labels = read_split(folder, split)
    else:
        try:
            images, labels = read_cached(split)
        except TflabError as reason:
            announce(
                "Using the digits of scikit-learn, not MNIST; "
                f"set TFLAB_DATA_DIR to a folder with its four files. {reason}"
            )
            return digits.load(split, side)
    columns = {"images": centred(images, 255, side), "labels": labels.astype(np.int32)}
    return Dataset("MNIST", split, columns)


# Where the files are


def given_folder(data_dir: str | Path | None) -> Path | None:
    """The folder that the user named, if any: it must exist, there is no falling back from it."""
    given = data_dir or os.environ.get("TFLAB_DATA_DIR")
    if not given:
        return None
    folder = Path(os.path.expanduser(given))
    try:
        os.listdir(folder)
    except OSError as error:
        origin = "the data directory given" if data_dir else "from TFLAB_DATA_DIR"
        raise TflabError(
            f"{folder} ({origin}) cannot be read: {error.strerror}; "
            "it should be a folder with the four files of MNIST."
        ) from error
    return folder


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # also "~/.cache" itself, where the user has no home
        raise TflabError(f"The cache {base} is no absolute path; set XDG_CACHE_HOME to one.")
    return Path(base, "tflab", "mnist")


def read_cached(split: str) -> list[np.ndarray]:
    folder = cache_folder()
    try:
        require(folder, every_file())  # else we might train with MNIST and test with the stand-in
        return read_split(folder, split)
    except TflabError as reason:
        if os.environ.get("TFLAB_OFFLINE", "0") not in ("", "0"):
            raise TflabError(f"{reason} TFLAB_OFFLINE forbids a download.") from reason
    if failure := fetch(folder):
        raise TflabError(failure)
    return read_split(folder, split)


def read_split(folder: Path, split: str) -> list[np.ndarray]:
    """Images and labels of a split."""
    paths = require(folder, PUBLISHED[split])
    return [read(path, published) for path, published in zip(paths, PUBLISHED[split], strict=True)]


def require(folder: Path, files: Iterable[Published]) -> list[Path]:
    """Where each file is; an error that lists all that are missing."""
    paths = {published.name: locate(folder, published) for published in files}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        raise TflabError(f"{folder} lacks {', '.join(missing)} (looked for as is and with .gz).")
    return [path for path in paths.values() if path]


def every_file() -> tuple[Published, ...]:
    return (*PUBLISHED["train"], *PUBLISHED["test"])


def locate(folder: Path, published: Published) -> Path | None:
    names = (published.name, f"{published.name}.gz")
    found = [folder / name for name in names if os.path.exists(folder / name)]
    return min(found, key=os.path.isdir, default=None)  # a directory only for want of a file


said: list[str] = []


def announce(line: str) -> None:
    """One line on stderr, once in a process: for the test split it would be said again."""
    if not said:
        said.append(line)
        print(line, file=sys.stderr)


# What is in them


def read(path: Path, published: Published, called: str | None = None) -> np.ndarray:
    """The array in a file that is exactly the published one. `called` names it in errors."""
    called = called or str(path)
    try:
        with path.open("rb") as file:
            content = unpack(file, published.content_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TflabError(
            f"{called} is a truncated or damaged gzip file ({error}); fetch it again."
        ) from error
    except OSError as error:
        raise TflabError(
            f"{called} cannot be read: {error.strerror}; it should be a file that you may read."
        ) from error
    if complaint := diagnose(content, published):
        raise TflabError(f"{called} {complaint}.")
    pixels = np.frombuffer(content, np.uint8, offset=published.header_bytes)
    return pixels.reshape(published.shape)


def unpack(file: BinaryIO, limit: int) -> bytes:
    """The content up to `limit` bytes: a few kilobytes of gzip can expand to gigabytes."""
    gzipped = file.read(2) == b"\x1f\x8b"  # the suffix proves nothing: browsers unpack and keep it
    file.seek(0)
    return gzip.GzipFile(fileobj=file).read(limit) if gzipped else file.read(limit)


def diagnose(content: bytes, published: Published) -> str | None:
    """What is wrong with the content of a file and what would be right, or None.

    The checksum alone would do. What comes before it tells the user which mistake was made.
    """
    right = f"{published.shape[0]} {published.kind} belong under this name"
    if not content:
        return f"is empty; {right}"
    if content[:64].lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return f"is not an IDX file but a web page saved under that name; {right}"
    if len(content) < 4 or content[:3] != b"\0\0\x08" or content[3] not in KINDS:
        magic = bytes((0, 0, 8, len(published.shape)))
        return (
            f"is not an IDX file: it begins with the bytes {content[:4].hex(' ')} "
            f"instead of {magic.hex(' ')}; {right}"
        )
    axes = content[3]
    if axes != len(published.shape):
        return f"looks swapped: it holds {KINDS[axes]} (magic number {2048 + axes}), but {right}"
    if len(content) < published.header_bytes:
        return f"ends after {len(content)} bytes, within its header; {right}"
    count, *image = struct.unpack_from(f">{axes}I", content, 4)
    if count != published.shape[0]:
        for split, files in PUBLISHED.items():
            if count == files[0].shape[0]:
                belongs = "training" if split == "train" else split
                return (
                    f"looks swapped: it holds the {count} {published.kind} "
                    f"of the {belongs} file, but {right}"
                )
        return f"holds {count} {published.kind}, but {right}"
    if tuple(image) != published.shape[1:]:
        return (
            f"holds images of {image[0]}x{image[1]} pixels; "
            f"those of MNIST have {published.shape[1]}x{published.shape[2]}"
        )
    if len(content) < published.content_bytes:
        return f"ends after {len(content)} of {published.content_bytes} bytes; fetch it again"
    if len(content) > published.content_bytes:
        return f"goes on after the {published.content_bytes} bytes that its header announces"
    if hashlib.sha256(content).hexdigest() != published.sha256:
        return (
            "differs from the published file in some byte (its SHA-256 is another): damaged, "
            "or of another data set with these names, like Fashion-MNIST; fetch it again"
        )
    return None


# How they come into the cache


@functools.cache  # one try in a process: without a network, another only costs time
def fetch(folder: Path) -> str | None:
    """Download what the cache lacks. Returns why that failed, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for published in every_file():
            if not is_whole(folder, published):
                download(published, folder)
    except OSError as error:
        return f"The cache {folder} cannot be written: {error.strerror}."
    except TflabError as error:
        return str(error)
    return None


def is_whole(folder: Path, published: Published) -> bool:
    path = locate(folder, published)
    try:
        return path is not None and bool(read(path, published).size)
    except TflabError:
        return False


def download(published: Published, folder: Path) -> None:
    """From the first mirror that delivers. Only a verified file gets its name in the cache."""
    complaints = []
    for mirror in MIRRORS:
        url = f"{mirror}{published.name}.gz"
        with tempfile.TemporaryDirectory(dir=folder) as temporary:  # in the folder: same disk
            part = Path(temporary, f"{published.name}.gz")
            try:
                receive(url, part, published.content_bytes)
                read(part, published, called=url)
            except TflabError as error:
                complaints.append(str(error))
            else:
                os.replace(part, folder / part.name)
                return
    raise TflabError(" ".join(complaints))


def receive(url: str, part: Path, limit: int) -> None:
    """Stream to a file behind a progress bar, and stop soon after `limit` bytes."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    try:
        with (
            ask(url) as response,
            part.open("wb") as file,
            Progress(*columns, console=Console(stderr=True)) as progress,
        ):
            announced = response.headers.get("Content-Length")
            bar = progress.add_task(part.name, total=float(announced) if announced else None)
            while file.tell() < limit and (chunk := response.read(CHUNK_BYTES)):
                file.write(chunk)
                progress.advance(bar, len(chunk))
    except (OSError, http.client.HTTPException) as error:
        raise TflabError(f"{url} failed: {error}.") from error


def ask(url: str) -> Any:
    """`urlopen` with one limit for all it does.

    Its own limit holds for each address of a host, of which there can be a dozen, and not for
    looking up the name: behind a silent firewall that adds up to minutes.
    """
    answer: futures.Future = futures.Future()

    def wait() -> None:
        try:
            answer.set_result(urllib.request.urlopen(url, timeout=ANSWER_SECONDS))
        except Exception as error:  # whatever it is, it belongs to the thread that asked
            answer.set_exception(error)

    threading.Thread(target=wait, daemon=True).start()  # daemon: it must not keep Python alive
    try:
        return answer.result(ANSWER_SECONDS)
    except futures.TimeoutError as error:
        raise TflabError(f"{url} did not answer within {ANSWER_SECONDS} s.") from error
