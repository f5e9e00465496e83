"""Processes: what a program's process takes and began, and how it is ended. What a system does not
have (macOS, Windows) is left out there."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc/")  # of Linux
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


def adopt() -> None:
    """Make what the children of this process leave behind its children."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(ADOPT, 1)


def limit_memory(more: int) -> None:
    """Let this process take so many bytes more than it has; then there is a MemoryError."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        taken = next(
            int(line.split()[1]) * 1024
            for line in (PROC / "self" / "status").read_text("ascii").splitlines()
            if line.startswith("VmData")
        )
        resource.setrlimit(resource.RLIMIT_DATA, (taken + more, taken + more))


def limit_time(seconds: float) -> None:
    """Send this process SIGALRM after this time; 0 is never."""
    with suppress(AttributeError):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def descendants(process: int) -> Iterator[int]:
    """The children of a process, and theirs."""
    with suppress(OSError):
        for children in (PROC / str(process) / "task").glob("*/children"):
            for child in map(int, children.read_text("ascii").split()):
                yield from descendants(child)
                yield child


def end_children() -> None:
    """End the processes that this one began and left."""
    for process in descendants(os.getpid()):
        end(process)
    with suppress(AttributeError, ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_with_children(process: int) -> None:
    """End a process and all that it began, which can begin no more meanwhile."""
    with suppress(AttributeError, OSError):
        os.kill(process, signal.SIGSTOP)
    for child in descendants(process):
        end(child)
    end(process)


def end(process: int) -> None:
    with suppress(AttributeError, OSError):
        os.kill(process, signal.SIGKILL)


def resident(process: int) -> int:
    """The bytes of memory that a process and those that it began take; 0 where nobody says."""
    total = 0
    for one in (process, *descendants(process)):
        with suppress(AttributeError, OSError, ValueError):
            pages = int((PROC / str(one) / "statm").read_text("ascii").split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE")
    return total
