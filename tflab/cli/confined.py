"""Confined: a command works on a graph from a file in one process that the kernel confines first.

The kernel needs no knowledge of graphs. Before the process opens the file, it gives up all rights
but these, permanently and for all processes that it starts: it reads Python, the packages, the
system's libraries, the model and the files of `--feed`; it writes a temporary folder and the
results that the user asked for; it has no network. `run` starts the process, watches it, and moves
the results to their final names. `main` is what the process does.
"""

from __future__ import annotations

import glob
import importlib
import json
import os
import re
import select
import shutil
import signal
import site
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tflab
from tflab import untrusted
from tflab.cli import environment, interrupts, landlock, temporary
from tflab.errors import TflabError, UsageError
from tflab.units import size

with suppress(ImportError):  # Windows has neither this nor Landlock
    import resource

GIVEN = "TFLAB_CONFINED"  # the variable with the rights of the process
IMPORT_S = 120  # time limit for importing a graph
LEAST_BYTES = 2**30  # memory limit for an import, plus BYTES_PER_BYTE per byte of the graph
BYTES_PER_BYTE = 16
SPARED = 2**30  # free memory in bytes that the process must leave
PATIENCE_S = 20.0  # time limit for an interrupted process to end by itself
PARTIAL = "partial"  # the document of the stages so far, if the process is killed
ENABLED = True  # tests that call commands in their own process switch the confinement off

# Files of the system that Python and TensorFlow read; many exist on some systems only. Of /proc
# there are single files: a folder of a process has its environment.
SYSTEM = (
    *("/usr", "/lib", "/lib64", "/opt/intel", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/fonts", "/etc/mime.types"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system"),
    *("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    *("/dev/urandom", "/dev/random"),
)
# The variables that the process keeps: the language, the terminal, and how TensorFlow computes
KEPT = (
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONUTF8", "PYTHONIOENCODING"),
    *("TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
    *("TF_ENABLE_ONEDNN_OPTS", "TF_CPP_MIN_LOG_LEVEL", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)
# The parts of a SavedModel's folder
SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")
PARTS = (*SAVED_MODELS, "fingerprint.pb", "variables", "assets", "assets.extra", "debug")
SPARSE_BYTES, SPARSE = 2**30, 20  # a larger file that occupies less than this part of its size
UNCONFINED = (
    "nothing confines this process, which Linux does with Landlock (5.13 and later). --trust runs "
    "the graph without"
)


@dataclass(frozen=True)
class Rights:
    """The rights of a confined process."""

    readable: tuple[str, ...]
    temporary: str  # its temporary folder, which it may write to
    outputs: Mapping[str, tuple[str, str]]  # option -> (folder to write to, final name)
    memory: int = 0  # limit in bytes; 0: none
    passed: int = -1  # a descriptor on which it reports the import of the graph
    unimported: str = ""  # why TensorFlow must not import the graph: it is only parsed


CONFINED: Rights | None = None  # of this process
MEMORY = -1  # the open file with the memory of this process, which it could not open later


def is_available() -> bool:
    return landlock.abi() > 0 and landlock.can_filter()


def is_wanted(from_file: bool, trusted: bool) -> bool:
    """Return whether a command must run in a confined process for this model."""
    wanted = from_file and not trusted and CONFINED is None and ENABLED
    return wanted and is_available()


def unimported(trusted: bool) -> str:
    """Return why TensorFlow must not import a graph from a file; "" if it may."""
    if CONFINED:
        return CONFINED.unimported
    return "" if trusted or not ENABLED else UNCONFINED


# The process that starts the confined one


def run(
    command: str,
    argv: Sequence[str] | None,
    args: Any,
    outputs: Mapping[str, AbstractContextManager[Any]],
    readable: Sequence[str] = (),
) -> int:
    """Run `python -m tflab.COMMAND ARGV` in a confined process; return its exit status.

    `args` are the parsed arguments. `outputs` are contexts that give the places to write to, by
    option; each is left in the same way as without confinement. `readable` are files that the
    arguments name, in addition to the model.

    Raises UsageError, before anything is opened, for a model that is more than plain files.
    """
    if getattr(args, "cluster", None):
        raise UsageError(
            "--cluster needs --trust for a graph from a file: its confined process has no network."
        )
    feeds = [file for _, file in getattr(args, "feed", ())]
    for file in feeds:
        check_plain(Path(file))
    model = model_files(Path(args.model))
    with ExitStack() as stack:
        folder = stack.enter_context(temporary.folder("confined"))
        keep_fonts(folder)
        (folder / "python").mkdir()
        (folder / "python" / "tflab").symlink_to(Path(tflab.__file__).parent)
        places = {option: enter(stack, context, folder) for option, context in outputs.items()}
        rights = Rights(
            readable=(*SYSTEM, *installed(), *map(str, model), *feeds, *readable),
            temporary=str(folder),
            outputs={option: (str(work), str(final)) for option, (work, final) in places.items()},
            memory=memory_limit(),
        )
        words = sys.argv[1:] if argv is None else argv
        status = attempt(command, words, rights)
        if isinstance(status, str):
            status = attempt(command, words, replace(rights, unimported=status))
        if isinstance(status, str):
            raise TflabError(f"The graph '{args.model}' cannot be shown: {status}.")
        return status


class UnfinishedError(Exception):
    """The confined process did not complete an output, which is discarded."""


def enter(
    stack: ExitStack, context: AbstractContextManager[Any], folder: Path
) -> tuple[Path, Path]:
    """Enter the context of an output. It is left with an error unless the process completed the
    output."""
    place = context.__enter__()

    def leave(kind: Any, error: Any, trace: Any) -> bool:
        if kind is None and not (folder / mark(place.final)).exists():
            with suppress(UnfinishedError):
                context.__exit__(UnfinishedError, UnfinishedError(), None)
            return False
        return bool(context.__exit__(kind, error, trace))

    stack.push(leave)
    return place.work, place.final


def attempt(command: str, argv: Sequence[str], rights: Rights) -> int | str:
    """Return the exit status of the confined process; or a reason, if it ended before TensorFlow
    had imported the graph."""
    reading, writing = os.pipe()
    own_variables = {
        GIVEN: json.dumps(asdict(replace(rights, passed=writing))),
        "HOME": rights.temporary,
        "TMPDIR": rights.temporary,
        "PYTHONPATH": str(Path(rights.temporary, "python")),
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONSAFEPATH": "1",
    }
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    sys.stdout.flush()
    try:
        with (
            subprocess.Popen(
                [*python(), "-m", "tflab.cli.confined", command, *argv],
                env={**kept, **own_variables},
                stdin=subprocess.DEVNULL,
                stderr=standard_error(),
                pass_fds=[writing],
                start_new_session=True,  # a terminal's Ctrl-C reaches it only through this process
            ) as process,
        ):
            os.close(writing)
            writing = -1
            try:
                return watched(process, reading, rights)
            except KeyboardInterrupt:
                return interrupted(process)
            finally:
                process.kill()
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)


def python() -> list[str]:
    """Return the command that starts Python in a confined process: through its ELF loader.

    TensorFlow reads the command line of a program called python from /proc, and ends it if it
    cannot (`GetExecutablePath` in tsl/platform/env.cc, 2.21). Started like this, the program in
    /proc/self/exe is the loader.
    """
    with suppress(OSError), open(sys.executable, "rb") as program:
        loader = re.search(rb"(/[\w./+-]*/ld[\w.-]*\.so[\w.]*)\0", program.read(4096))
        if loader and os.access(loader[1], os.X_OK):
            return [os.fsdecode(loader[1]), sys.executable]
    return [sys.executable]


def standard_error() -> int | None:
    """Return the file of Python's standard error; `command` redirects only that of C++."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def keep_fonts(home: Path) -> None:
    """Copy Matplotlib's list of fonts into the home of the process; making it takes seconds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "matplotlib")
    copy = home / ".cache" / "matplotlib"
    copy.mkdir(parents=True)
    for path in cache.glob("fontlist-*.json"):
        shutil.copy(path, copy)


def watched(process: subprocess.Popen[bytes], reading: int, rights: Rights) -> int | str:
    began = time.monotonic()
    begun = bool(os.read(reading, 1))  # empty if the process ends before
    late = begun and not select.select([reading], [], [], IMPORT_S)[0]
    if late:
        process.kill()
    imported = not late and begun and bool(os.read(reading, 1))
    status = process.wait()
    if late:
        return f"TensorFlow did not import it within {IMPORT_S} s"
    if status >= 0:
        return status
    name = signal.Signals(-status).name
    if not imported:
        return f"TensorFlow's process ended with {name} while it imported the graph"
    with suppress(OSError):
        print(Path(rights.temporary, PARTIAL).read_text(encoding="utf-8"))
    raise TflabError(
        f"The graph ended the process that ran it, with {name} after "
        f"{time.monotonic() - began:.0f} s."
    )


def interrupted(process: subprocess.Popen[bytes]) -> int:
    """Interrupt the process too, wait for it, and kill it if it does not end."""
    came = interrupts.current.signal if interrupts.current else None
    process.send_signal(came or signal.SIGINT)
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise KeyboardInterrupt from None


def memory_limit() -> int:
    """Return the bytes that the process may use; 0 if the system does not report free memory."""
    free = environment.free_memory()
    return 0 if free is None else max(2 * SPARED, free - SPARED)


def installed() -> list[str]:
    """Return the folders of Python and of its packages. A folder that only PYTHONPATH names may
    contain anything, unless its name says that it holds packages."""
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages()]
    folders += [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [*dict.fromkeys(folders), str(Path(tflab.__file__).parent)]


# The files of a model


def model_files(model: Path) -> list[Path]:
    """Return the files of a model, and nothing beside them: the parts of a SavedModel's folder; or
    a file with the checkpoint of exactly the same stem.

    Raises UsageError for a pipe, a device, a link out of the model, and a file larger than memory.
    """
    if model.name in SAVED_MODELS:
        model = model.parent
    if not model.is_dir():
        if os.path.lexists(model):
            check_plain(model)
        stem = glob.escape(str(model.with_suffix("")))
        beside = sorted(glob.glob(f"{stem}.index") + glob.glob(f"{stem}.data-?????-of-?????"))
        checkpoint = [Path(path) for path in beside if Path(path) != model]
        for path in checkpoint:
            check_own(path, None)
        return [model, *checkpoint]
    if not any((model / name).is_file() for name in SAVED_MODELS):
        entries = ", ".join(sorted(entry.name for entry in model.iterdir())[:5]) or "nothing"
        raise UsageError(
            f"The folder '{model}' has no saved_model.pb, but {entries}. Give the folder of a "
            "SavedModel, or a file with a graph."
        )
    parts = [model / name for name in PARTS if os.path.lexists(model / name)]
    for part in parts:
        check_own(part, model)
        for folder, folders, files in os.walk(part):
            for name in (*folders, *files):
                check_own(Path(folder, name), model)
    return parts


def check_own(path: Path, folder: Path | None) -> None:
    """Raise UsageError if a part of a model is not a plain file or folder, or links to one outside
    of the model's folder."""
    if path.is_symlink():
        real = Path(os.path.realpath(path))
        own = [Path(os.path.realpath(folder), part) for part in PARTS] if folder else []
        if not any(map(real.is_relative_to, own)):
            raise UsageError(
                f"'{path}' is a link to another place, and tflab does not follow it. Replace it by "
                "a copy of the file, for example with cp -L."
            )
    if not path.is_dir():
        check_plain(path)


def check_plain(path: Path) -> None:
    """Raise UsageError if this is not a regular file that fits into memory. Nothing is opened."""
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}.") from error
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        why = untrusted.KINDS.get(kind, "it is not a file")
        raise UsageError(f"'{path}' cannot be read: {why}.")
    occupied = getattr(status, "st_blocks", status.st_size) * 512
    if status.st_size > SPARSE_BYTES and occupied < status.st_size // SPARSE:
        raise UsageError(
            f"'{path}' cannot be read: it has {size(status.st_size)}, of which only "
            f"{size(occupied)} are written."
        )
    free = environment.free_memory()
    if free is not None and status.st_size > free:
        raise UsageError(
            f"'{path}' cannot be read: it has {size(status.st_size)}, but only {size(free)} of "
            "memory is free."
        )


# The confined process


def main() -> int:
    """Confine this process, then run the command."""
    global CONFINED, MEMORY
    given = json.loads(os.environ.pop(GIVEN))
    given["outputs"] = {option: tuple(pair) for option, pair in given["outputs"].items()}
    CONFINED = rights = Rights(**given)
    MEMORY = os.open("/proc/self/statm", os.O_RDONLY)
    landlock.die_with_parent()
    os.set_inheritable(rights.passed, False)
    if rights.memory:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = rights.memory if hard == resource.RLIM_INFINITY else min(rights.memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    works = [work for work, _ in rights.outputs.values()]
    landlock.confine(rights.readable, [rights.temporary, "/dev/null", *works])
    name, *argv = sys.argv[1:]
    sys.argv = [name, *argv]
    return int(importlib.import_module(f"tflab.{name}.__main__").main(argv))


def mark(final: Path) -> str:
    return f"finished-{final.name}"


def output(option: str) -> tuple[Path, Path] | None:
    """Return the folder to which this process writes the output of an option, and its final
    name."""
    if CONFINED is None or option not in CONFINED.outputs:
        return None
    work, final = map(Path, CONFINED.outputs[option])
    return work, final


def finish(option: str) -> None:
    """Tell the parent that the output of an option is complete."""
    assert CONFINED is not None
    Path(CONFINED.temporary, mark(Path(CONFINED.outputs[option][1]))).touch()


def keep(document: str) -> None:
    """Save the result so far, in case the graph crashes this process."""
    if CONFINED is not None:
        Path(CONFINED.temporary, PARTIAL).write_text(document, encoding="utf-8")


@contextmanager
def importing(path: str) -> Iterator[None]:
    """Open a context in which the graph at this path is imported, with limits of its own."""
    if CONFINED is None:
        yield
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    own_files = (file for file in model_files(Path(path)) if file.is_file())
    bytes_ = sum(file.stat().st_size for file in own_files if ".data-" not in file.name)
    most = used() + LEAST_BYTES + BYTES_PER_BYTE * bytes_
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )
    tell()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        tell()


def used() -> int:
    """Return the bytes of this process that count towards its limit (proc(5): data + stack)."""
    return int(os.pread(MEMORY, 256, 0).split()[5]) * resource.getpagesize()


def tell() -> None:
    """Tell the parent that the import begins or has ended."""
    assert CONFINED is not None
    with suppress(OSError):  # the parent no longer reads
        os.write(CONFINED.passed, b".")


if __name__ == "__main__":
    # By name, because `python -m` loads this module as __main__
    sys.exit(importlib.import_module("tflab.cli.confined").main())
