"""Output paths: files and folders are written under a temporary name beside their own, which they
get when they are complete, and never over an existing one."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from tflab.cli import confined
from tflab.errors import TflabError, UsageError
from tflab.escaping import visible

RUNS = Path("runs")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NUMBERS = count(1)  # of the temporary names of this process


@dataclass
class Run:
    """An output: where it is written, and its final name."""

    work: Path
    final: Path


def write(path: Path, content: bytes, what: str, option: str = "") -> None:
    """Write a complete file or none, as `new` does."""
    with new(path, what, option) as run:
        run.work.write_bytes(content)


@contextmanager
def new(
    final: Path, what: str, option: str = "", folder: bool = False, content: str = ""
) -> Iterator[Run]:
    """Yield a temporary name beside a new file or folder, which gets its final name at the end.

    Only the part `content` of a folder gets the name, if given. A folder gets the next free name if
    another process took its own. A confined process writes to the place that it received for
    `option`. Raise UsageError, in which the output is called `what`, if the file exists already or
    cannot be written, TflabError if the disk is full. After a failure nothing is left.
    """
    granted = confined.output(option)
    path, final = granted or (final, final)
    run = Run(path.parent / f".{path.name}.{os.getpid()}-{next(NUMBERS)}.tmp", final)
    try:
        if not takable(path, folder):
            raise already_exists(path, what)
        path.parent.mkdir(parents=True, exist_ok=True)
        run.work.mkdir() if folder else run.work.touch()
    except OSError as error:
        raise unwritable(path, what, error) from error
    try:
        yield run
        work = run.work / content
        if work.is_dir() and any(work.iterdir()):
            path = free_name(path)
            os.replace(work, path)
        elif work.is_file():
            if not takable(path, folder=False):
                raise already_exists(path, what)
            os.replace(work, path)
        if not granted:
            run.final = path
    except OSError as error:
        if error.errno in NO_ROOM or not folder:
            raise unwritable(path, what, error) from error
        raise
    finally:
        shutil.rmtree(run.work, ignore_errors=True)
        with suppress(OSError):
            run.work.unlink()


def new_run(given: str | None, model: str) -> AbstractContextManager[Run]:
    """Open the folder of a run: the given one if it is new or empty, otherwise a new one in it."""
    granted = confined.output("--logdir")
    final = granted[1] if granted else choose_run_folder(given, model)
    return new(final, "logdir", "--logdir", folder=True)


def place(final: Path, what: str) -> AbstractContextManager[Run]:
    """Open a folder for an output of a confined process. At the end it gets the final name."""
    return new(final, what, folder=True, content=confined.CONTENT)


def check(path: Path, what: str) -> None:
    """Raise UsageError if a file of this name cannot be written, before anything is computed."""
    if not takable(path, folder=False):
        raise already_exists(path, what)
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise unwritable(path, what, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def choose_run_folder(given: str | None, model: str) -> Path:
    """Return the given folder if it is new or empty, otherwise a new one inside it."""
    folder = Path(given) if given else RUNS
    try:
        if given and takable(folder):
            return folder
    except OSError as error:
        raise unwritable(folder, "logdir", error) from error
    name = re.sub(r"[^\w.-]+", "-", model).strip(".-") or "model"
    return free_name(folder / f"{name}-{datetime.now():%Y%m%d-%H%M%S}")


def free_name(path: Path) -> Path:
    """Return a name that a finished folder can take: this one, or this one with a number."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return path if takable(path) else next(filter(takable, numbered))


def takable(path: Path, folder: bool = True) -> bool:
    """Return True if the name is free, or a folder can take it from an empty one."""
    if not os.path.lexists(path):
        return True
    replaceable = folder and not path.is_symlink() and not os.path.ismount(path)
    return replaceable and path.is_dir() and not path.samefile(".") and not any(path.iterdir())


def opening_line(logdir: Path) -> str:
    """Return the command that opens a logdir, with a path if the shell finds no tensorboard."""
    program = "tensorboard"
    installed = Path(sys.executable).with_name(program)
    if shutil.which(program) is None and installed.exists():
        program = os.path.relpath(installed)
    return f"{program} --logdir {visible(shlex.quote(os.fspath(logdir)))}"


def already_exists(path: Path, what: str) -> UsageError:
    return UsageError(f"The {what} '{path}' exists already; remove it or give another path.")


def unwritable(path: Path, what: str, error: OSError) -> TflabError:
    files = [parent for parent in path.parents if parent.exists() and not parent.is_dir()]
    why = f"'{files[0]}' is not a folder" if files else error.strerror
    kind = TflabError if error.errno in NO_ROOM else UsageError
    return kind(f"The {what} '{path}' cannot be written: {why}. Give another path.")
