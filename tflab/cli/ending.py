"""Ending: SIGINT, SIGTERM and SIGHUP end a command, which keeps what it has measured.

A signal raises KeyboardInterrupt; while `deferred` is open it waits, and loops look for it with
`check`. It stays pending until the exception has arrived, because an exception during an import or
in a destructor is lost. Python sees a signal only between two of its own instructions. A step of
TensorFlow can take long, so a thread that the signal wakes (`signal.set_wakeup_fd`) cancels what
runs, and ends the process if that does not help.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
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
CANCEL_S = 3.0  # after which a step that has not returned is cancelled
LEAVE_S = 5.0  # after which the process ends without it
LEFT = "tflab: interrupted by {}; a step of TensorFlow did not return and was abandoned.\n"


class SignalError(KeyboardInterrupt):
    """A signal. Where KeyboardInterrupt itself passes through `exec` of a text, as in the middle of
    an import, Python ends by SIGINT later, whatever becomes of it."""


children: set[subprocess.Popen[Any]] = set()


@dataclass
class Ending:
    """Whether and how a command is being ended from outside."""

    signal: Signals | None = None  # the first one
    at: float = 0.0  # when, by time.monotonic
    deferred: int = 0  # open contexts that let a signal wait
    waiting: bool = False  # a signal came, and its exception has not arrived
    seen: threading.Event = field(default_factory=threading.Event)  # by Python
    cancels: list[Callable[[], Any]] = field(default_factory=list)  # of what is running
    show: Callable[[], Any] | None = None  # prints the results so far

    def status(self, status: int) -> int:
        """The exit status of a command that would otherwise exit with this one."""
        return 128 + self.signal if self.signal and status == INTERRUPTED else status

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        first = self.signal is None
        if not first and time.monotonic() - self.at < ONE_S:
            return
        self.signal, self.at = self.signal or Signals(number), time.monotonic()
        self.seen.set()
        if number != signal.SIGINT:  # which a terminal also sends to the children
            for process in tuple(children):
                process.terminate()
        self.waiting = True
        if not (first and self.deferred):
            raise SignalError


current: Ending | None = None  # of the running command


@contextmanager
def as_by_ctrl_c() -> Iterator[Ending]:
    """While this is open, signals end the command; a signal that is ignored, as by nohup, or has
    another handler stays as it is."""
    global current
    command = Ending()
    if threading.current_thread() is not threading.main_thread():
        yield command
        return
    usual = (signal.SIG_DFL, signal.default_int_handler, leave)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = {number: handler for number, handler in before.items() if handler in usual}
    outer, current = current, command
    unraisable = sys.unraisablehook

    def unless_interrupted(lost: Any) -> None:
        """Report an exception that is lost, unless it is that of a signal, which stays pending."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            unraisable(lost)

    with ExitStack() as stack:
        if ours:
            stack.enter_context(watched(command))
        try:
            for number in ours:
                signal.signal(number, command)
            sys.unraisablehook = unless_interrupted
            yield command
        finally:
            sys.unraisablehook = unraisable
            for number, handler in ours.items():
                signal.signal(number, handler)
            current = outer


def forget() -> None:
    """In a fork of a command's process: signals end it like a new process."""
    global current
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if signal.getsignal(number) is current:
            signal.signal(number, leave if number == signal.SIGINT else signal.SIG_DFL)
    current = None
    children.clear()


@contextmanager
def watched(command: Ending) -> Iterator[None]:
    """While this is open, a thread ensures that a signal ends the command."""
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.setblocking(False)
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        thread = threading.Thread(target=watch, args=(command, reading), daemon=True)
        thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            writing.setblocking(True)
            writing.send(b"\0")
            thread.join()


def watch(command: Ending, reading: socket.socket) -> None:
    while number := reading.recv(1)[0]:
        handler: object = signal.getsignal(number)
        if handler is not command:
            continue
        if not command.seen.wait(CANCEL_S):
            for cancel in tuple(command.cancels):
                with suppress(Exception):
                    cancel()
        if not command.seen.wait(LEAVE_S):
            give_up(command, Signals(number))


def give_up(command: Ending, number: Signals) -> None:
    """End the process, whose main thread does not return from TensorFlow."""
    from tflab import atomic

    with suppress(Exception):
        for process in tuple(children):
            process.kill()
        if command.show:
            command.show()
        sys.stdout.flush()
        sys.stderr.write(LEFT.format(number.name))
        sys.stderr.flush()
    with suppress(Exception):
        atomic.remove_own(atomic.process_folder(), os.getpid())
    os._exit(128 + number)


@contextmanager
def deferred() -> Iterator[None]:
    """While this is open, a signal waits; it raises KeyboardInterrupt at the end, unless it was
    taken. A second signal does not wait."""
    with ExitStack() as stack:
        command = current or stack.enter_context(as_by_ctrl_c())
        command.deferred += 1
        try:
            yield
        finally:
            command.deferred -= 1
        if not command.deferred and command.waiting:
            command.waiting = False
            raise KeyboardInterrupt


@contextmanager
def released() -> Iterator[None]:
    """While this is open within `deferred`, signals do not wait."""
    if current is None:
        yield
        return
    check()
    command, depth = current, current.deferred
    command.deferred = 0
    try:
        yield
    except KeyboardInterrupt:
        command.waiting = False
        raise
    finally:
        command.deferred = depth


def interruptible(items: Iterator[Item]) -> Iterator[Item]:
    """The items; each can be interrupted while it is made, and is complete afterwards."""
    while True:
        with released():
            item = next(items, None)
        if item is None:
            return
        yield item


def is_pending() -> bool:
    """Whether a signal is pending."""
    return current is not None and current.waiting


def check() -> None:
    """Raise KeyboardInterrupt if a signal is pending; it stays pending."""
    if is_pending():
        raise KeyboardInterrupt


def take_pending() -> bool:
    """Whether a signal was pending; it no longer is."""
    if not is_pending():
        return False
    assert current is not None
    current.waiting = False
    return True


@contextmanager
def cancelled_by(cancel: Callable[[], Any]) -> Iterator[None]:
    """While this is open, `cancel` is called from another thread if a signal comes and Python
    does not see it for CANCEL_S."""
    if current is None:
        yield
        return
    cancels = current.cancels
    cancels.append(cancel)
    try:
        yield
    finally:
        cancels.remove(cancel)


@contextmanager
def shown_by(show: Callable[[], Any]) -> Iterator[None]:
    """While this is open, `show` prints the results so far if the process has to be ended."""
    if current is None:
        yield
        return
    command, before = current, current.show
    command.show = show
    try:
        yield
    finally:
        command.show = before


@contextmanager
def child(process: subprocess.Popen[Any]) -> Iterator[None]:
    """While this is open, the process ends when this one does."""
    children.add(process)
    try:
        yield
    finally:
        children.discard(process)
