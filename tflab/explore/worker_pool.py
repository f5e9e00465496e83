"""Worker pool: the worker process from the server's side; it is watched, ended and replaced.

One program runs at a time. A newer version of the same page's program replaces the running one
after its current stage.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from tflab.errors import TflabError
from tflab.explore.request import Message, ProgramRequest, Source
from tflab.records.codec import encoded
from tflab.runtime import processes

START_S = 120.0  # time limit for importing TensorFlow, on a busy machine
SECONDS = 20.0  # of a stage: longer than one of LeNet takes on a busy machine
GRACE_S = 2.0  # after the time limit of a stage, for the worker to end it
PART = 2**16  # bytes of it that are read at a time: as many as a pipe holds


class LostError(TflabError):
    """The worker ended, or had to be killed."""


class WorkerProcess:
    """A worker for the programs of one server; `seconds` is the time limit of a stage."""

    def __init__(self, source: Source, seconds: float = SECONDS) -> None:
        self.source, self.seconds = source, seconds
        self.turn = threading.Lock()
        self.newest: dict[str, int] = {}  # page -> the number of its last request
        self.closed = False
        self.start()

    def start(self) -> None:
        """Start a new process; it is ready after its first line. Ctrl-C does not reach it."""
        self.process = processes.start(
            "tflab.explore.worker", stderr=subprocess.DEVNULL, own_session=True
        )
        self.ready = False

    def life(self, page: str, number: int, request: ProgramRequest) -> Iterator[Message]:
        """Yield the message of each stage. The last one has `done`, `error` or `superseded`."""
        self.newest[page] = max(number, self.newest.get(page, 0))
        with self.turn:
            order: Message = {
                "run": {
                    "asked": encoded(request),
                    "source": encoded(self.source),
                    "seconds": self.seconds,
                }
            }
            while True:
                if self.newest[page] != number:
                    yield {"superseded": True}
                    return
                try:
                    message = self.ask(order)
                except LostError as error:
                    self.replace()
                    message = {"error": {"message": str(error), "line": None}}
                yield message
                if "error" in message or "done" in message:
                    return
                order = {"next": True}

    def restart(self) -> None:
        """Replace the process, and with it what programs left in it, by a new one."""
        with self.turn:
            self.replace()

    def ask(self, order: Message) -> Message:
        """Return the answer to an order. Raises LostError if there is none."""
        if not self.ready:
            self.read(START_S)
            self.ready = True
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self.lost() from None
        return self.read(self.seconds + GRACE_S)

    def read(self, seconds: float) -> Message:
        """Return the next answer of the process. Raises LostError if it is late or damaged."""
        assert self.process.stdout
        line, deadline = bytearray(), time.monotonic() + seconds
        while not line.endswith(b"\n"):
            if not processes.has_output(self.process, max(0, deadline - time.monotonic())):
                raise LostError(
                    f"tflab ended the program: it did not stop within {self.seconds:g} s. "
                    "TensorFlow is loading again, which takes a few seconds."
                )
            # Not `readline`, which would wait for the rest of a line without a limit
            part = os.read(self.process.stdout.fileno(), PART)
            if not part:
                raise self.lost()
            line += part
        try:
            message: Message = json.loads(line)
        except ValueError:
            raise LostError(
                "tflab ended the program: it wrote into the results of tflab."
            ) from None
        return message

    def lost(self) -> LostError:
        """Return an error that says how the process ended, or that it only closed its output."""
        try:
            status = self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return LostError("tflab ended the program: it closed the results of tflab.")
        how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
        if not self.ready:
            return LostError(f"The process ended {how}. `python -m tflab.doctor` may say why.")
        return LostError(f"The program ended its process {how}.")

    def replace(self) -> None:
        self.end()
        if not self.closed:
            self.start()

    def end(self) -> None:
        """End the process and all processes in its group, such as those of its program."""
        with suppress(AttributeError, OSError):  # its group is empty, or there are no groups
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            with suppress(OSError):  # it still has data that could not be written
                pipe.close()

    def close(self) -> None:
        """End the process for good."""
        self.closed = True
        self.end()
