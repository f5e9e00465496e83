"""Ending: SIGTERM and SIGHUP end a command as Ctrl-C does, and its children with it.

Ctrl-C reaches the children of a command by itself, because the terminal sends it to all of them.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# Windows has no SIGHUP
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
INTERRUPTED = 130  # 128 + SIGINT, as shells count

children: set[subprocess.Popen[Any]] = set()


@dataclass
class Ending:
    """How a command is being ended from outside, if it is."""

    signal: signal.Signals | None = None

    def status(self, status: int) -> int:
        """The exit status of a command that would exit with this one."""
        return 128 + self.signal if self.signal and status == INTERRUPTED else status


@contextmanager
def as_by_ctrl_c() -> Iterator[Ending]:
    """While this is open, the signals do what Ctrl-C does; one that is ignored, as by nohup, or
    has a handler stays as it is."""
    ending = Ending()
    if threading.current_thread() is not threading.main_thread():
        yield ending
        return

    def end(number: int, frame: Any) -> None:
        ending.signal = signal.Signals(number)
        for child in tuple(children):
            child.terminate()
        usual = signal.getsignal(signal.SIGINT)
        if not callable(usual):  # a shell lets its background jobs ignore Ctrl-C
            raise KeyboardInterrupt
        usual(signal.SIGINT, frame)

    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield ending
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def child(process: subprocess.Popen[Any]) -> Iterator[None]:
    """While this is open, the process ends when this one is ended."""
    children.add(process)
    try:
        yield
    finally:
        children.discard(process)
