"""Worker: a process with TensorFlow loaded, which runs programs one after the other.

An order is a line of JSON on standard input, `{"run": ...}` or `{"next": true}`; the answer to each
is a line of JSON on the original standard output. The output of programs is redirected.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from types import FrameType
from typing import Any

from tflab.explore import processes
from tflab.runtime import dumps, quiet_import

PRINTED = 4_000  # characters that are kept of a program's output
LOOK_S = 1.0  # between two checks whether the server exists


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
    processes.adopt()
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    dumps.prepare()
    quiet_import.load()
    from tflab.explore import life  # imports TensorFlow

    gc.collect()
    gc.freeze()  # objects of TensorFlow's import stay, so collections can skip them
    processes.limit_memory(processes.MEMORY)
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
            walked = lives(life, order)
        answer(step(life, walked, order) | {"mark": given["mark"]})


def lives(life: Any, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from tflab.explore import asked

    given = asked.read(order["asked"])
    yield from life.walk(given, order["file"], order["folder"], order["function"])


def step(life: Any, walked: Iterator[dict[str, Any]], order: dict[str, Any]) -> dict[str, Any]:
    """The next stage, or its error, or that there is none."""
    printed = KeptOutput()
    try:
        processes.limit_time(order["seconds"])
        with redirect_stdout(printed):
            message = next(walked, {"done": True})
    except StageTimeoutError as error:
        seconds = f"{order['seconds']:g} s"
        about = {"message": f"The program was ended: it took longer than {seconds}.", "line": None}
        message = {"error": about | {"line": life.line_of(error, order["file"])}}
    except BaseException as error:  # a program may raise anything
        message = {"error": life.problem(error, order["file"])}
    finally:
        processes.limit_time(0)
    processes.end_children()
    return message | ({"printed": printed.text} if printed.text else {})


def watch(server: int) -> None:
    """End the process when the server has ended, whatever its program does."""
    while os.getppid() == server:
        time.sleep(LOOK_S)
    os._exit(1)


def late(number: int, frame: FrameType | None) -> None:
    raise StageTimeoutError


if __name__ == "__main__":
    main()
