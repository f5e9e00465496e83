"""Worker: a process with TensorFlow loaded, which runs programs one after the other.

An order is a line of JSON on standard input, `{"run": ...}` or `{"next": true}`; the answer to each
is a line of JSON on the original standard output. The output of programs is redirected.
"""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from types import FrameType, ModuleType

from tflab.explore.request import Message, Source
from tflab.runtime import dumps, tf_import

PRINTED = 4_000  # characters that are kept of a program's output
LOOK_S = 1.0  # between two checks whether the server exists


class StageTimeoutError(BaseException):
    """The time of a stage is over. Not an Exception, so that few programs catch it."""


class KeptOutput(io.StringIO):
    """A stream that keeps the beginning of its output."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, PRINTED - self.tell())])
        return len(text)


def main() -> None:
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    own = os.getpid()
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    dumps.prepare()
    tf_import.load()
    from tflab.explore import request, stages_as_data

    gc.collect()
    gc.freeze()  # objects of TensorFlow's import stay
    gc.disable()  # within a program: looking for cycles would take almost half of its time
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, late)
    walked: Iterator[Message] = iter(())
    order: Message = {}

    def answer(message: Message) -> None:
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
            walked = stages_as_data.walk_program(
                request.read(order["asked"]), Source(**order["source"])
            )
        answer(step(stages_as_data, walked, order))


def step(stages: ModuleType, walked: Iterator[Message], order: Message) -> Message:
    """Return the next stage, or its error, or that there is none."""
    printed = KeptOutput()
    try:
        limit_time(order["seconds"])
        with redirect_stdout(printed):
            message = next(walked, {"done": True})
    except StageTimeoutError as error:
        late = f"tflab ended the program: it took longer than {order['seconds']:g} s."
        line = stages.line_of(error, order["source"]["file"])
        message = {"error": {"message": late, "line": line}}
    except BaseException as error:  # a program may raise anything
        message = {"error": stages.problem(error, order["source"]["file"])}
    finally:
        limit_time(0)
    text = printed.getvalue()
    return message | ({"printed": text} if text else {})


def watch(server: int) -> None:
    """End the process when the server has ended, whatever its program does."""
    while os.getppid() == server:
        time.sleep(LOOK_S)
    os._exit(1)


def late(number: int, frame: FrameType | None) -> None:
    raise StageTimeoutError


def limit_time(seconds: float) -> None:
    """Send SIGALRM to this process after this time; 0 is never. Windows has no such signal."""
    with suppress(AttributeError):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
