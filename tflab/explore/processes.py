"""Processes: the memory and the children of a program's process, and how to end it. Functions that
macOS or Windows do not support do nothing there."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc/")  # on Linux
MEMORY = 4 * 2**30  # bytes that a program may take in addition to those after the start
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


def adopt() -> None:
    """Let this process inherit the orphans of its children."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(ADOPT, 1)


def limit_memory(more: int) -> None:
    """Limit the memory that this process can take in addition; beyond it there is a MemoryError."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        taken = next(
            int(line.split()[1]) * 1024
            for line in (PROC / "self" / "status").read_text("ascii").splitlines()
            if line.startswith("VmData")
        )
        resource.setrlimit(resource.RLIMIT_DATA, (taken + more, taken + more))


def limit_time(seconds: float) -> None:
    """Send SIGALRM to this process after this time; 0 is never."""
    with suppress(AttributeError):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def descendants(process: int) -> Iterator[int]:
    """The children of a process, and their children."""
    with suppress(OSError):
        for children in (PROC / str(process) / "task").glob("*/children"):
            for child in map(int, children.read_text("ascii").split()):
                yield from descendants(child)
                yield child


def end_children() -> None:
    """Kill the processes that this process started, directly or indirectly."""
    for process in descendants(os.getpid()):
        end(process)
    with suppress(AttributeError, ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_with_children(process: int) -> None:
    """Kill a process and its descendants, which cannot start others meanwhile."""
    with suppress(AttributeError, OSError):
        os.kill(process, signal.SIGSTOP)
    for child in descendants(process):
        end(child)
    end(process)


def end(process: int) -> None:
    with suppress(AttributeError, OSError):
        os.kill(process, signal.SIGKILL)


def resident(process: int) -> int:
    """The resident bytes of a process and its descendants; 0 if unknown."""
    total = 0
    for one in (process, *descendants(process)):
        with suppress(AttributeError, OSError, ValueError):
            pages = int((PROC / str(one) / "statm").read_text("ascii").split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE")
    return total
