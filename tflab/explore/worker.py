"""Worker: a process that has TensorFlow loaded and takes programs, one after the other.

An order is a line of JSON on standard input, `{"run": ...}` or `{"next": true}`; the answer to each
is a line of JSON on what was standard output. What a program prints goes elsewhere.
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
from types import FrameType
from typing import Any

from tflab.runtime import dumps, quiet_import

MEMORY = 4 * 2**30  # bytes that a program may take beside what the process has after its start
PRINTED = 4_000  # characters of what a program prints that are kept
ADOPT = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h: also what its children leave is its child
LOOK_S = 1.0  # between two looks whether the server is still there


class LateError(BaseException):
    """The time of a stage is over. Not an Exception, so that few programs catch it."""


class Kept:
    """A stream that keeps the beginning of what is written to it."""

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
    for pipe in (orders, answers):  # are not for the forks that a program makes
        os.register_at_fork(after_in_child=partial(os.close, pipe.fileno()))
    with suppress(AttributeError, OSError):  # Linux alone has it
        ctypes.CDLL(None).prctl(ADOPT, 1)
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    dumps.prepare()
    quiet_import.load()
    from tflab.explore import life  # imports TensorFlow

    gc.collect()
    gc.freeze()  # what TensorFlow's import made stays, and need not be looked at again
    limit_memory()
    signal.signal(signal.SIGALRM, late)
    walked: Iterator[dict[str, Any]] = iter(())
    order: dict[str, Any] = {}

    def answer(message: dict[str, Any]) -> None:
        if os.getpid() != own:
            os._exit(1)  # a fork that the program made
        answers.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        answers.flush()

    answer({"ready": True})
    for line in orders:
        given = json.loads(line)
        if "run" in given:
            order = given["run"]
            gc.collect()
            walked = lives(life, order)
        answer(step(life, walked, order) | {"mark": given["mark"]})


def lives(life: Any, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from tflab.explore import asked

    yield from life.walk(asked.read(order["asked"]), order["file"], order["function"])


def step(life: Any, walked: Iterator[dict[str, Any]], order: dict[str, Any]) -> dict[str, Any]:
    """The next stage, the error in its place, or that there is none."""
    printed = Kept()
    try:
        signal.setitimer(signal.ITIMER_REAL, order["seconds"])
        with redirect_stdout(printed):
            message = next(walked, {"done": True})
    except LateError as error:
        seconds = f"{order['seconds']:g} s"
        about = {"message": f"It was ended: it took longer than {seconds}.", "line": None}
        message = {"error": about | {"line": life.line_of(error, order["file"])}}
    except BaseException as error:  # a program may raise anything
        message = {"error": life.problem(error, order["file"])}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    end_children()
    return message | ({"printed": printed.text} if printed.text else {})


def watch(server: int) -> None:
    """End the process when the server is gone, whatever its program does."""
    while os.getppid() == server:
        time.sleep(LOOK_S)
    os._exit(1)


def late(number: int, frame: FrameType | None) -> None:
    raise LateError


def limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/status", encoding="ascii") as status:
            taken = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
        limit = taken * 1024 + MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def end_children() -> None:
    """End the processes that a program began and left."""
    for process in descendants(os.getpid()):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def descendants(process: int) -> Iterator[int]:
    """The children of a process, and theirs, where Linux lists them."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as children:
                for child in map(int, children.read().split()):
                    yield from descendants(child)
                    yield child


if __name__ == "__main__":
    main()
