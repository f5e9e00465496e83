"""Interrupts: SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in a command, which keeps what it
has measured.

Python handles a signal only between two of its own instructions, so not while a step of TensorFlow
runs. If the step does not return within PATIENCE_S, a thread ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from signal import Signals
from types import FrameType
from typing import TypeVar

from tflab.cli import temporary

Item = TypeVar("Item")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # 128 + SIGINT, as in shells
PATIENCE_S = 10.0  # time limit for a step of TensorFlow to return after a signal
ONE_S = 0.3  # signals within this many seconds are one: `timeout` sends each twice


class SignalError(KeyboardInterrupt):
    """A signal came. It is a class of its own, because Python ends by SIGINT if a plain
    KeyboardInterrupt passed through `exec` of a text, as in an import, even if it was handled."""


@dataclass
class Interrupts:
    """The signals that came while a command ran."""

    signal: Signals | None = None  # the first one
    at: float = 0.0  # when the last one was handled, by time.monotonic
    holding: int = 0  # open contexts of `held`
    waiting: bool = False  # a signal came, and its exception has not arrived
    came: int = -1  # a pipe with the numbers of signals that the main thread has not handled

    def __call__(self, number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            os.read(self.came, 4096)
        first = self.signal is None
        if not first and time.monotonic() - self.at < ONE_S:
            return
        self.signal, self.at = self.signal or Signals(number), time.monotonic()
        self.waiting = True  # until its exception arrives: an import or a destructor loses some
        if not (first and self.holding):
            raise SignalError


current = Interrupts()  # of the running command


@contextmanager
def raised() -> Iterator[Interrupts]:
    """Let signals raise KeyboardInterrupt while this is open. A signal that is ignored, as by
    nohup, or has another handler stays as it is."""
    global current
    command = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield command
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = {number: handler for number, handler in before.items() if handler in usual}
    outer, current = current, command
    command.came, coming = os.pipe()
    for end in (command.came, coming):
        os.set_blocking(end, False)
    over = threading.Event()
    wakeup = signal.set_wakeup_fd(coming, warn_on_full_buffer=False)
    thread = threading.Thread(target=end_if_stuck, args=(command, over), daemon=True)
    thread.start()
    try:
        for number in ours:
            signal.signal(number, command)
        yield command
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        current = outer
        over.set()
        os.close(coming)
        thread.join()
        os.close(command.came)


def end_if_stuck(command: Interrupts, over: threading.Event) -> None:
    """End the process after a signal that the main thread does not handle, as in a step that does
    not return. Python writes its number to a pipe at once; the handler empties the pipe."""
    while True:
        select.select([command.came], [], [])
        if over.wait(PATIENCE_S):
            return
        with suppress(BlockingIOError):  # the signal was handled
            numbers = os.read(command.came, 4096)
            if own := [number for number in numbers if signal.getsignal(number) is command]:
                name = Signals(own[0]).name
                with suppress(Exception):  # SIGHUP means that the terminal is gone
                    print(f"tflab: interrupted by {name}; a step did not return.", file=sys.stderr)
                with suppress(Exception):
                    temporary.remove()
                os._exit(128 + own[0])


@contextmanager
def held() -> Iterator[None]:
    """Let a signal wait while this is open, so that results are complete and printed; at the end it
    raises KeyboardInterrupt, unless it was taken. A second signal does not wait."""
    command = current
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
    """Let signals raise at once while this is open, although `held` is open around it."""
    command, depth = current, current.holding
    command.holding = 0
    try:
        if command.waiting:
            raise SignalError
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


def take() -> bool:
    """Return True if a signal was waiting; it no longer is."""
    taken, current.waiting = current.waiting, False
    return taken
