"""Confinement: a command works on a graph from a file in a process that the kernel confines first.

Unlike the rules of `saved_graphs.permissions`, the kernel needs no knowledge of graphs. The process
can read Python, its packages and the graph, can write to a temporary folder and to the requested
outputs, and has no network. `run` starts it, watches it, and moves the results to their final
names.
"""

from __future__ import annotations

import functools
import glob
import json
import os
import select
import shutil
import signal
import site
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tflab import atomic
from tflab.cli import confined, interrupts, landlock, terminal
from tflab.cli.confined import Rights
from tflab.errors import TflabError

if TYPE_CHECKING:
    from tflab.cli.new_files import Run

PATIENCE_S = 20.0  # time limit for an interrupted process to end by itself
SPARED = 2**30  # free memory in bytes that the process must leave
SYSTEM = (  # system files that Python and TensorFlow read; many exist on some systems only
    *("/usr", "/lib", "/lib64", "/bin", "/opt/intel", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/localtime", "/etc/os-release", "/etc/fonts", "/etc/mime.types"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/self"),
    *("/proc/sys/kernel/osrelease", "/proc/sys/vm", "/sys/devices/system", "/sys/fs/cgroup"),
    *("/dev/urandom", "/dev/random", "/dev/zero"),
)
MEASURING = ("compare", "report")  # commands that measure in processes of their own
MISSING = (
    "This kernel has no Landlock to confine the graph's process. Only tflab's rules about ops "
    "protect your files."
)


ENABLED = True  # tests of the rules alone switch the confinement off


@functools.cache
def is_available() -> bool:
    return landlock.abi() > 0


# The process that starts the confined one


def run(
    command: str,
    argv: Sequence[str] | None,
    args: Any,
    outputs: Mapping[str, AbstractContextManager[Run]],
    readable: Sequence[str] = (),
) -> int:
    """The exit status of `python -m tflab.COMMAND ARGV` in a confined process.

    `args` are the parsed arguments. `outputs` are contexts that give the places to write to, by
    option; each is left in the same way as without confinement. `readable` are files that the
    arguments name, in addition to the model.
    """
    allowed = getattr(args, "allow_read", ()), getattr(args, "allow_write", ())
    feeds = (file for _, file in getattr(args, "feed", ()))
    with ExitStack() as stack:
        folder = stack.enter_context(atomic.temporary("confined"))
        keep_fonts(folder)
        places = {option: enter(stack, context, folder) for option, context in outputs.items()}
        rights = Rights(
            readable=(
                *installed(),
                *model_files(Path(args.model)),
                *feeds,
                *readable,
                *allowed[0],
                *of_processes(command, args),
            ),
            temporary=str(folder),
            outputs={option: (str(work), str(final)) for option, (work, final) in places.items()},
            writable=tuple(allowed[1]),
            ports=None if getattr(args, "allow_network", False) else ports_for(args),
            memory=free_memory(),
            import_s=getattr(args, "import_seconds", confined.IMPORT_S),
        )
        words = sys.argv[1:] if argv is None else argv
        status = attempt(command, words, rights)
        if isinstance(status, str):
            status = attempt(command, words, replace(rights, unimported=status))
        if isinstance(status, str):
            raise TflabError(f"The graph '{args.model}' cannot be shown: {status}.")
        return status


def is_wanted(from_file: bool) -> bool:
    """Whether a command must run in a confined process for this model."""
    if not from_file or confined.CONFINED is not None or not ENABLED:
        return False
    if not is_available():
        terminal.say(f"tflab: {MISSING}", sys.stderr)
    return is_available()


class UnfinishedError(Exception):
    """The confined process did not complete an output, which is discarded."""


def enter(
    stack: ExitStack, context: AbstractContextManager[Run], folder: Path
) -> tuple[Path, Path]:
    """Enter the context of an output. It is left with an error unless the process completed the
    output."""
    place = context.__enter__()

    def leave(kind: Any, error: Any, trace: Any) -> bool:
        if kind is None and not (folder / confined.mark(place.final)).exists():
            with suppress(UnfinishedError):
                failure = UnfinishedError()
                context.__exit__(UnfinishedError, failure, None)
            return False
        return bool(context.__exit__(kind, error, trace))

    stack.push(leave)
    return place.work, place.final


def attempt(command: str, argv: Sequence[str], rights: Rights) -> int | str:
    """The exit status of the confined process; or a reason, if it ended before TensorFlow had
    imported the graph."""
    reading, writing = os.pipe()
    rights = replace(rights, passed=writing)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        confined.GIVEN: json.dumps(asdict(rights)),
        "HOME": rights.temporary,
        "TMPDIR": rights.temporary,
        "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
    }
    # A fork does not have to start Python and import the command again
    go_on = partial(confined.go_on, [command, *argv], environment, writing)
    sys.stdout.flush()
    try:
        with (
            subprocess.Popen(
                [sys.executable, "-m", "tflab.cli.confined", command, *argv],
                env=environment,
                pass_fds=[writing],
                stderr=standard_error(),
                start_new_session=True,  # a terminal's Ctrl-C reaches it only through this process
                preexec_fn=go_on if can_fork() else None,
                restore_signals=False,  # Python ignores SIGPIPE anyway
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


def can_fork() -> bool:
    """Whether this process can fork: its only threads are the main one and that of `ending`, and no
    library has threads that Python does not know."""
    return threading.active_count() <= 2 and {"numpy", "tensorflow"}.isdisjoint(sys.modules)


def standard_error() -> int | None:
    """The file of Python's standard error; `command` redirects only that of C++."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def keep_fonts(home: Path) -> None:
    """Copy matplotlib's list of fonts into the home of the process; making it takes seconds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "matplotlib")
    copy = home / ".cache" / "matplotlib"
    copy.mkdir(parents=True)
    for path in cache.glob("fontlist-*.json"):
        shutil.copy(path, copy)


def watched(process: subprocess.Popen[bytes], reading: int, rights: Rights) -> int | str:
    began = time.monotonic()
    begun = bool(os.read(reading, 1))  # empty if the process ends before
    late = begun and not select.select([reading], [], [], rights.import_s)[0]
    if late:
        process.kill()
    imported = not late and begun and bool(os.read(reading, 1))
    status = process.wait()
    if late:
        return f"TensorFlow did not import it within {rights.import_s} s"
    if status >= 0:
        return status
    name = signal.Signals(-status).name
    if not imported:
        return f"TensorFlow's process ended with {name} while it imported the graph"
    show_partial(rights)
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


def installed() -> list[str]:
    """The folders of Python and of its packages."""
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *site.getsitepackages(), *sys.path]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders_of_packages = dict.fromkeys(path for path in folders if is_package_folder(path))
    return [*SYSTEM, *folders_of_packages, str(Path(__file__).parents[1])]


def is_package_folder(path: str) -> bool:
    """Whether this is a folder of packages. The working directory may contain anything, so it is
    not readable as a whole."""
    return bool(path) and os.path.isdir(path) and not os.path.samefile(path, os.getcwd())


def model_files(model: Path) -> Iterator[str]:
    """A SavedModel's folder; for a single file, the file and the checkpoints next to it."""
    yield str(model)
    if model.is_file():
        names = (f"{model.stem}*", f"{model.name}*", "*.index", "*.data-?????-of-?????")
        folder = glob.escape(str(model.parent))
        for name in (*names, "checkpoint"):
            yield from glob.glob(os.path.join(folder, name))


def of_processes(command: str, args: Any) -> tuple[str, ...]:
    """What the processes that a command starts read in addition: each reads its own command line,
    or TensorFlow ends it (`GetExecutablePath` in core/platform/env.cc). Its folder in /proc does
    not exist yet, so all of /proc is readable; the kernel still protects memory and variables of
    other processes."""
    return ("/proc",) if command in MEASURING or getattr(args, "cluster", None) else ()


def ports_for(args: Any) -> tuple[int, ...]:
    """The ports of the tasks that a command starts or names, and of its own servers: one for the
    loopback device, and one that other machines can reach."""
    tasks = getattr(args, "cluster", ()) or ()
    if isinstance(tasks, int):
        return free_ports(tasks + 2)
    named = (int(address.rpartition(":")[2]) for address in tasks)
    return (*free_ports(2 if tasks else 0), *named)


def free_ports(count: int) -> tuple[int, ...]:
    """This number of TCP ports of this machine on which no process listens."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return tuple(probe.getsockname()[1] for probe in probes)


def free_memory() -> int:
    """The bytes that the process may use; 0 if the system does not report free memory."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return max(2 * SPARED, int(line.split()[1]) * 1024 - SPARED)
    return 0


def show_partial(rights: Rights) -> None:
    with suppress(OSError):
        print(Path(rights.temporary, confined.PARTIAL).read_text(encoding="utf-8"))
