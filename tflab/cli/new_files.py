"""New files: written completely or not at all, and never over an existing file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tflab import atomic
from tflab.cli import command, confined, logdirs
from tflab.errors import TflabError, UsageError


def write(path: Path, content: bytes | Path, what: str) -> None:
    """Write a complete file or none; `content` may be a file with it. Its name is reserved first,
    so that no other file is replaced.

    Raises UsageError, in which it is called `what`, if there is such a file or none can be written,
    TflabError if the disk is full. A confined process writes into the folder that it received for
    the file.
    """
    if granted := confined.output("--save"):
        fill(granted[0] / CONTENT, content)
        confined.finish("--save")
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    reserved = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fill(draft, content)
        path.open("x").close()
        reserved = True
        os.replace(draft, path)
    except OSError as error:
        if reserved:
            path.unlink()
        elif os.path.lexists(path):
            raise already_exists(path, what) from error
        if error.errno in command.NO_ROOM:
            raise TflabError(
                f"The {what} '{path}' cannot be written: {error.strerror}. Nothing was written; "
                f"free some space there, or give another path."
            ) from error
        raise unwritable(path, what, error) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def fill(path: Path, content: bytes | Path) -> None:
    if isinstance(content, Path):
        shutil.copyfile(content, path)
    else:
        path.write_bytes(content)


CONTENT = "content"


@contextmanager
def place(path: Path, what: str) -> Iterator[logdirs.Run]:
    """The place where a confined process writes a file, which then gets its name."""
    check(path, what)
    with atomic.temporary("file") as work:
        yield logdirs.Run(work, path)
        write(path, (work / CONTENT).read_bytes(), what)


def check(path: Path, what: str) -> None:
    """Raise UsageError if this name cannot be used, before anything is computed."""
    if os.path.lexists(path):
        raise already_exists(path, what)
    try:
        folder = next(place for place in path.absolute().parents if place.exists())
        draft = folder / f".{path.name}.{os.getpid()}"
        draft.open("x").close()
        draft.unlink()
    except OSError as error:
        raise unwritable(path, what, error) from error


def already_exists(path: Path, what: str) -> UsageError:
    return UsageError(f"The {what} '{path}' exists already; remove it or give another path.")


def unwritable(path: Path, what: str, error: OSError) -> UsageError:
    return UsageError(
        f"The {what} '{path}' cannot be written: {error.strerror}. "
        "Give a path that you may write to."
    )
