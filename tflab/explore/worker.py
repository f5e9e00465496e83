"""Worker: a process with TensorFlow loaded, which runs programs one after the other.

An order is a line of JSON on standard input, `{"run": ...}` or `{"next": true}`; the answer to each
is a line of JSON on the original standard output. The output of programs is redirected.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tflab.explore.request import MEMORY
from tflab.runtime import dumps, tf_import

PRINTED = 4_000  # characters that are kept of a program's output
LOOK_S = 1.0  # between two checks whether the server exists
WITHOUT_FOLDER = "The program removed the temporary folder of tflab, which starts a new process."
PROC = Path("/proc/")  # on Linux
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


class StageTimeoutError(BaseException):
    """The time of a stage is over. Not an Exception, so that few programs catch it."""


class KeptOutput:
    """A stream that keeps the beginning of its output."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text[: max(0, PRINTED - len(self.text))]
        return len(text)

    def flush(self) -> None:
        pass


def main() -> None:
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    own = os.getpid()
    if hasattr(os, "register_at_fork"):
        for pipe in (orders, answers):  # not for forks of the program
            os.register_at_fork(after_in_child=partial(os.close, pipe.fileno()))
    adopt()
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    folder = dumps.prepare()
    tf_import.load()
    from tflab.explore import walk  # imports TensorFlow

    gc.collect()
    gc.freeze()  # objects of TensorFlow's import stay, so collections can skip them
    limit_memory(MEMORY)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, late)
    walked: Iterator[dict[str, Any]] = iter(())
    order: dict[str, Any] = {}

    def answer(message: dict[str, Any]) -> None:
        if os.getpid() != own:
            os._exit(1)  # a fork of the program
        answers.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        answers.flush()

    answer({"ready": True})
    for line in orders:
        given = json.loads(line)
        if "run" in given:
            order = given["run"]
            gc.collect()
            walked = stages(walk, order)
        message = step(walk, walked, order)
        if folder and not folder.is_dir():
            message = {"error": {"message": WITHOUT_FOLDER, "line": None}, "spoiled": True}
        answer(message | {"mark": given["mark"]})


def stages(walk: Any, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from tflab.explore import request

    given = request.read(order["asked"])
    yield from walk.walk(given, order["file"], order["folder"], order["function"])


def step(walk: Any, walked: Iterator[dict[str, Any]], order: dict[str, Any]) -> dict[str, Any]:
    """The next stage, or its error, or that there is none."""
    printed = KeptOutput()
    try:
        limit_time(order["seconds"])
        with redirect_stdout(printed):
            message = next(walked, {"done": True})
    except StageTimeoutError as error:
        seconds = f"{order['seconds']:g} s"
        about = {
            "message": f"tflab ended the program: it took longer than {seconds}.",
            "line": None,
        }
        message = {"error": about | {"line": walk.line_of(error, order["file"])}}
    except BaseException as error:  # a program may raise anything
        message = {"error": walk.problem(error, order["file"])}
    finally:
        limit_time(0)
    end_children()
    return message | ({"printed": printed.text} if printed.text else {})


def watch(server: int) -> None:
    """End the process when the server has ended, whatever its program does."""
    while os.getppid() == server:
        time.sleep(LOOK_S)
    os._exit(1)


def late(number: int, frame: FrameType | None) -> None:
    raise StageTimeoutError


# The memory, the time and the children of a program's process, and how to end it. Functions that
# macOS or Windows do not support do nothing there.


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


if __name__ == "__main__":
    main()
