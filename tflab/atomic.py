"""Atomic folders: created under a temporary name, renamed when complete, and locked by their
process.

A lock ends with its process, however that ends. A folder without a lock was left by a killed
process; the next process that works in the same place removes it.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

with suppress(ImportError):
    import fcntl

# Windows cannot open, and so cannot lock, a folder: there no folder counts as left over.
DIRECTORY = getattr(os, "O_DIRECTORY", None)
UNFINISHED = ".tflab-unfinished"  # suffix of incomplete results, whose names begin with a dot
# The temporary folder of a process, with its id
TEMPORARY = re.compile(r"tflab-\d+-[a-z0-9_]{8}\.tmp")


class TakenError(Exception):
    """Another running process is writing to this name."""


@contextmanager
def new_folder_beside(final: Path) -> Iterator[Path]:
    """A new folder next to `final` for its content; removed at the end, unless it was renamed.

    Only one process at a time has it. Raises TakenError if another process has it, and OSError if
    it cannot be written. Folders of killed processes in the same place are removed.
    """
    remove_dead(final.parent.glob(f".*{UNFINISHED}"))
    work = temporary_name(final)
    while True:
        try:
            work.mkdir()
        except FileExistsError:
            remove_dead([work])
            if os.path.lexists(work):
                raise TakenError(work) from None
            continue
        lock = locked(work)
        if lock is not None:
            break
    try:
        yield work
    finally:
        if DIRECTORY is None or is_at(work, lock):
            shutil.rmtree(work, ignore_errors=True)
        os.close(lock)


def temporary_name(final: Path) -> Path:
    """The temporary name of a result."""
    return final.with_name(f".{final.name}{UNFINISHED}")


@contextmanager
def temporary(purpose: str) -> Iterator[Path]:
    """A new folder in the temporary folder of this process, removed at the end of the context."""
    with tempfile.TemporaryDirectory(prefix=f"{purpose}-", dir=process_folder()) as folder:
        yield Path(folder)


@functools.cache
def process_folder() -> Path:
    """The temporary folder of this process and its children, removed when the process ends."""
    place = Path(tempfile.gettempdir())
    remove_dead(temporary_in(place))
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"tflab-{os.getpid()}-", suffix=".tmp", dir=place))
        # It stays open, and therefore locked, until the process ends
        if locked(folder) is not None:
            atexit.register(remove_own, folder, os.getpid())
            return folder


def remove_own(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)


def temporary_in(place: Path) -> Iterator[Path]:
    """The temporary folders of all processes, running and killed."""
    return (path for path in place.glob("tflab-*.tmp") if TEMPORARY.fullmatch(path.name))


# Locks


def locked(folder: Path) -> int | None:
    """The descriptor that holds the lock of a new folder; None if another process took the folder
    for a leftover and removes it."""
    if DIRECTORY is None:
        return os.open(os.devnull, os.O_RDONLY)
    try:
        descriptor = os.open(folder, os.O_RDONLY | DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        taken = False
    except BlockingIOError:
        taken = True
    except OSError:  # a file system without locks: no folder counts as left over
        taken = False
    if taken or not is_at(folder, descriptor):
        os.close(descriptor)
        return None
    return descriptor


def remove_dead(folders: Iterable[Path]) -> None:
    """Remove the folders of this user that no process has locked."""
    for folder in folders:
        with lock_if_free(folder) as dead:
            if dead:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def lock_if_free(folder: Path) -> Iterator[bool]:
    """Whether no process has locked this folder; inside the context no process can lock it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (OSError, AttributeError):
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        dead = os.fstat(descriptor).st_uid == os.geteuid() and is_at(folder, descriptor)
    except (OSError, AttributeError):  # another process has it, or there are no locks here
        dead = False
    try:
        yield dead
    finally:
        os.close(descriptor)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the folder of this name is still the opened one."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
