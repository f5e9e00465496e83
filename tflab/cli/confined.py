"""Confined: the confined process, which works on a graph from a file.

`confinement` starts it and passes its rights in an environment variable. The process gives up all
other rights before it reads the graph, and then runs the command.
"""

from __future__ import annotations

import gc
import glob
import importlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tflab import atomic
from tflab.cli import interrupts, landlock
from tflab.errors import TflabError

with suppress(ImportError):  # Windows has neither this nor Landlock
    import resource

GIVEN = "TFLAB_CONFINEMENT"  # the variable with the rights of the process
IMPORT_S = 120  # time limit for importing a graph
LEAST_BYTES = 2**30  # limit for an import, plus BYTES_PER_BYTE per byte of the graph
BYTES_PER_BYTE = 16
PARTIAL = "partial"  # the document of the stages so far, if the process is killed


@dataclass(frozen=True)
class Rights:
    """The rights of a confined process."""

    readable: tuple[str, ...]
    temporary: str  # its temporary folder, which it may write to
    outputs: Mapping[str, tuple[str, str]]  # option -> (folder to write to, final name)
    writable: tuple[str, ...] = ()  # other paths
    ports: tuple[int, ...] | None = ()  # TCP; None: any
    memory: int = 0  # limit in bytes; 0: none
    import_s: int = IMPORT_S
    passed: int = -1  # a descriptor on which it reports the import of the graph
    unimported: str = ""  # why TensorFlow must not import the graph: it is only parsed


CONFINED: Rights | None = None  # of this process
abandoned: list[object] = []  # the parent's files; closing them would close reused descriptors
PORTS: Iterator[int] = iter(())  # on which this process may listen


def mark(final: Path) -> str:
    return f"finished-{final.name}"


def go_on(command: Sequence[str], environment: Mapping[str, str], passed: int) -> NoReturn:
    """Continue in a fork of the command's process: give up the parent's resources and run the
    command like a new process. Only the standard streams and the descriptor `passed` stay open."""
    status = TflabError.status
    try:
        interrupts.forget()
        abandoned.extend([sys.stderr, *logging.getLogger().handlers])
        logging.getLogger().handlers.clear()
        sys.stderr = sys.__stderr__
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            if descriptor > 2 and descriptor != passed:
                with suppress(OSError):
                    os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        atomic.process_folder.cache_clear()
        gc.enable()  # `subprocess` switched it off
        sys.argv = ["", *command]
        status = main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def main() -> int:
    """Confine this process, then run the command."""
    given = json.loads(os.environ.pop(GIVEN))
    given["outputs"] = {option: tuple(pair) for option, pair in given["outputs"].items()}
    rights = Rights(**given)
    landlock.die_with_parent()
    if rights.passed >= 0:
        os.set_inheritable(rights.passed, False)
    if rights.memory:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = rights.memory if hard == resource.RLIM_INFINITY else min(rights.memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    works = [work for work, _ in rights.outputs.values()]
    landlock.confine(
        rights.readable, [rights.temporary, "/dev/null", *works, *rights.writable], rights.ports
    )
    name, *argv = sys.argv[1:]
    # By name, because `python -m` also loads this module as __main__
    shared: Any = importlib.import_module("tflab.cli.confined")
    shared.CONFINED, shared.PORTS = rights, iter(rights.ports or ())
    sys.argv = [name, *argv]
    return importlib.import_module(f"tflab.{name}.__main__").main(argv)


def output(option: str) -> tuple[Path, Path] | None:
    """The folder to which this process writes the output of an option, and its final name."""
    if CONFINED is None or option not in CONFINED.outputs:
        return None
    work, final = map(Path, CONFINED.outputs[option])
    return work, final


def finish(option: str) -> None:
    """Tell the parent that the output of an option is complete."""
    assert CONFINED is not None
    Path(CONFINED.temporary, mark(Path(CONFINED.outputs[option][1]))).touch()


def port() -> int:
    """A port on which this process may listen; 0 (any port) if it is not confined."""
    return next(PORTS) if CONFINED is not None and CONFINED.ports is not None else 0


def keep(document: str) -> None:
    """Save the result so far, in case the graph crashes this process."""
    if CONFINED is not None:
        Path(CONFINED.temporary, PARTIAL).write_text(document, encoding="utf-8")


def unimported() -> str:
    """Why TensorFlow must not import the graph; "" if it may."""
    return CONFINED.unimported if CONFINED else ""


@contextmanager
def importing(path: str) -> Iterator[None]:
    """A context in which the graph at this path is imported, with limits of its own."""
    if CONFINED is None:
        yield
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = used() + LEAST_BYTES + BYTES_PER_BYTE * bytes_of(path)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )
    tell()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        tell()


def tell() -> None:
    """Tell the parent that the import begins or has ended."""
    assert CONFINED is not None
    with suppress(OSError):  # the parent no longer reads
        os.write(CONFINED.passed, b".")


def used() -> int:
    """The bytes of this process that count towards its limit (VmData of proc(5))."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def bytes_of(path: str) -> int:
    """The size of a graph's own file, without the values of variables in other files."""
    graphs = [path] if os.path.isfile(path) else glob.glob(os.path.join(glob.escape(path), "*.pb*"))
    return sum(map(os.path.getsize, graphs))


if __name__ == "__main__":
    sys.exit(main())
