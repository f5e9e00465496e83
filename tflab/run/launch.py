"""Launch: the program runs in a separate process, and this process waits for its end.

A signal to the command is passed on to the program. A signal to the group of both processes, such
as Ctrl-C, reaches the program anyway. If the command is killed, so is the program.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from tflab.cli import landlock, temporary
from tflab.errors import UsageError
from tflab.run import PREFIX

# Signals that ask a process for something
PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
PASSED_ON |= {signal.SIGUSR1, signal.SIGUSR2}
GROUP_S = 0.01  # after which a signal has reached all processes of a group
BY_A_PROCESS = 0  # `si_code` of a signal from `kill`, not from the kernel (SI_USER)


def check(program: str) -> None:
    """Raise UsageError if there is no such script, or if an option of Python prevents watching."""
    script = Path(program)
    if program not in ("-m", "-"):
        if not os.path.lexists(script):
            raise UsageError(
                f"There is no script '{script}'; give the name of a Python file, as seen from "
                f"{Path.cwd()}."
            )
        if script.is_dir() and not (script / "__main__.py").exists():
            raise UsageError(f"'{script}' is a folder without a __main__.py; give a Python file.")
        if script.suffix == ".ipynb":
            raise UsageError(f"'{script}' is a notebook; run jupyter nbconvert --to script first.")
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise UsageError("A program cannot be watched under python -E, -I or -S; omit that option.")


def run(
    program: Sequence[str],
    folder: Path,
    settings: Mapping[str, str],
    meanwhile: Callable[[], object],
) -> tuple[int, int]:
    """Run `python PROGRAM...` with the input and output of this process, which calls `meanwhile`
    while the program starts. Return the exit status (`-15`: a signal) and the ns that it took."""
    # Ctrl-C is for the program. Until this process waits for signals, it ignores it.
    handled = [number for number in PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, lambda *_: None)
    child, start_ns = start(program, folder, settings, close_fds=False)
    wall_ns = wait(child, meanwhile) - start_ns
    for number in handled:
        signal.signal(number, signal.SIG_DFL)
    return child.returncode, wall_ns


def start(
    program: Sequence[str], folder: Path, settings: Mapping[str, str], **options: Any
) -> tuple[subprocess.Popen[bytes], int]:
    """Start `python PROGRAM...`, watched; return its process, and the `perf_counter_ns` of the
    start. It writes to `folder`. `settings` are for `watcher.begin`, `options` for `Popen`."""
    path = os.environ.get("PYTHONPATH")
    start_ns = time.perf_counter_ns()
    given = {"FOLDER": str(folder), "START": str(start_ns), **settings}
    given |= {} if path is None else {"PYTHONPATH": path}
    environment = os.environ | {PREFIX + name: value for name, value in given.items()}
    startup = str(Path(__file__).parent / "startup")  # with sitecustomize.py
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (startup, path)))
    # The options of Python with which this command was started, such as `-u`
    flags = [*takewhile(lambda word: not word.startswith("-m"), sys.orig_argv[1:])]
    flags = flags if len(flags) < len(sys.orig_argv) - 1 else []
    words = [sys.executable, *flags, *program]
    child = subprocess.Popen(words, env=environment, preexec_fn=die_with_command, **options)
    return child, start_ns


def wait(child: subprocess.Popen[bytes], meanwhile: Callable[[], object]) -> int:
    """Wait for the program's end, and pass signals on to it; return the `perf_counter_ns` then."""
    if not hasattr(signal, "sigtimedwait"):  # on macOS
        meanwhile()
        child.wait()
        return time.perf_counter_ns()
    signals = PASSED_ON | {signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    ended_ns: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: ended_ns.append(time.perf_counter_ns()))
    witness = witness_of_group()
    meanwhile()
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    while child.poll() is None:
        ended_ns.clear()  # it was only stopped
        # With a limit: the child may have ended before signals were blocked.
        came = signal.sigtimedwait(signals, 1.0)
        if came and came.si_signo in PASSED_ON:
            time.sleep(GROUP_S)
            to_all = came.si_signo in ended(witness)
            witness = witness_of_group()
            if came.si_code == BY_A_PROCESS and not to_all:
                child.send_signal(came.si_signo)
    end_ns = ended_ns[-1] if ended_ns else time.perf_counter_ns()
    ended(witness)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    return end_ns


def witness_of_group() -> int:
    """Start a process that only receives the signals to the command's group; return its id."""
    process = os.fork()
    if not process:
        die_with_command()
        os.closerange(0, os.sysconf("SC_OPEN_MAX"))
        while True:
            signal.pause()  # the signals are blocked, and so they stay pending
    return process


def ended(witness: int) -> list[int]:
    """End a witness; return the signals that it got: none if /proc does not say."""
    pending = 0
    with suppress(OSError):
        status = Path(f"/proc/{witness}/status").read_text()
        pending = int(status.partition("ShdPnd:")[2].split()[0], 16)
    with suppress(OSError):
        os.kill(witness, signal.SIGKILL)
        os.waitpid(witness, 0)
    return [number for number in PASSED_ON if pending >> (number - 1) & 1]


def die_with_command() -> None:
    """Let the kernel kill this process when the command ends, where it can."""
    with suppress(OSError, AttributeError):
        landlock.die_with_parent()


def leave(status: int) -> int:
    """Return the exit status; if a signal ended the program, let it end this process too."""
    if status >= 0:
        return status
    sys.stdout.flush()
    sys.stderr.flush()
    temporary.remove()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has written one, if any
    with suppress(OSError):  # SIGKILL already has its default handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
