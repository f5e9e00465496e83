"""Cluster: the tasks that a graph runs on besides this process, started or found, and watched.

Each task is a process with a server of TensorFlow (`server`). A session brings the tasks' addresses
along, and each session has variables of its own there, as a session of a single process has.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.runtime import child, health, server

JOB = "worker"  # of the tasks in a session
CLIENT = "client"  # the job of this process
START_S = 180  # within which a task has to be there; it imports TensorFlow
LOCAL = "127.0.0.1:0"


@contextmanager
def tasks(wanted: int | Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The addresses of so many new tasks on this machine, which end with the context; or those
    given, once every one has answered.

    Raises TflabError, with the task's name, for one that does not come.
    """
    if not isinstance(wanted, int):
        for number, address in enumerate(wanted):
            health.check(number, address)
        yield tuple(wanted)
        return
    with ExitStack() as stack:
        starting = [stack.enter_context(process(number)) for number in range(wanted)]
        addresses = tuple(begun(number, *task) for number, task in enumerate(starting))
        health.STARTED.update(zip(addresses, (task for task, _ in starting), strict=True))
        stack.enter_context(health.watched(addresses))
        yield addresses


def close(session: tf1.Session) -> None:
    """Close a session over tasks. That asks each of them, and waits for ever for one that died
    meanwhile; so nobody waits for it for long."""
    closing = threading.Thread(target=session.close, daemon=True)
    closing.start()
    closing.join(health.ANSWER_S)


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
            start_new_session=True,  # a signal to the group of this process is for this process
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


# A session over the tasks


def configure(config: tf1.ConfigProto, addresses: Sequence[str]) -> None:
    """Let a session with this configuration run over the tasks, with variables of its own."""
    spec = tf.train.ClusterSpec({JOB: list(addresses), CLIENT: [server.own(are_local(addresses))]})
    config.cluster_def.CopyFrom(spec.as_cluster_def())
    config.isolate_session_state = True


def are_local(addresses: Sequence[str]) -> bool:
    """Whether only this machine reaches all of them."""
    return all(server.is_local(address.rpartition(":")[0]) for address in addresses)


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
