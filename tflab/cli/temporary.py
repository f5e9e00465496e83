"""Temporary: a temporary folder of this process and its children, removed when it ends."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tflab.errors import TflabError

PREFIX = "tflab-work-"


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """Make a folder in the temporary folder of this process; it is removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"{purpose}-", dir=process_folder()) as name:
        yield Path(name)


@functools.cache
def process_folder() -> Path:
    """Return the temporary folder of this process. Raise TflabError if none can be made."""
    try:
        made = Path(tempfile.mkdtemp(prefix=PREFIX))
    except OSError as error:
        raise TflabError(
            f"No temporary folder can be written: {error.strerror}. Set TMPDIR to a folder that "
            "you may write to."
        ) from error
    atexit.register(remove, os.getpid())
    return made


def remove(process: int | None = None) -> None:
    """Remove the temporary folder, unless this process is a fork of `process`, which made it."""
    if process in (None, os.getpid()) and process_folder.cache_info().currsize:
        shutil.rmtree(process_folder(), ignore_errors=True)


def file() -> BinaryIO:
    """Return a temporary file. If none can be made, return a file that keeps nothing."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "w+b")
