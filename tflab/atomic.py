"""Atomic folders: made under another name, renamed when complete; their process holds their lock.

A lock goes with its process, however that ends. What nobody holds was left by a process that was
killed, and the next one that works in the same place removes it.
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

# Windows cannot open a folder, and so has no locks of one: there nothing is taken for left.
DIRECTORY = getattr(os, "O_DIRECTORY", None)
UNFINISHED = ".tflab-unfinished"  # how names of results in the making end; they begin with a dot
# Of a process, by its number
TEMPORARY = re.compile(r"tflab-\d+-[a-z0-9_]{8}\.tmp")


class TakenError(Exception):
    """Another process, which is still running, is making something of this name."""


@contextmanager
def claimed(final: Path) -> Iterator[Path]:
    """A new folder beside `final` for what it will be; gone at the end, unless it was renamed.

    No two processes have it at once. Raises TakenError while another one does, and OSError where
    nothing can be written. What killed processes left beside it is removed.
    """
    remove_dead(final.parent.glob(f".*{UNFINISHED}"))
    work = unfinished(final)
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


def unfinished(final: Path) -> Path:
    """Where something is until it gets its name."""
    return final.with_name(f".{final.name}{UNFINISHED}")


@contextmanager
def temporary(purpose: str) -> Iterator[Path]:
    """A new folder among the temporary ones of this process, which is gone at the end."""
    with tempfile.TemporaryDirectory(prefix=f"{purpose}-", dir=process_folder()) as folder:
        yield Path(folder)


@functools.cache
def process_folder() -> Path:
    """The temporary folder of this process, for itself and its children, which goes with it."""
    place = Path(tempfile.gettempdir())
    remove_dead(temporary_in(place))
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"tflab-{os.getpid()}-", suffix=".tmp", dir=place))
        if locked(folder) is not None:  # and it stays open, so locked, until the process ends
            atexit.register(remove_own, folder, os.getpid())
            return folder


def remove_own(folder: Path, process: int) -> None:
    if os.getpid() == process:  # and not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


def temporary_in(place: Path) -> Iterator[Path]:
    """The temporary folders of processes, of those that run and of those that were killed."""
    return (path for path in place.glob("tflab-*.tmp") if TEMPORARY.fullmatch(path.name))


# Locks


def locked(folder: Path) -> int | None:
    """The descriptor that holds the lock of a folder that was just made; None where another
    process took it for one that was left, and removes it."""
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
    except OSError:  # a file system without locks, on which nothing is taken for left either
        taken = False
    if taken or not is_at(folder, descriptor):
        os.close(descriptor)
        return None
    return descriptor


def remove_dead(folders: Iterable[Path]) -> None:
    """Remove those of these folders that belong to this user and whose lock nobody holds."""
    for folder in folders:
        with unheld(folder) as dead:
            if dead:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def unheld(folder: Path) -> Iterator[bool]:
    """Whether nobody holds the lock of this folder; as long as this is open nobody can take it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (OSError, AttributeError):
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        dead = os.fstat(descriptor).st_uid == os.geteuid() and is_at(folder, descriptor)
    except (OSError, AttributeError):  # another process holds it, or there are no locks here
        dead = False
    try:
        yield dead
    finally:
        os.close(descriptor)


def is_at(path: Path, descriptor: int) -> bool:
    """Whether this is still the folder of that name."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
