"""Confined: a command works on a graph from a file in one process that the kernel confines first.

The kernel needs no knowledge of graphs. Before the process opens the file, it gives up all rights
but these, permanently and for all processes that it starts. It may read Python, the packages, the
system's libraries, the model and the files of `--feed`. It may write a temporary folder and the
results that the user asked for. It has no network. `run` starts the process and waits for it.
`main` is what the process does.
"""

from __future__ import annotations

import glob
import importlib
import json
import os
import re
import signal
import site
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tflab
from tflab.cli import environment, interrupts, landlock, temporary, terminal
from tflab.errors import TflabError, UsageError

with suppress(ImportError):  # Windows has neither this nor Landlock
    import resource

GIVEN = "TFLAB_CONFINED"  # the variable with the rights of the process
SPARED = 2**30  # free memory in bytes that the process must leave
PATIENCE_S = 20.0  # time limit for an interrupted process to end by itself
CONTENT = "content"  # the name of an output in its place
ENABLED = True  # tests that call commands in their own process switch the confinement off

# Files of the system that Python and TensorFlow read; many exist on some systems only. All of /proc
# would be too much: the folder of a process contains its environment.
SYSTEM = (
    *("/usr", "/lib", "/lib64", "/opt/intel", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/fonts", "/etc/mime.types"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system"),
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
PARTS = (*SAVED_MODELS, "fingerprint.pb", "variables", "assets", "assets.extra")
UNCONFINED = (
    "`train` confines no process, and others need Landlock (Linux 5.13 and later). --trust runs "
    "the graph unconfined"
)


@dataclass(frozen=True)
class Rights:
    """The rights of a confined process."""

    readable: tuple[str, ...]
    temporary: str  # its temporary folder, which it may write to
    outputs: Mapping[str, tuple[str, str]]  # option -> (folder in which it makes it, final name)


CONFINED: Rights | None = None  # of this process


def is_wanted(from_file: bool, trusted: bool) -> bool:
    """Return whether a command must run in a confined process for this model."""
    wanted = from_file and not trusted and CONFINED is None and ENABLED
    return wanted and landlock.abi() > 0


def unimported(trusted: bool) -> str:
    """Return why TensorFlow must not import a graph from a file; "" if it may."""
    return "" if trusted or CONFINED or not ENABLED else UNCONFINED


# The process that starts the confined one


def run(
    command: str,
    argv: Sequence[str] | None,
    args: Any,
    outputs: Mapping[str, AbstractContextManager[Any]],
) -> int:
    """Run `python -m tflab.COMMAND ARGV` in a confined process; return its exit status.

    `outputs` are contexts that give the places to write to, by option. Raises UsageError, before
    anything is opened, for a model that is more than plain files."""
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
        (folder / "python").mkdir()
        (folder / "python" / "tflab").symlink_to(Path(tflab.__file__).parent)
        places = {option: stack.enter_context(context) for option, context in outputs.items()}
        rights = Rights(
            readable=(*SYSTEM, *installed(), *map(str, model), *feeds),
            temporary=str(folder),
            outputs={
                option: (str(place.work.absolute()), str(place.final))
                for option, place in places.items()
            },
        )
        own_variables = {
            GIVEN: json.dumps(asdict(rights)),
            "HOME": rights.temporary,
            "TMPDIR": rights.temporary,
            "PYTHONPATH": str(folder / "python"),
            "PYTHONUSERBASE": site.getuserbase(),
            "PYTHONSAFEPATH": "1",
        }
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        words = [command, *(sys.argv[1:] if argv is None else argv)]
        status = ended([*python(), "-m", "tflab.cli.confined", *words], {**kept, **own_variables})
        if status < 0:
            raise TflabError(
                f"The graph '{args.model}' ended the process that ran it, with "
                f"{signal.Signals(-status).name}."
            )
        return status


def ended(line: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run the confined process. Return its exit status; below 0 if a signal ended it."""
    sys.stdout.flush()
    error = terminal.descriptor(sys.stderr)  # `command` redirects only that of C++
    with subprocess.Popen(
        line,
        env=variables,
        stdin=subprocess.DEVNULL,
        stderr=None if error < 0 else error,
        start_new_session=True,  # a terminal's Ctrl-C reaches it only through this process
    ) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(interrupts.current.signal or signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                return process.wait(PATIENCE_S)
            raise
        finally:
            process.kill()


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

    Raises UsageError for a link, and for what is not a file. A link inside a part may lead out of
    the model, but the kernel does not let the process read there.
    """
    if model.name in SAVED_MODELS:
        model = model.parent
    if model.is_dir():
        if not any((model / name).is_file() for name in SAVED_MODELS):
            raise UsageError(
                f"The folder '{model}' has no saved_model.pb. Give the folder of a SavedModel, or "
                "a file with a graph."
            )
        own, parts = [], [model / name for name in PARTS if os.path.lexists(model / name)]
    else:
        if os.path.lexists(model):
            check_plain(model)
        stem = glob.escape(str(model.with_suffix("")))
        beside = sorted(glob.glob(f"{stem}.index") + glob.glob(f"{stem}.data-?????-of-?????"))
        own, parts = [model], [Path(path) for path in beside if Path(path) != model]
    for part in parts:
        if part.is_symlink():
            raise UsageError(
                f"'{part}' is a link to another place, and tflab does not follow it. Replace it by "
                "a copy of the file, for example with cp -L."
            )
        if own:
            check_plain(part)
    return own + parts


def check_plain(path: Path) -> None:
    """Raise UsageError if this is not a regular file. Nothing is opened."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"'{path}' cannot be read: it is not a file.")
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}.") from error


# The confined process


def main() -> int:
    """Confine this process, then run the command."""
    global CONFINED
    CONFINED = rights = Rights(**json.loads(os.environ.pop(GIVEN)))
    landlock.die_with_parent()
    if free := environment.free_memory():
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = max(2 * SPARED, free - SPARED)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    places = [folder for folder, _ in rights.outputs.values()]
    landlock.confine(rights.readable, [rights.temporary, "/dev/null", *places])
    name, *argv = sys.argv[1:]
    sys.argv = [name, *argv]
    return int(importlib.import_module(f"tflab.{name}.__main__").main(argv))


def output(option: str) -> tuple[Path, Path] | None:
    """Return where a confined process writes an option's output, and its final name, or None."""
    if CONFINED is None or option not in CONFINED.outputs:
        return None
    folder, final = CONFINED.outputs[option]
    return Path(folder, CONTENT), Path(final)


if __name__ == "__main__":
    # By name, because `python -m` loads this module as __main__
    sys.exit(importlib.import_module("tflab.cli.confined").main())
