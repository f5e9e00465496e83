"""New files and logdirs: written completely or not at all, and never over an existing one."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from tflab import atomic
from tflab.cli import command, confined
from tflab.errors import TflabError, UsageError
from tflab.escaping import visible

RUNS = Path("runs")


@dataclass(frozen=True)
class Run:
    """The folder of a run: where it is written, and its final name."""

    work: Path
    final: Path


def choose_run_folder(given: str | None, model: str) -> Path:
    """The folder for a run: the given one if it is new or empty, otherwise a new one inside it."""
    return next(run_names(given, model))


def run_names(given: str | None, model: str) -> Iterator[Path]:
    """The possible names of a run, the best first."""
    folder = Path(given) if given else RUNS
    try:
        if given and takable(folder):
            yield folder
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    name = re.sub(r"[^\w.-]+", "-", model).strip(".-") or "model"
    stamp = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    numbered = (stamp if index == 1 else f"{stamp}-{index}" for index in count(1))
    yield from (folder / name for name in numbered if not (folder / name).exists())


def takable(folder: Path) -> bool:
    """Whether a finished run can take this name: it is free, or an empty folder has it."""
    if not os.path.lexists(folder):
        return True
    replaceable = (
        not folder.is_symlink() and not os.path.ismount(folder) and not folder.samefile(".")
    )
    return replaceable and folder.is_dir() and not any(folder.iterdir())


@contextmanager
def new_run(given: str | None, model: str) -> Iterator[Run]:
    """Like `new_folder`, for a run: if another run has its name, it takes the next one.

    A single folder that was given for a new run cannot be used by two runs.
    """
    with ExitStack() as stack:
        if granted := confined.output("--logdir"):
            yield Run(*granted)
            confined.finish("--logdir")
            return
        for final in run_names(given, model):
            try:
                run = Run(stack.enter_context(in_the_making(final, "--logdir")), final)
                break
            except atomic.TakenError as error:
                if given and final == Path(given) and takable(final):
                    raise being_written(final, "--logdir") from error
        yield run


@contextmanager
def new_folder(final: Path, option: str = "--logdir") -> Iterator[Path]:
    """A folder to write to, which gets its name once it is complete, and is removed after a
    failure.

    Raises UsageError, before anything is computed, if nothing can be written there, or another
    process is writing to it; the error names the `option` that gave the folder.
    """
    if granted := confined.output(option):
        yield granted[0]
        confined.finish(option)
        return
    with ExitStack() as stack:
        try:
            work = stack.enter_context(in_the_making(final, option))
        except atomic.TakenError as error:
            raise being_written(final, option) from error
        yield work


@contextmanager
def folder_place(final: Path, folder: AbstractContextManager[Path]) -> Iterator[Run]:
    """The place of an output from the context of its folder."""
    with folder as work:
        yield Run(work, final)


@contextmanager
def in_the_making(final: Path, option: str) -> Iterator[Path]:
    with ExitStack() as stack:
        try:
            for folder_place in (final, *final.parents):
                if folder_place.exists() and not folder_place.is_dir():
                    raise NotADirectoryError(errno.ENOTDIR, f"'{folder_place}' is not a folder")
            final.parent.mkdir(parents=True, exist_ok=True)
            work = stack.enter_context(atomic.new_folder_beside(final))
            if not takable(final):  # since its name was chosen
                raise atomic.TakenError(final)
        except OSError as error:
            raise unwritable_folder(final, error, option) from error
        try:
            yield work
            if any(work.iterdir()):
                rename_folder(work, final)
        except OSError as error:
            if error.errno in command.NO_ROOM:
                raise disk_full(final, error) from error
            raise


def rename_folder(work: Path, final: Path) -> None:
    """Give a finished folder its name, or the next name if another process took it meanwhile."""
    for number in count(1):
        name = final if number == 1 else final.with_name(f"{final.name}-{number}")
        try:
            if takable(name):
                with suppress(FileNotFoundError):
                    # Windows does not rename a folder to an existing name, even of an empty folder
                    name.rmdir()
                os.replace(work, name)
                break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
    if name != final:
        raise TflabError(
            f"Another process wrote '{final}' in the meantime; the result is in '{name}'."
        )


def being_written(folder: Path, option: str) -> UsageError:
    return UsageError(
        f"Another run is writing '{folder}' now; wait for it, or give another folder with {option}."
    )


def disk_full(folder: Path, error: OSError) -> TflabError:
    return TflabError(
        f"'{folder}' cannot be written: {error.strerror}. Nothing was written; free some space "
        f"there, or give another folder."
    )


def unwritable_folder(folder: Path, error: OSError, option: str = "--logdir") -> UsageError:
    what = "logdir" if option == "--logdir" else "folder"
    return UsageError(
        f"The {what} '{folder}' cannot be written: {error.strerror}. "
        f"Give {option} a folder that you may write to."
    )


def opening_line(logdir: Path) -> str:
    """The command to open it, with a path if the shell would not find tensorboard."""
    program = "tensorboard"
    installed = Path(sys.executable).with_name(program)
    if shutil.which(program) is None and installed.exists():
        program = os.path.relpath(installed)
    return f"{program} --logdir {visible(shlex.quote(os.fspath(logdir)))}"


def write_listings(folder: Path, listings: Mapping[str, str]) -> None:
    """Write text files into a new folder; a name with a path is refused."""
    folder.mkdir(parents=True)
    for name, content in listings.items():
        if Path(name).name != name:
            raise ValueError(f"'{name}' is not the name of a file")
        (folder / name).write_text(content, "utf-8")


# Files


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
def file_place(path: Path, what: str) -> Iterator[Run]:
    """The place where a confined process writes a file, which then gets its name."""
    check(path, what)
    with atomic.temporary("file") as work:
        yield Run(work, path)
        write(path, (work / CONTENT).read_bytes(), what)


def check(path: Path, what: str) -> None:
    """Raise UsageError if this name cannot be used, before anything is computed."""
    if os.path.lexists(path):
        raise already_exists(path, what)
    try:
        folder = next(file_place for file_place in path.absolute().parents if file_place.exists())
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
