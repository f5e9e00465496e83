"""Cluster: the tasks that a graph runs on besides this process, started or found, and watched.

Each task is a process with a server of TensorFlow (`server`). A session brings the tasks' addresses
along, and each session has variables of its own there, as a session of a single process has.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import LostTaskError, RefusedError, TflabError
from tflab.runtime import child, server
from tflab.units import plural

JOB = "worker"  # of the tasks in a session
CLIENT = "client"  # the job of this process
START_S = 180  # within which a task has to be there; it imports TensorFlow
ANSWER_S = 5  # within which one that is there has to answer
LOCAL = "127.0.0.1:0"
STARTED: dict[str, subprocess.Popen[bytes]] = {}  # by this process, by address


@contextmanager
def tasks(wanted: int | Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The addresses of so many new tasks on this machine, which end with the context; or those
    given, once every one has answered.

    Raises TflabError, with the task's name, for one that does not come.
    """
    if not isinstance(wanted, int):
        for number, address in enumerate(wanted):
            check(number, address)
        yield tuple(wanted)
        return
    with ExitStack() as stack:
        starting = [stack.enter_context(process(number)) for number in range(wanted)]
        addresses = tuple(begun(number, *task) for number, task in enumerate(starting))
        STARTED.update(zip(addresses, (task for task, _ in starting), strict=True))
        yield addresses


def close(session: tf1.Session) -> None:
    """Close a session over tasks. That asks each of them, and waits for ever for one that died
    meanwhile; so nobody waits for it for long."""
    closing = threading.Thread(target=session.close, daemon=True)
    closing.start()
    closing.join(ANSWER_S)


@contextmanager
def process(number: int) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A task in a process of its own. It ends with the context, and with this process, however
    that ends: then nobody holds its standard input open."""
    with tempfile.TemporaryFile() as notes:
        task = subprocess.Popen(
            [sys.executable, "-m", "tflab.worker", LOCAL, "--watched"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=notes,
            env=child.surroundings({"TF_CPP_MIN_LOG_LEVEL": "2"}),
        )
        try:
            yield task, notes
        finally:
            task.kill()
            task.wait()
            for pipe in (task.stdin, task.stdout):
                if pipe:
                    pipe.close()


def begun(number: int, task: subprocess.Popen[bytes], notes: IO[bytes]) -> str:
    """The address of a task, which it prints once it listens."""
    assert task.stdout
    late = threading.Timer(START_S, task.kill)
    late.start()
    try:
        address = task.stdout.readline().decode().strip()
    finally:
        in_time = late.is_alive()
        late.cancel()
    if address:
        return address
    if not in_time:
        raise TflabError(f"Task {number} of the cluster did not begin within {START_S} s.")
    status = task.wait()
    notes.seek(0)
    last = notes.read().decode(errors="backslashreplace").strip().splitlines()[-1:]
    raise TflabError(
        f"Task {number} of the cluster ended before it began, with status {status}"
        f"{': ' + last[0] if last else '.'}"
    )


# A task somewhere


def check(number: int, address: str) -> None:
    """Raise TflabError where there is no task of this version of TensorFlow at an address."""
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
UNREACHED = "unreached"


def answer(address: str) -> str:
    """The job under which a server started that listens at an address; else SILENT, or UNREACHED
    with the reason."""
    if state := unconnected(address):
        return state
    config = tf1.ConfigProto(operation_timeout_in_ms=ANSWER_S * 1000)
    try:
        with tf1.Session(f"{server.SCHEME}{address}", graph=tf.Graph(), config=config) as session:
            device = session.list_devices()[0].name
    except tf.errors.OpError:
        return unconnected(address) or SILENT  # it may have ended just now
    return device.removeprefix("/job:").partition("/")[0]


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
    return clauses


def end(address: str) -> None:
    """End a task that stands still, where it is one of ours: a session's end would wait for it."""
    if address in STARTED:
        STARTED[address].kill()


def refused(error: tf.errors.OpError, addresses: Sequence[str]) -> RefusedError | None:
    """The sentence for a step that failed because of a task; None where it did not."""
    away = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError)
    if not isinstance(error, (*away, tf.errors.CancelledError, tf.errors.InternalError)):
        return None
    clauses = lost(addresses)
    if clauses:
        return given_up(addresses, clauses)
    if isinstance(error, tf.errors.UnavailableError):
        return RefusedError(f"The connection between two tasks broke: {first_line(error)}.")
    return None


def check_all(addresses: Sequence[str]) -> None:
    """Raise LostTaskError where a task has gone: a session would wait until its time limit."""
    if clauses := lost(addresses):
        raise given_up(addresses, clauses)


def given_up(addresses: Sequence[str], clauses: Sequence[str]) -> LostTaskError:
    tasks = plural(len(addresses), "task")
    return LostTaskError(f"A step over {tasks} was given up: {' and '.join(clauses)}.")


def first_line(error: tf.errors.OpError) -> str:
    lines = [line.strip(" =") for line in str(error.message).splitlines()]
    return next((line for line in lines if line), "no message").rstrip(".")


# A session over the tasks


def configure(config: tf1.ConfigProto, addresses: Sequence[str]) -> None:
    """Let a session with this configuration run over the tasks, with variables of its own."""
    own = server.own(all(server.is_local(address.rpartition(":")[0]) for address in addresses))
    spec = tf.train.ClusterSpec({JOB: list(addresses), CLIENT: [own]})
    config.cluster_def.CopyFrom(spec.as_cluster_def())
    config.isolate_session_state = True


def target(config: tf1.ConfigProto) -> str:
    """Where a session with this configuration has its master: here, in any case."""
    for job in config.cluster_def.job:
        if job.name == CLIENT:
            return f"{server.SCHEME}{job.tasks[0]}"
    return ""


def addresses_of(config: tf1.ConfigProto) -> tuple[str, ...]:
    return tuple(
        job.tasks[number]
        for job in config.cluster_def.job
        if job.name == JOB
        for number in sorted(job.tasks)
    )


def device_of(task: int) -> str:
    return f"/job:{JOB}/task:{task}"


def client_device() -> str:
    return f"/job:{CLIENT}/task:0"
