"""Warm: the worker process as the server sees it, which is watched, ended and replaced.

One program runs at a time. A newer version of the same page's program takes the place of the one
that runs, after its current stage.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import IO, Any

from tflab.errors import TflabError
from tflab.explore import worker
from tflab.explore.asked import Asked
from tflab.runtime import child

START_S = 120.0  # for TensorFlow's import, on a busy machine
GRACE_S = 2.0  # after the time of a stage, in which the worker may end it by itself
LOOK_S = 0.2  # between two looks at its memory
MOST_BYTES = 2**26  # of an answer
RESIDENT = worker.MEMORY + 2 * 2**30  # bytes, after which the process is replaced
SAID = 4_000  # bytes of what a process that failed said last

Message = dict[str, Any]


class LostError(TflabError):
    """The worker had to be ended, or ended by itself."""


class Warm:
    """A worker for the programs of one server. `file` is how its programs are called, `function`
    the one that returns a model, if any, and `seconds` the time of a stage."""

    def __init__(self, file: str, function: str = "", seconds: float = 10.0) -> None:
        self.file, self.function, self.seconds = file, function, seconds
        self.turn = threading.Lock()
        self.newest: dict[str, int] = {}  # page -> the number of its last request
        self.closed = False
        self.start()

    def start(self) -> None:
        """Begin a new process; it is ready when its first line has come."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tflab.explore.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child.surroundings(None),
            start_new_session=True,  # Ctrl-C is for the server
        )
        self.ready, self.rest, self.said = False, b"", b""
        threading.Thread(target=self.drain, args=(self.process.stderr,), daemon=True).start()

    def drain(self, stream: IO[bytes]) -> None:
        """Read what the process prints, so that it can go on, and keep the end of it."""
        with suppress(OSError, ValueError):
            while said := os.read(stream.fileno(), 65536):
                self.said = (self.said + said)[-SAID:]

    def life(self, page: str, number: int, asked: Asked) -> Iterator[Message]:
        """What comes of each stage. The last message has `done`, `error` or `superseded`."""
        self.newest[page] = max(number, self.newest.get(page, 0))
        with self.turn:
            order: Message = {
                "run": {
                    "asked": asdict(asked),
                    "file": self.file,
                    "function": self.function,
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
        """A new process, without whatever programs have left in the old one."""
        with self.turn:
            self.replace()

    def ask(self, order: Message) -> Message:
        """The answer to an order. Raises LostError where there is none."""
        if not self.ready:
            self.read(START_S)
            self.ready = True
        assert self.process.stdin
        mark = secrets.token_hex(8)  # so that nothing else is taken for the answer
        try:
            self.process.stdin.write(json.dumps(order | {"mark": mark}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self.lost() from None
        answer = self.read(self.seconds + GRACE_S)
        if answer.pop("mark", None) != mark:
            raise LostError("It was ended: it wrote into the results of tflab.")
        if resident(self.process.pid) > RESIDENT:
            self.replace()
            if "stage" in answer:
                return {"error": {"message": "The programs took too much memory.", "line": None}}
        return answer

    def read(self, seconds: float) -> Message:
        """The next line of the process. Raises LostError where it does not come in this time."""
        assert self.process.stdout
        end = time.monotonic() + seconds
        parts, length = [self.rest], len(self.rest)
        while b"\n" not in parts[-1]:
            left = end - time.monotonic()
            if left <= 0:
                raise LostError(
                    f"It was ended: it did not stop within {self.seconds:g} s. TensorFlow is being "
                    "loaded anew, which takes a few seconds."
                )
            if resident(self.process.pid) > RESIDENT or length > MOST_BYTES:
                raise LostError("It was ended: it took too much memory.")
            if not select.select([self.process.stdout], [], [], min(left, LOOK_S))[0]:
                continue
            read = os.read(self.process.stdout.fileno(), 2**20)
            if not read:
                raise self.lost()
            parts.append(read)
            length += len(read)
        line, _, self.rest = b"".join(parts).partition(b"\n")
        with suppress(ValueError):
            message = json.loads(line)
            if isinstance(message, dict):
                return message
        return {}

    def lost(self) -> LostError:
        """How the process ended by itself."""
        status = self.process.wait()
        how = f"with status {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
        last = self.said.decode(errors="replace").strip().splitlines()[-1:]
        told = f" It said last: {last[0]}" if last and not self.ready else ""
        return LostError(f"The program ended its process {how}.{told}")

    def replace(self) -> None:
        self.end()
        if not self.closed:
            self.start()

    def end(self) -> None:
        """End the process and all that its program began."""
        with suppress(OSError):
            os.kill(self.process.pid, signal.SIGSTOP)
        for process in (*worker.descendants(self.process.pid), self.process.pid):
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def close(self) -> None:
        """End the process for good."""
        self.closed = True
        self.end()


@contextmanager
def opened(file: str, function: str = "", seconds: float = 10.0) -> Iterator[Warm]:
    """A worker that ends with the context."""
    warm = Warm(file, function, seconds)
    try:
        yield warm
    finally:
        warm.close()


def resident(process: int) -> int:
    """The bytes of memory that a process and those that it began take; 0 where nobody says."""
    total = 0
    for one in (process, *worker.descendants(process)):
        with suppress(OSError, ValueError), open(f"/proc/{one}/statm", encoding="ascii") as statm:
            total += int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total
