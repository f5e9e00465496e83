"""Logdirs: a new folder for every run. Nothing is overwritten, nothing is left half-written."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path

from tflab.cli import command
from tflab.errors import TflabError, UsageError

RUNS = Path("runs")


def choose(given: str | None, model: str) -> Path:
    """The folder for a run: the one given while it is new or empty, else one of its own in it."""
    folder = Path(given) if given else RUNS
    try:
        if given and takable(folder):
            return folder
    except OSError as error:
        raise unwritable(folder, error) from error
    name = re.sub(r"[^\w.-]+", "-", model).strip(".-") or "model"
    stamp = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    names = (stamp if index == 1 else f"{stamp}-{index}" for index in count(1))
    return next(folder / name for name in names if not (folder / name).exists())


def takable(folder: Path) -> bool:
    """Whether a finished run can take this name: it is free, or an empty folder's."""
    if not os.path.lexists(folder):
        return True
    replaceable = (
        not folder.is_symlink() and not os.path.ismount(folder) and not folder.samefile(".")
    )
    return replaceable and folder.is_dir() and not any(folder.iterdir())


@contextmanager
def new_folder(final: Path, option: str = "--logdir") -> Iterator[Path]:
    """A folder to write to, which bears its name once all is in it, and is gone after a failure.

    Raises UsageError, before anything is computed, when nothing can be written there; it names the
    `option` that the folder was given with.
    """
    try:
        for place in (final, *final.parents):
            if place.exists() and not place.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"'{place}' is not a folder")
        final.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    except OSError as error:
        raise unwritable(final, error, option) from error
    try:
        yield work
        work.chmod(0o755)  # mkdtemp's folders are for their owner only
        os.replace(work, final)
    except BaseException as error:
        shutil.rmtree(work, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in command.NO_ROOM:
            raise full(final, error) from error
        raise


def full(folder: Path, error: OSError) -> TflabError:
    return TflabError(
        f"'{folder}' cannot be written: {error.strerror}. Nothing of it was kept; make room there, "
        "or give another folder."
    )


def unwritable(folder: Path, error: OSError, option: str = "--logdir") -> UsageError:
    what = "logdir" if option == "--logdir" else "folder"
    return UsageError(
        f"The {what} '{folder}' cannot be written: {error.strerror}. "
        f"Give {option} a folder that you may write to."
    )


def opening_line(logdir: Path) -> str:
    """What to type to see it, with a path where the shell would not find tensorboard."""
    program = "tensorboard"
    beside = Path(sys.executable).with_name(program)
    if shutil.which(program) is None and beside.exists():
        program = os.path.relpath(beside)
    return f"{program} --logdir {logdir}"


def write_listings(folder: Path, listings: Mapping[str, str]) -> None:
    """Write text files into a new folder; a name that is more than a name is refused."""
    folder.mkdir(parents=True)
    for name, content in listings.items():
        if Path(name).name != name:
            raise ValueError(f"'{name}' is not the name of a file")
        (folder / name).write_text(content, "utf-8")
