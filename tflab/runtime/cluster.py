"""Cluster: the tasks that a graph runs on besides this process, started or found, and watched.

Each task is a process with a server of TensorFlow (`server`). A session brings the tasks' addresses
along, and each session has variables of its own there, as a session of a single process has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from typing import IO

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.runtime import processes, server

JOB = "worker"  # of the tasks in a session
CLIENT = "client"  # the job of this process
START_S = 180  # within which a task has to be there; it imports TensorFlow
LOCAL = "127.0.0.1"


@contextmanager
def tasks(wanted: int | Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The addresses of tasks: of this number of new ones on this machine, which end with the
    context, or of those given, once each has answered.

    Raises TflabError, with the task's name, for one that does not come.
    """
    if not isinstance(wanted, int):
        server.check_each(wanted)
        check_reach(wanted)
        yield tuple(wanted)
        return
    with ExitStack() as stack:
        starting = [
            stack.enter_context(
                processes.started(
                    *("tflab.worker", f"{LOCAL}:0", "--watched"),
                    environment={"TF_CPP_MIN_LOG_LEVEL": "2"},
                    own_session=True,  # a signal from the terminal is for this process
                )
            )
            for _ in range(wanted)
        ]
        addresses = tuple(address_of(number, *task) for number, task in enumerate(starting))
        server.STARTED.update(zip(addresses, (task for task, _ in starting), strict=True))
        yield addresses


def address_of(number: int, task: processes.Process, errors: IO[bytes]) -> str:
    """Return the address of a task, which it prints once it listens."""
    assert task.stdout
    if not processes.has_output(task, START_S):
        raise TflabError(f"Task {number} of the cluster did not start within {START_S} s.")
    if address := task.stdout.readline().decode().strip():
        return address
    ending = processes.ending(task, errors)
    raise TflabError(f"Task {number} of the cluster ended during start-up, {ending}")


def close(session: tf1.Session) -> None:
    """Close a session over tasks. The runtime asks each task and waits for ever for one that has
    died, so this waits for a few seconds only."""
    closing = threading.Thread(target=session.close, daemon=True)
    closing.start()
    closing.join(server.ANSWER_S)


# A session over the tasks


def configure(config: tf1.ConfigProto, addresses: Sequence[str], host: str | None = None) -> None:
    """Let a session with this configuration run over the tasks, with variables of its own. They
    reach this process at the host."""
    address = server.own_address(host or client_host(addresses))
    spec = tf.train.ClusterSpec({JOB: list(addresses), CLIENT: [address]})
    config.cluster_def.CopyFrom(spec.as_cluster_def())
    config.isolate_session_state = True


def client_host(addresses: Sequence[str]) -> str:
    """The host by which the tasks reach this process: that of the route to the first of them that
    is not on the loopback device."""
    outward = [address for address in addresses if not is_local(address)]
    return server.host_towards(outward[0]) if outward else "127.0.0.1"


def are_local(addresses: Sequence[str]) -> bool:
    """Whether only this machine reaches all of them."""
    return all(map(is_local, addresses))


def is_local(address: str) -> bool:
    return server.is_local(address.rpartition(":")[0])


def check_reach(addresses: Sequence[str]) -> None:
    """Raise TflabError where a task cannot reach this process, or another task: a receiver connects
    to the sender. On the loopback device all of them can."""
    if are_local(addresses) or passes_on(addresses):
        return
    host = client_host(addresses)
    for number, address in enumerate(addresses):
        if not passes_on([address], host):
            raise TflabError(
                f"Task {number} of the cluster, {address}, cannot reach this process at "
                f"{server.own_address(host)}. Allow connections from there to here, and start the "
                "task at an address of the same network."
            )
    for (one, first), (other, second) in combinations(enumerate(addresses), 2):
        if not passes_on([first, second], host):
            raise TflabError(
                f"Task {one} of the cluster, {first}, and task {other}, {second}, cannot reach "
                "each other. Start each at an address that the other can reach."
            )
    raise TflabError("The tasks of the cluster cannot all reach one another at once.")


def passes_on(addresses: Sequence[str], host: str | None = None) -> bool:
    """Whether a number that is fed here passes from this process to each task, and from each task
    to every other one."""
    config = tf1.ConfigProto(operation_timeout_in_ms=server.ANSWER_S * 1000)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    configure(config, addresses, host)
    with tf.Graph().as_default() as graph:
        fed = tf1.placeholder(tf.float32, [])
        received = []
        for sender in range(len(addresses)):
            with tf.device(device_of(sender)):
                sent = tf.negative(fed)
            for receiver in range(len(addresses)):
                with tf.device(device_of(receiver)):
                    received.append(tf.negative(sent).op)
    session = tf1.Session(target(config), graph, config)
    try:
        session.run(received, {fed: 1.0})
    except server.AWAY:
        return False
    finally:
        close(session)
    return True


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
