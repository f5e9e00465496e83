"""IDX: the format of MNIST's files, and how a file differs from the published one.

A magic number (two zeros, 8 for bytes, the number of axes), the length of each axis as a big-endian
32-bit number, then the bytes. The format is described at the place of MNIST's first publication,
yann.lecun.com/exdb/mnist.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tflab.datasets import files
from tflab.errors import TflabError

KINDS = {3: "images", 1: "labels"}  # by the number of axes, which is the fourth byte of the file


@dataclass(frozen=True)
class Published:
    """One of the files as it was published."""

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


Publication = Mapping[str, tuple[Published, Published]]  # split -> its images and its labels


def read(
    path: Path, published: Published, publication: Publication, called: str | None = None
) -> np.ndarray:
    """The array in a file if it is exactly the published one. `called` names it in errors."""
    called = called or str(path)
    content = files.read(path, published.content_bytes + 1, called)
    if complaint := diagnose(content, published, publication):
        raise TflabError(f"{called} {complaint}.")
    pixels = np.frombuffer(content, np.uint8, offset=published.header_bytes)
    return pixels.reshape(published.shape)


def diagnose(content: bytes, published: Published, publication: Publication) -> str | None:
    """What is wrong with the content of a file and what it should be, or None.

    The checksum alone would be enough; the checks before it tell the user which mistake was made.
    """
    right = f"{published.shape[0]} {published.kind} belong in a file of this name"
    if not content:
        return f"is empty; {right}"
    if files.is_web_page(content):
        return f"is a web page saved under this name, not an IDX file; {right}"
    if wrong := diagnose_header(content, published, publication, right):
        return wrong
    if len(content) < published.content_bytes:
        return f"ends after {len(content)} of {published.content_bytes} bytes; download it again"
    if len(content) > published.content_bytes:
        return f"has more than the {published.content_bytes} bytes that its header announces"
    if hashlib.sha256(content).hexdigest() != published.sha256:
        return (
            "differs from the published file (its SHA-256 differs): it is damaged, or belongs to "
            "another data set that uses these names, such as Fashion-MNIST; download it again"
        )
    return None


def diagnose_header(
    content: bytes, published: Published, publication: Publication, right: str
) -> str | None:
    """What is wrong with the header, its counts and its sizes, or None."""
    if len(content) < 4 or content[:3] != b"\0\0\x08" or content[3] not in KINDS:
        magic = bytes((0, 0, 8, len(published.shape)))
        return (
            f"is not an IDX file: it starts with the bytes {content[:4].hex(' ')} instead of "
            f"{magic.hex(' ')}; {right}"
        )
    axes = content[3]
    if axes != len(published.shape):
        return (
            f"seems to be swapped with another file: it contains {KINDS[axes]} (magic number "
            f"{2048 + axes}), but {right}"
        )
    if len(content) < published.header_bytes:
        return f"ends after {len(content)} bytes, within its header; {right}"
    count, *image = struct.unpack_from(f">{axes}I", content, 4)
    if count != published.shape[0]:
        for split, (images, _) in publication.items():
            if count == images.shape[0]:
                belongs = "training" if split == "train" else split
                return (
                    f"seems to be swapped with another file: it contains the {count} "
                    f"{published.kind} of the {belongs} file, but {right}"
                )
        return f"contains {count} {published.kind}, but {right}"
    if tuple(image) != published.shape[1:]:
        return (
            f"contains images of {image[0]}x{image[1]} pixels; those of MNIST have "
            f"{published.shape[1]}x{published.shape[2]}"
        )
    return None
