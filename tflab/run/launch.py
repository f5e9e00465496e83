"""Launch: the program starts in a process of its own, and this one waits for its end.

A signal that somebody sends to the command goes on to the program. One of the terminal, such as
Ctrl-C, reaches both of them anyway, and is the program's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tflab import atomic
from tflab.errors import UsageError
from tflab.run import segments, startup

PREFIX = "TFLAB_RUN_"  # as in startup/sitecustomize.py
PASSED_ON = {  # signals by which somebody asks a process for something
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
}
ANSWER_S = 1.0  # in which the program's process writes down what was measured
POLL_S = 0.005
BY_A_PROCESS = 0  # `si_code` of a signal from `kill`, as opposed to the kernel's own (SI_USER)


@dataclass(frozen=True)
class Ended:
    """How the program ended."""

    status: int  # its exit status; negative: the signal that ended it, as `subprocess` counts
    start_ns: int  # by time.perf_counter_ns
    wall_ns: int


def check() -> None:
    """Raise UsageError where Python was told not to import what watches the program."""
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise UsageError("A program is not watched under python -E, -I or -S; leave it out.")


def run(program: Sequence[str], folder: Path, settings: Mapping[str, str]) -> Ended:
    """Run `python PROGRAM...` with this process's input and output, and wait for its end.

    `settings` reach `watcher.begin`; they and what the program leaves behind are in `folder`.
    """
    given = {"FOLDER": str(folder), **settings}
    path = [str(Path(startup.__file__).parent)]
    if "PYTHONPATH" in os.environ:
        given["PYTHONPATH"] = os.environ["PYTHONPATH"]
        path += [os.environ["PYTHONPATH"]] * bool(os.environ["PYTHONPATH"])
    start_ns = time.perf_counter_ns()
    given["START"] = str(start_ns)
    environment = {
        **os.environ,
        **{PREFIX + name: value for name, value in given.items()},
        "PYTHONPATH": os.pathsep.join(path),
    }
    # Ctrl-C is for the program: until this process waits for signals, it does nothing here.
    handled = [number for number in PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, lambda *_: None)
    child = subprocess.Popen(
        [sys.executable, *own_flags(), *program],
        env=environment,
        close_fds=False,
    )
    wait(child, folder)
    wall_ns = time.perf_counter_ns() - start_ns
    for number in handled:
        signal.signal(number, signal.SIG_DFL)
    return Ended(child.returncode, start_ns, wall_ns)


def wait(child: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for the program's end, and pass on what somebody sends to this process meanwhile: it may
    end the program at once, so what was measured until then is written down before."""
    if not hasattr(signal, "sigtimedwait"):
        child.wait()
        return
    signals = PASSED_ON | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    while child.poll() is None:
        # Not for ever: the child may have ended before signals were blocked.
        came = signal.sigtimedwait(signals, 1.0)
        if came and came.si_signo in PASSED_ON and came.si_code == BY_A_PROCESS:
            ask_for_segment(child, folder)
            child.send_signal(came.si_signo)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)


def ask_for_segment(child: subprocess.Popen[bytes], folder: Path) -> None:
    """Let the program's process write down what was measured, in so far as it does so soon."""
    end = time.monotonic() + ANSWER_S
    segments.ask(str(folder))
    while segments.is_asked(str(folder)) and time.monotonic() < end and child.poll() is None:
        time.sleep(POLL_S)


def own_flags() -> list[str]:
    """The options of Python itself with which this command was started: `-u`, `-X dev`."""
    words = sys.orig_argv[1:]
    flags = [*takewhile(lambda word: not word.startswith("-m"), words)]
    return flags if len(flags) < len(words) else []


def leave(status: int) -> int:
    """The exit status of this process; where a signal ended the program, it ends this one too."""
    if status >= 0 or not hasattr(signal, "SIGKILL"):
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    atomic.remove_own(atomic.process_folder(), os.getpid())
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left one, if any
    with suppress(OSError):  # there is no other way than the usual for SIGKILL
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
