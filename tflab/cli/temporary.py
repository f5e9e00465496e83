"""Temporary: a temporary folder of this process and its children, removed when it ends.

A killed process leaves its folder. Each process locks its own, and removes the old ones that nobody
has locked.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tflab.errors import TflabError

PREFIX = "tflab-process-"
OLD_S = 60  # a younger folder may not be locked yet


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
    atexit.register(remove, made, os.getpid())
    with suppress(OSError):  # file systems without locks, and a confined process
        lock(made)
        remove_left_behind(made.parent)
    return made


def lock(folder: Path) -> int:
    """Lock a folder until this process ends, or closes the descriptor that is returned. Raise
    OSError if another process holds the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_left_behind(parent: Path) -> None:
    """Remove the folders of processes that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.lstat().st_mtime > OLD_S:
                descriptor = lock(folder)
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def remove(made: Path, process: int) -> None:
    """Remove the temporary folder, unless this is a fork of its process."""
    if os.getpid() == process:
        shutil.rmtree(made, ignore_errors=True)


def remove_now() -> None:
    """Remove the temporary folder of a process that ends without `atexit`."""
    if process_folder.cache_info().currsize:
        remove(process_folder(), os.getpid())


def file() -> BinaryIO:
    """Return a temporary file; if there is no folder for it, a file that keeps nothing."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "w+b")
