"""Health: whether the tasks of a cluster are there, and what is said of one that is not."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import LostTaskError, RefusedError, TflabError
from tflab.runtime import server
from tflab.units import plural

ANSWER_S = 5  # within which a task that is there has to answer
STARTED: dict[str, subprocess.Popen[bytes]] = {}  # by this process, by address
INCARNATIONS: dict[str, int] = {}  # by address, when the session began: another start has another


def check(number: int, address: str) -> None:
    """Raise TflabError where there is no task of this version of TensorFlow at an address."""
    INCARNATIONS.pop(address, None)
    state = answer(address)
    name = f"Task {number} of the cluster, {address},"
    start = f"Start it there with `python -m tflab.worker {address}`."
    if state == SILENT:
        raise TflabError(f"{name} did not answer within {ANSWER_S} s. {start}")
    if state.startswith(UNREACHED):
        raise TflabError(f"{name} cannot be reached{state.removeprefix(UNREACHED)}. {start}")
    ours = server.job()
    if state != ours:
        version = state.removeprefix("tflab_").replace("_", ".")
        if version == state:
            raise TflabError(f"{name} answers, but is no task of tflab. {start}")
        raise TflabError(
            f"{name} runs TensorFlow {version}, and this process {tf.__version__}: tasks of "
            "different versions do not promise to understand each other. Install the same there."
        )


SILENT = "silent"
RESTARTED = "restarted"
UNREACHED = "unreached"


def answer(address: str) -> str:
    """The job under which a server started that listens at an address; else SILENT, RESTARTED, or
    UNREACHED with the reason."""
    if state := unconnected(address):
        return state
    config = tf1.ConfigProto(operation_timeout_in_ms=ANSWER_S * 1000)
    try:
        with tf1.Session(f"{server.SCHEME}{address}", graph=tf.Graph(), config=config) as session:
            device = session.list_devices()[0]
    except tf.errors.OpError:
        return unconnected(address) or SILENT  # it may have ended just now
    if INCARNATIONS.setdefault(address, device.incarnation) != device.incarnation:
        return RESTARTED
    return device.name.removeprefix("/job:").partition("/")[0]


def unconnected(address: str) -> str | None:
    """Why nothing can be sent to an address: SILENT, or UNREACHED with the reason."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S).close()
    except TimeoutError:
        return SILENT
    except OSError as error:
        return f"{UNREACHED}: {(error.strerror or str(error)).lower()}"
    return None


def lost(addresses: Sequence[str]) -> list[str]:
    """What is wrong with the tasks that no longer answer, a clause each."""
    clauses = []
    for number, address in enumerate(addresses):
        state = answer(address)
        if state == SILENT:
            clauses.append(f"task {number} ({address}) does not answer")
            end(address)
        elif state.startswith(UNREACHED):
            clauses.append(f"task {number} ({address}) is gone")
        elif state == RESTARTED:
            clauses.append(f"task {number} ({address}) was started anew")
    return clauses


def end(address: str) -> None:
    """End a task that stands still, where it is one of ours: a session's end would wait for it."""
    if address in STARTED:
        STARTED[address].kill()


@contextmanager
def watched(addresses: Sequence[str]) -> Iterator[None]:
    """While this is open, a signal such as Ctrl-C ends the tasks that stand still: Python heeds it
    only after the step, and that waits for them until its time limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=end_the_still, args=(heard, addresses), daemon=True).start()
    try:
        yield
    finally:
        last = signal.set_wakeup_fd(-1)
        if last != told.fileno():  # of tasks that were started later, and are still there
            signal.set_wakeup_fd(last)
        told.close()


def end_the_still(heard: socket.socket, addresses: Sequence[str]) -> None:
    """Each time that a signal is heard of, until nobody tells any more."""
    with heard:
        while heard.recv(1):
            lost(addresses)


# What a step fails with where a task has gone, stands still or was started anew
AWAY = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError)


def refused(error: tf.errors.OpError, addresses: Sequence[str]) -> RefusedError | None:
    """The sentence for a step that failed because of a task; None where it did not."""
    if not isinstance(error, (*AWAY, tf.errors.CancelledError, tf.errors.InternalError)):
        return None
    clauses = lost(addresses)
    if clauses:
        return given_up(addresses, clauses)
    if isinstance(error, tf.errors.UnavailableError):
        return RefusedError(f"The connection between two tasks broke: {first_line(error)}.")
    return None


def check_all(addresses: Sequence[str]) -> None:
    """Raise LostTaskError where a task has gone: a session would wait until its time limit.

    One that was started anew is as good as any for a session that begins."""
    for address in addresses:
        INCARNATIONS.pop(address, None)
    if clauses := lost(addresses):
        raise given_up(addresses, clauses)


def given_up(addresses: Sequence[str], clauses: Sequence[str]) -> LostTaskError:
    tasks = plural(len(addresses), "task")
    return LostTaskError(f"A step over {tasks} was given up: {' and '.join(clauses)}.")


def first_line(error: tf.errors.OpError) -> str:
    lines = [line.strip(" =") for line in str(error.message).splitlines()]
    return next((line for line in lines if line), "no message").rstrip(".")
