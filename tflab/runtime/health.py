"""Health: whether the tasks of a cluster are there, and the error if one is not."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import LostTaskError, RefusedError, TflabError, UsageError
from tflab.runtime import server
from tflab.units import plural

# The start of gRPC in both directions: HTTP/2 (RFC 9113, 3.4), whose first frame has the settings
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS
ANSWER_S = 5  # time in which a running task has to answer
STARTED: dict[str, subprocess.Popen[bytes]] = {}  # by this process, by address
# by address, when the session began: a restarted task has another one
INCARNATIONS: dict[str, int] = {}


def check_each(addresses: Sequence[str]) -> None:
    """Raise TflabError if an address has no task of this version of TensorFlow, or two have the
    same."""
    named: dict[int, int] = {}  # incarnation -> number of the task
    for number, address in enumerate(addresses):
        check(number, address)
        first = named.setdefault(INCARNATIONS[address], number)
        if first != number:
            raise UsageError(
                f"Task {first} of the cluster, {addresses[first]}, and task {number}, {address}, "
                "are the same task; name each once."
            )


def check(number: int, address: str) -> None:
    """Raise TflabError if there is no task of this version of TensorFlow at an address."""
    INCARNATIONS.pop(address, None)
    state = answer(address)
    name = f"Task {number} of the cluster, {address},"
    start = f"Start it there with `python -m tflab.worker {address}`."
    if state == SILENT:
        raise TflabError(f"{name} did not answer within {ANSWER_S} s. {start}")
    if state.startswith(UNREACHED):
        raise TflabError(f"{name} cannot be reached{state.removeprefix(UNREACHED)}. {start}")
    if state == OTHER:
        raise TflabError(f"{name} is not a task: another kind of server answers there. {start}")
    ours = server.job()
    if state != ours:
        version = state.removeprefix("tflab_").replace("_", ".")
        if version == state:
            raise TflabError(f"{name} answers, but is not a task of tflab. {start}")
        raise TflabError(
            f"{name} runs TensorFlow {version}, and this process {tf.__version__}: tasks of "
            "different versions may be incompatible. Install the same version there."
        )


SILENT = "silent"
OTHER = "other"
RESTARTED = "restarted"
UNREACHED = "unreached"


def answer(address: str) -> str:
    """The job name of the server at an address; otherwise SILENT, OTHER, RESTARTED, or UNREACHED
    with the reason."""
    if state := unconnected(address):
        return state
    config = tf1.ConfigProto(operation_timeout_in_ms=ANSWER_S * 1000)
    try:
        with tf1.Session(f"{server.SCHEME}{address}", graph=tf.Graph(), config=config) as session:
            device = session.list_devices()[0]
    except tf.errors.OpError:
        return unconnected(address) or SILENT  # it may have just ended
    if INCARNATIONS.setdefault(address, device.incarnation) != device.incarnation:
        return RESTARTED
    return device.name.removeprefix("/job:").partition("/")[0]


def unconnected(address: str) -> str | None:
    """Why an address does not speak gRPC: SILENT, OTHER, or UNREACHED with the reason."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S) as opened:
            opened.sendall(HELLO)
            frame = opened.makefile("rb").read(len(SETTINGS))
    except TimeoutError:
        return SILENT
    except OSError as error:
        return f"{UNREACHED}: {(error.strerror or str(error)).lower()}"
    # The fourth byte is the type of a frame
    return None if frame[3:4] == SETTINGS[3:4] else OTHER


def failures(addresses: Sequence[str]) -> list[str]:
    """What is wrong with each task that no longer answers, as clauses."""
    clauses = []
    for number, address in enumerate(addresses):
        state = answer(address)
        if state == SILENT:
            clauses.append(f"task {number} ({address}) does not answer")
            end(address)
        elif state.startswith(UNREACHED):
            clauses.append(f"task {number} ({address}) is gone")
        elif state == RESTARTED:
            clauses.append(f"task {number} ({address}) was restarted")
    return clauses


def end(address: str) -> None:
    """Give up a task that does not respond: a step would wait for it until its time limit, and
    the end of a session forever. One of tflab's own is killed; to another one the connections
    are closed."""
    if address in STARTED:
        STARTED[address].kill()
    else:
        server.disconnect(address)


# The errors of a step whose task is gone, does not respond or was restarted
AWAY = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError)


FORGOTTEN = "Session handle is not found"


def refused(error: tf.errors.OpError, addresses: Sequence[str]) -> RefusedError | None:
    """The sentence for a step that failed because of a task; None if it failed otherwise."""
    if not isinstance(error, (*AWAY, tf.errors.CancelledError, tf.errors.InternalError)):
        return None
    clauses = failures(addresses)
    if clauses:
        return given_up(addresses, clauses)
    if isinstance(error, tf.errors.AbortedError) and FORGOTTEN in str(error.message):
        # A task ends the sessions of a master when another one with the same name starts
        # (`SessionMgr::CreateSession` in core/distributed_runtime/session_mgr.cc).
        return LostTaskError(
            f"A step over {plural(len(addresses), 'task')} was abandoned: another command started "
            "to use one of them, and a task serves one command at a time. Start separate tasks "
            "for each command."
        )
    if isinstance(error, tf.errors.UnavailableError):
        return RefusedError(f"The connection between two tasks broke: {first_line(error)}.")
    return None


def check_all(addresses: Sequence[str]) -> None:
    """Raise LostTaskError if a task is gone: a session would wait until its time limit.

    A restarted task does not matter for a new session.
    """
    for address in addresses:
        INCARNATIONS.pop(address, None)
    if clauses := failures(addresses):
        raise given_up(addresses, clauses)


def given_up(addresses: Sequence[str], clauses: Sequence[str]) -> LostTaskError:
    tasks = plural(len(addresses), "task")
    return LostTaskError(f"A step over {tasks} was abandoned: {' and '.join(clauses)}.")


def first_line(error: tf.errors.OpError) -> str:
    lines = [line.strip(" =") for line in str(error.message).splitlines()]
    return next((line for line in lines if line), "no message").rstrip(".")
