"""MNIST in miniature: five images to train with, three to test with; and a server of files."""

import functools
import gzip
import hashlib
import http.server
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tflab.datasets import files, mnist
from tflab.datasets.mnist import Published

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


def published(name: str) -> Published:
    return Published(name, ARRAYS[name].shape, hashlib.sha256(IDX[name]).hexdigest())


PUBLICATION = {
    "train": tuple(map(published, list(ARRAYS)[:2])),
    "test": tuple(map(published, list(ARRAYS)[2:])),
}


def write_all(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, content in GZIPPED.items():
        (folder / f"{name}.gz").write_bytes(content)
    return folder


def isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's data, cache or network, or what an earlier one left in memory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TFLAB_OFFLINE", "1")
    monkeypatch.delenv("TFLAB_DATA_DIR", raising=False)
    files.announce.cache_clear()
    mnist.fill.cache_clear()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    """The address of a server of this machine that hands out a folder."""
    answer = functools.partial(handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
