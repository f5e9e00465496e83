"""Temporary: a temporary folder of this process and its children, removed when it ends.

A killed process leaves its folder. Each process locks its own, and the next one removes those of
processes that have ended, unless they are locked.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tflab.errors import TflabError

PREFIX = "tflab-"


@contextmanager
def folder(purpose: str) -> Iterator[Path]:
    """Make a folder in the temporary folder of this process; it is removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"{purpose}-", dir=process_folder()) as name:
        yield Path(name)


@functools.cache
def process_folder() -> Path:
    """Return the temporary folder of this process. Raise TflabError if none can be made."""
    try:
        made = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    except OSError as error:
        raise TflabError(
            f"No temporary folder can be written: {error.strerror}. Set TMPDIR to a folder that "
            "you may write to."
        ) from error
    atexit.register(remove, made, os.getpid())
    with suppress(OSError):  # file systems without locks, and a confined process
        locked(made)
        remove_left_behind(made.parent)
    return made


def locked(folder: Path) -> int:
    """Lock a folder of this user; the lock ends with the process. Raise OSError if another process
    holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_left_behind(parent: Path) -> None:
    """Remove the folders of processes that were killed. Another container has processes that are
    not seen here, and their locks are."""
    for folder in parent.glob(f"{PREFIX}*-*"):
        with suppress(OSError, ValueError):  # not one of tflab
            if has_ended(int(folder.name.split("-")[1])):
                descriptor = locked(folder)
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def remove(made: Path, process: int) -> None:
    """Remove the temporary folder, unless this is a fork of its process."""
    if os.getpid() == process:
        shutil.rmtree(made, ignore_errors=True)


def remove_now() -> None:
    """Remove the temporary folder of a process that ends without `atexit`."""
    if process_folder.cache_info().currsize:
        remove(process_folder(), os.getpid())


def file() -> BinaryIO:
    """Return a temporary file; if there is no folder for it, one that keeps nothing."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return open(os.devnull, "w+b")
