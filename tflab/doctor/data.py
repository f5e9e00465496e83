"""Data: which data sets are there, whether they are the published ones, and what is used otherwise.

Files are read as a training reads them, with their checksums. Nothing is downloaded.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflab.datasets import files
from tflab.doctor.checks import FINE, NOTE, WRONG, Finding
from tflab.errors import TflabError

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Known:
    """A data set; its module has `read_split(folder, split)`, which raises for damaged files."""

    name: str
    module: str
    cache: str  # its folder in the cache
    files: str  # that a folder given by the user has to hold
    download: str  # its size and where it comes from
    stand_in: str
    insists: bool  # if TFLAB_DATA_DIR is set, no other place is tried


KNOWN = (
    Known(
        "MNIST",
        "tflab.datasets.mnist",
        "mnist",
        "the four files of MNIST",
        "11 MB from storage.googleapis.com",
        "the digits of scikit-learn",
        insists=True,
    ),
    Known(
        "CIFAR-10",
        "tflab.datasets.cifar10",
        "cifar10",
        "cifar-10-binary.tar.gz or the six files in it",
        "162 MB from www.cs.toronto.edu",
        "made-up images of stripes",
        insists=False,
    ),
)


def sets() -> Iterator[Finding]:
    for known in KNOWN:
        yield check_data_set(known)


def check_data_set(known: Known) -> Finding:
    """Where a data set would be read from now, or what would be used instead."""
    get = f"Put {known.files} into a folder and set TFLAB_DATA_DIR to it."
    try:
        given = files.given_folder(None, known.files)
        if given and (refusal := reason_unreadable(known, given)) is None:
            return Finding("Data", known.name, f"in {given}, as published")
        if given and known.insists:
            return Finding("Data", known.name, refusal or "", WRONG, f"{get} Or unset it.")
        cached = files.cache_folder(known.cache)
    except TflabError as error:
        return Finding("Data", known.name, str(error), WRONG, get)
    refusal = reason_unreadable(known, cached)
    if refusal is None:
        return Finding("Data", known.name, f"in {cached}, as published", FINE)
    if os.environ.get("TFLAB_OFFLINE", "0") not in ("", "0"):
        state = f"not here, and TFLAB_OFFLINE forbids a download: {known.stand_in} stand in"
        return Finding("Data", known.name, state, NOTE, get)
    state = f"not here: the first use downloads {known.download}"
    return Finding(
        "Data", known.name, state, NOTE, f"Without a network, {known.stand_in} stand in. {get}"
    )


def reason_unreadable(known: Known, folder: Path) -> str | None:
    """Why the data set cannot be read from a folder, or None."""
    module = importlib.import_module(known.module)
    try:
        for split in SPLITS:
            module.read_split(folder, split)
    except TflabError as error:
        return str(error)
    return None
