"""Interrupts: SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in a command, which keeps what it
has measured.

Python handles a signal only between two of its own instructions, so not while a step of TensorFlow
runs. A thread waits for that: if the step does not return within PATIENCE_S, or another signal
comes, it prints the results so far and ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from signal import Signals
from types import FrameType
from typing import Any, TypeVar

from tflab import leave

Item = TypeVar("Item")

# Windows has no SIGHUP
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
INTERRUPTED = 130  # 128 + SIGINT, as in shells
ONE_S = 0.3  # signals within this many seconds are one: `timeout` sends each twice
AGAIN_S = 1.0  # so long after a signal that was not handled, another one ends the process
POLL_S = 0.1
PATIENCE_S = 10.0  # time limit for a step of TensorFlow to return after a signal
LEFT = "tflab: interrupted by {}; a step of TensorFlow did not return and was abandoned.\n"


class SignalError(KeyboardInterrupt):
    """A signal. If a KeyboardInterrupt itself passes through `exec` of a text, as during an import,
    Python ends by SIGINT later, even if it was handled."""


@dataclass
class Interrupts:
    """The signals that came while a command ran."""

    signal: Signals | None = None  # the first one
    at: float = 0.0  # when the last one was handled, by time.monotonic
    holding: int = 0  # open contexts of `held`
    waiting: bool = False  # a signal came, and its exception has not arrived
    seen: threading.Event = field(default_factory=threading.Event)  # by the main thread
    show: Callable[[], Any] | None = None  # prints the results so far

    def status(self, status: int) -> int:
        """Return the exit status of a command that would otherwise exit with this one."""
        return 128 + self.signal if self.signal and status == INTERRUPTED else status

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.seen.set()
        first = self.signal is None
        if not first and time.monotonic() - self.at < ONE_S:
            return
        self.signal, self.at = self.signal or Signals(number), time.monotonic()
        self.waiting = True  # until its exception arrives: an import or a destructor loses some
        if not (first and self.holding):
            raise SignalError


current: Interrupts | None = None  # of the running command


@contextmanager
def raised() -> Iterator[Interrupts]:
    """While this is open, signals raise KeyboardInterrupt. A signal that is ignored, as by nohup,
    or has another handler stays as it is."""
    global current
    command = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield command
        return
    usual = (signal.SIG_DFL, signal.default_int_handler, leave)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = {number: handler for number, handler in before.items() if handler in usual}
    outer, current = current, command
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.setblocking(False)
        wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=watch, args=(command, reading), daemon=True)
        thread.start()
        try:
            for number in ours:
                signal.signal(number, command)
            yield command
        finally:
            for number, handler in ours.items():
                signal.signal(number, handler)
            current = outer
            signal.set_wakeup_fd(wakeup)
            writing.setblocking(True)
            writing.send(b"\0")
            thread.join()


def watch(command: Interrupts, reading: socket.socket) -> None:
    """End the process after a signal that the main thread does not handle."""
    number: Signals | None = None
    came = quiet_until = 0.0
    while True:
        ready = select.select([reading], [], [], POLL_S if number else None)[0]
        now = time.monotonic()
        if ready:
            new = reading.recv(1)[0]
            if not new:
                return
            ours = signal.getsignal(new) is command
            if now < quiet_until or not ours:
                continue
            if number and now - came > AGAIN_S:
                give_up(command, Signals(new))
            if not number:
                number, came = Signals(new), now
        if command.seen.is_set():
            command.seen.clear()
            number, quiet_until = None, now + AGAIN_S
        elif number and now - came > PATIENCE_S:
            give_up(command, number)


def give_up(command: Interrupts, number: Signals) -> None:
    """End the process, whose main thread does not return from TensorFlow."""
    from tflab.cli import temporary

    with suppress(Exception):
        if command.show:
            command.show()
        sys.stdout.flush()
        sys.stderr.write(LEFT.format(number.name))
        sys.stderr.flush()
    with suppress(Exception):
        # The main thread may return now, and miss what is removed
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        temporary.remove_now()
    os._exit(128 + number)


@contextmanager
def held() -> Iterator[None]:
    """While this is open, a signal waits, so that results are complete and printed; it raises
    KeyboardInterrupt at the end, unless it was taken. A second signal does not wait."""
    with ExitStack() as stack:
        command = current or stack.enter_context(raised())
        command.holding += 1
        try:
            yield
        finally:
            command.holding -= 1
        if command.waiting and not command.holding:
            command.waiting = False
            raise SignalError


@contextmanager
def released() -> Iterator[None]:
    """While this is open within `held`, signals do not wait."""
    if current is None:
        yield
        return
    command, depth = current, current.holding
    if command.waiting:
        raise SignalError
    command.holding = 0
    try:
        yield
    except KeyboardInterrupt:
        command.waiting = False
        raise
    finally:
        command.holding = depth


def interruptible(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items; each can be interrupted while it is made, and is complete afterwards."""
    while True:
        with released():
            item = next(items, None)
        if item is None:
            return
        yield item


def is_waiting() -> bool:
    """Return True if a signal waits."""
    return current is not None and current.waiting


def take() -> bool:
    """Return True if a signal was waiting; it no longer is."""
    taken = is_waiting()
    if current:
        current.waiting = False
    return taken


@contextmanager
def shown_by(show: Callable[[], Any]) -> Iterator[None]:
    """While this is open, `show` prints the results so far if the process has to be ended."""
    if current is None:
        yield
        return
    current.show = show
    try:
        yield
    finally:
        current.show = None
