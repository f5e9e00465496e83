"""Ticks: the moments at which a thread looks where the main thread is, and which thread looks.

A thread that waits for the GIL gets it where the main thread releases it. In a loop that calls C
code, it would always see that call. The main thread can look itself, in the handler of a signal;
but Python calls a handler only after the C code. So whenever the main thread has used the processor
for some time, the kernel sends a signal to both threads, and the first that can look does: in C
code that released the GIL the sampler's thread, else the main thread. The clock of these signals
stops while the main thread waits, so none interrupts its waiting. Therefore the sampler's thread
finds out now and then whether the main thread waits, and then looks as well.
"""

from __future__ import annotations

import _signal
import _thread
import ctypes
import sys
import time
from struct import pack

from tflab.run.sampler import interval_ns

TYPE_CHECKING = False  # that of `typing`, which is not imported
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from tflab.run.sampler import Sampler

    Look = Callable[[FrameType | None], None]

SECOND_NS = 1_000_000_000
REGULAR = 16  # ticks, after which the interval changes
WINDOW_S = 0.001  # in which a main thread that waits hardly uses the processor
WAITS = 0.2  # of the window
BEFORE_LAST = (3, 4)  # the last real-time signals but so many: a program hardly has its own there
SIGEV_THREAD_ID, ABSOLUTE = 4, 1  # of Linux: include/uapi/asm-generic/siginfo.h


class Ticks:
    """Two timers that tick at the same moments, one for each thread."""

    def __init__(self, look: Look, sampler: Sampler, own: int, waking: int) -> None:
        self.look, self.sampler, self.own, self.waking = look, sampler, own, waking
        self.main = _thread.get_native_id()
        self.clock = time.pthread_getcpuclockid(_thread.get_ident())
        self.ticks = 0  # so far
        self.next_ns = 0  # when to find out whether the main thread waits
        self.library: Any = ctypes.PyDLL(None)
        if not hasattr(self.library, "timer_create"):  # before version 2.34 of the C library
            self.library = ctypes.PyDLL("librt.so.1")
        self.timers: list[ctypes.c_void_p] = []
        self.thread = 0  # the sampler's, while it runs
        self.waking_thread = _thread.allocate_lock()
        self.ended = False
        self.looked_first = 0  # the thread that did at the last tick, if the other has not come yet

    def start(self) -> None:
        """Start both timers, in the sampler's thread. Raises OSError if there are none."""
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [self.waking])  # it waits for it
        own_thread, self.thread = _thread.get_native_id(), _thread.get_ident()
        for number, thread in ((self.own, self.main), (self.waking, own_thread)):
            # sigevent(3type), with the thread that gets the signal
            event, timer = pack("Piii44x", 0, number, SIGEV_THREAD_ID, thread), ctypes.c_void_p()
            if self.library.timer_create(self.clock, event, ctypes.byref(timer)):
                raise OSError("This system has no timer that measures a single thread.")
            self.timers.append(timer)
        self.set_interval()

    def set_interval(self) -> None:
        """Let both timers tick regularly, in a new interval. If this thread set each tick, the
        ticks would depend on where the main thread releases the GIL."""
        every_ns = interval_ns()
        first_ns = time.clock_gettime_ns(self.clock) + every_ns
        spec = pack("4l", 0, every_ns, *divmod(first_ns, SECOND_NS))  # itimerspec(3type)
        for timer in self.timers:
            self.library.timer_settime(timer, ABSOLUTE, spec, None)

    def stop(self) -> None:
        while self.timers:
            self.library.timer_delete(self.timers.pop())

    def wait(self) -> bool:
        """Wait for a tick, or until it is time to look whether the main thread waits; return
        whether this thread has to sample."""
        left_ns = max(self.next_ns - time.monotonic_ns(), 0)
        if _signal.sigtimedwait([self.waking], left_ns / 1e9):
            self.ticks += 1
            if self.ticks % REGULAR == 0:
                self.set_interval()
            return self.is_first()
        later_ns = interval_ns(self.sampler.importing)  # which hardly ever waits
        self.next_ns = max(self.next_ns, time.monotonic_ns() - later_ns) + later_ns
        if self.sampler.inside[1] > 0:  # in a run, whose time is measured
            return True
        # Whether the main thread hardly uses the processor
        used_ns, began_ns = time.clock_gettime_ns(self.clock), time.monotonic_ns()
        time.sleep(WINDOW_S)
        used_ns = time.clock_gettime_ns(self.clock) - used_ns
        return used_ns < WAITS * (time.monotonic_ns() - began_ns)

    def is_first(self) -> bool:
        """Return whether this thread has to look: the other one has not looked at this tick."""
        thread = _thread.get_ident()
        second = self.looked_first not in (0, thread)
        self.looked_first = 0 if second else thread
        return not second

    def wake(self) -> None:
        """Let the sampler's thread go on, if it has not ended."""
        with self.waking_thread:
            if self.thread:
                _signal.pthread_kill(self.thread, self.waking)

    def leave(self) -> None:
        """Stop, because the sampler's thread ends."""
        with self.waking_thread:
            self.thread = 0
        self.stop()

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Look, in the main thread, at the frame that the signal interrupted."""
        if sys.getprofile() or sys.gettrace():
            self.ended = True  # the program observes its own calls, and this would be one of them
            self.stop()
        elif self.timers and self.is_first():
            self.look(frame)


def prepared(look: Look, sampler: Sampler) -> Ticks | None:
    """Return ticks that call `look` in the main thread, the caller's; None if none are possible."""
    if not sys.platform.startswith("linux") or not hasattr(_signal, "SIGRTMAX"):
        return None
    numbers = [_signal.SIGRTMAX - before for before in BEFORE_LAST]
    handlers = list(map(_signal.getsignal, numbers))
    if any(at and getattr(at, "__func__", at) is not Ticks.handle for at in handlers):
        return None  # the program has its own
    try:
        ticks = Ticks(look, sampler, *numbers)
        _signal.signal(ticks.own, ticks.handle)
        _signal.siginterrupt(ticks.own, False)  # a system call of C code goes on
    except (ValueError, OSError):  # another thread calls this, or the C library has no timers
        return None
    return ticks
