"""Output paths: files and folders are written under a temporary name beside their own, which they
get when they are complete, and never over an existing one."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from tflab.cli import confined, temporary
from tflab.errors import TflabError, UsageError
from tflab.escaping import visible

RUNS = Path("runs")
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NUMBERS = count(1)  # of the temporary names of this process
CONTENT = "content"  # name of a file that a confined process writes


@dataclass
class Run:
    """The folder of an output: where it is written, and its final name."""

    work: Path
    final: Path


# Files


def write(path: Path, content: bytes, what: str, option: str = "") -> None:
    """Write a complete file or none, as `new_file` does."""
    with new_file(path, what, option) as draft:
        draft.write_bytes(content)


@contextmanager
def new_file(path: Path, what: str, option: str = "") -> Iterator[Path]:
    """Yield a temporary name beside a new file, which gets its own name at the end.

    Raise UsageError, in which it is called `what`, if there is such a file or none can be written,
    TflabError if the disk is full. A confined process writes into the folder that it received for
    the file of this option.
    """
    if granted := confined.output(option):
        yield granted[0] / CONTENT
        confined.finish(option)
        return
    draft = draft_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        publish(draft, path)
    except OSError as error:
        if os.path.lexists(path):
            raise already_exists(path, what) from error
        raise unwritable(path, what, error) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def publish(draft: Path, path: Path) -> None:
    """Give a complete file its name. Raise FileExistsError if that is taken."""
    path.open("x").close()  # so that no other file is replaced
    try:
        os.replace(draft, path)
    except OSError:
        path.unlink()
        raise


@contextmanager
def file_place(path: Path, what: str) -> Iterator[Run]:
    """Yield the place where a confined process writes a file, which then gets its name."""
    check(path, what)
    with temporary.folder("file") as work:
        yield Run(work, path)
        write(path, (work / CONTENT).read_bytes(), what)


def check(path: Path, what: str) -> None:
    """Raise UsageError if this name cannot be used, before anything is computed."""
    if os.path.lexists(path):
        raise already_exists(path, what)
    try:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        draft = folder / draft_of(path).name
        draft.open("x").close()
        draft.unlink()
    except OSError as error:
        raise unwritable(path, what, error) from error


# Folders


@contextmanager
def new_folder(final: Path, option: str = "--logdir") -> Iterator[Path]:
    """Yield a folder to write to, which gets its name at the end, and is removed after a failure.

    Raise UsageError, before anything is computed, if nothing can be written there; the error names
    the `option` that gave the folder. If the name was taken in the meantime, the folder gets
    another one, which a TflabError names.
    """
    with new_output(final, option) as output:
        yield output.work
    if output.final != final:
        raise TflabError(
            f"Another process wrote '{final}' in the meantime; the result is in '{output.final}'."
        )


@contextmanager
def new_run(given: str | None, model: str) -> Iterator[Run]:
    """Yield the folder of a run, as `new_folder` does: the given one if it is new or empty,
    otherwise a new one inside it. If another run takes its name, it gets the next one."""
    with new_output(choose_run_folder(given, model), "--logdir") as run:
        yield run


@contextmanager
def folder_place(final: Path, option: str) -> Iterator[Run]:
    """Yield the place where a confined process writes a folder."""
    with new_folder(final, option) as work:
        yield Run(work, final)


def choose_run_folder(given: str | None, model: str) -> Path:
    """Return the folder for a run: the given one if it is new or empty, otherwise a new one inside
    it."""
    folder = Path(given) if given else RUNS
    try:
        if given and takable(folder):
            return folder
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    name = re.sub(r"[^\w.-]+", "-", model).strip(".-") or "model"
    return free_name(folder / f"{name}-{datetime.now():%Y%m%d-%H%M%S}")


def free_name(path: Path) -> Path:
    """Return a name that a finished folder can take: this one, or this one with a number."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return path if takable(path) else next(filter(takable, numbered))


def takable(folder: Path) -> bool:
    """Return True if the name is free, or an empty folder has it."""
    if not os.path.lexists(folder):
        return True
    replaceable = (
        not folder.is_symlink() and not os.path.ismount(folder) and not folder.samefile(".")
    )
    return replaceable and folder.is_dir() and not any(folder.iterdir())


@contextmanager
def new_output(final: Path, option: str) -> Iterator[Run]:
    """Yield a folder to write to; if it has content, it gets its name at the end."""
    if granted := confined.output(option):
        yield Run(*granted)
        confined.finish(option)
        return
    run = Run(draft_of(final), final)
    try:
        for folder in (final, *final.parents):
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"'{folder}' is not a folder")
        if not takable(final):
            raise UsageError(f"The folder '{final}' is not empty; give {option} a new folder.")
        run.work.mkdir(parents=True)
    except OSError as error:
        raise unwritable_folder(final, error, option) from error
    try:
        yield run
        while any(run.work.iterdir()):
            run.final = free_name(final)
            try:
                os.replace(run.work, run.final)
                break
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise  # it is not that the name was taken since the last line
    except OSError as error:
        if error.errno in NO_ROOM:
            raise TflabError(
                f"'{final}' cannot be written: {error.strerror}. Nothing was written; free some "
                f"space there, or give another folder."
            ) from error
        raise
    finally:
        shutil.rmtree(run.work, ignore_errors=True)


def draft_of(path: Path) -> Path:
    """Return a temporary name beside a file or folder, which no other output has."""
    return path.with_name(f".{path.name}.{os.getpid()}-{next(NUMBERS)}.tmp")


def write_listings(folder: Path, listings: Mapping[str, str]) -> None:
    """Write text files into a new folder; a name with a path is refused."""
    folder.mkdir(parents=True)
    for name, content in listings.items():
        if Path(name).name != name:
            raise ValueError(f"'{name}' is not the name of a file")
        (folder / name).write_text(content, "utf-8")


def opening_line(logdir: Path) -> str:
    """Return the command that opens a logdir, with a path if the shell would not find
    tensorboard."""
    program = "tensorboard"
    installed = Path(sys.executable).with_name(program)
    if shutil.which(program) is None and installed.exists():
        program = os.path.relpath(installed)
    return f"{program} --logdir {visible(shlex.quote(os.fspath(logdir)))}"


# Errors


def already_exists(path: Path, what: str) -> UsageError:
    return UsageError(f"The {what} '{path}' exists already; remove it or give another path.")


def unwritable(path: Path, what: str, error: OSError) -> TflabError:
    sentence = f"The {what} '{path}' cannot be written: {error.strerror}."
    if error.errno in NO_ROOM:
        return TflabError(
            f"{sentence} Nothing was written; free some space there, or give another path."
        )
    return UsageError(f"{sentence} Give a path that you may write to.")


def unwritable_folder(folder: Path, error: OSError, option: str = "--logdir") -> UsageError:
    what = "logdir" if option == "--logdir" else "folder"
    return UsageError(
        f"The {what} '{folder}' cannot be written: {error.strerror}. "
        f"Give {option} a folder that you may write to."
    )
