"""Cluster: the tasks that a graph runs on besides this process, started or found, and watched.

Each task is a process with a server of TensorFlow. A session brings the tasks' addresses along, and
each session has variables of its own there.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import socket
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.framework.device_attributes_pb2 import DeviceAttributes

from tflab.errors import RefusedError, TflabError, UsageError
from tflab.runtime import processes
from tflab.units import plural

JOB = "worker"  # of the tasks in a session
CLIENT = "client"  # the job of this process
CLIENT_DEVICE = f"/job:{CLIENT}/task:0"
START_S = 180  # within which a task has to be there; it imports TensorFlow
ANSWER_S = 5  # time in which a running task has to answer
LOCAL = "127.0.0.1"
STARTED: dict[str, processes.Process] = {}  # by this process, by address

# The errors of a step whose task is gone, does not respond or was restarted
AWAY = (
    *(tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError),
    *(tf.errors.CancelledError, tf.errors.InternalError),
)


@contextmanager
def tasks(wanted: int | Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the addresses of tasks: of this many new tasks on this machine, which end with the
    context, or of the given tasks, once each has answered. Raises TflabError without an answer."""
    if not isinstance(wanted, int):
        for number, address in enumerate(wanted):
            check(number, address)
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
        addresses = []
        for number, (task, errors) in enumerate(starting):  # each prints its address
            assert task.stdout
            name = f"Task {number} of the cluster"
            if not processes.has_output(task, START_S):
                raise TflabError(f"{name} did not start within {START_S} s.")
            addresses.append(task.stdout.readline().decode().strip())
            if not addresses[-1]:
                raise TflabError(f"{name} ended during start-up, {processes.ending(task, errors)}")
            STARTED[addresses[-1]] = task
        yield tuple(addresses)


# Whether the tasks are there


def check(number: int, address: str) -> None:
    """Raise TflabError if no task with this version of TensorFlow answers at an address."""
    name = f"Task {number} of the cluster, {address},"
    start = f"Start it there with `python -m tflab.worker {address}`."
    if reason := unreached(address):
        raise TflabError(f"{name} cannot be reached: {reason}. {start}")
    device = device_at(address)
    if device is None or not device.name.startswith(f"/job:{job()}/"):
        which = f"a task of tflab with TensorFlow {tf.__version__}"
        raise TflabError(f"{name} does not answer as {which}. {start}")


def unreached(address: str) -> str:
    """Return why no connection to an address can be opened; "" if one can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S).close()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def device_at(address: str) -> DeviceAttributes | None:
    """Return the first device of the task at an address; None if no task answers."""
    if unreached(address):
        return None
    config = tf1.ConfigProto(operation_timeout_in_ms=ANSWER_S * 1000)
    try:
        with tf1.Session(f"{SCHEME}{address}", graph=tf.Graph(), config=config) as session:
            return session.list_devices()[0]
    except tf.errors.OpError:
        return None


def failures(addresses: Sequence[str]) -> list[str]:
    """Return what is wrong with each task that does not answer, as clauses. If tflab started the
    task, it is killed: a step would wait for it until its time limit."""
    clauses = []
    for number, address in enumerate(addresses):
        if device_at(address) is None:
            state = "is gone" if unreached(address) else "does not answer"
            clauses.append(f"task {number} ({address}) {state}")
            if address in STARTED:
                STARTED[address].kill()
    return clauses


def refused(error: tf.errors.OpError, addresses: Sequence[str]) -> RefusedError | None:
    """Return the sentence for a step that failed because of a task; None if it failed otherwise."""
    if not isinstance(error, AWAY):
        return None
    clauses = failures(addresses)
    if not clauses and isinstance(error, tf.errors.DeadlineExceededError):
        clauses = ["it did not end in time; perhaps a task cannot reach another one"]
    if not clauses and "Session handle is not found" in str(error.message):
        # A task ends the sessions of a master when another one with the same name starts
        clauses = ["a task was restarted, or is used by another command, and serves one at a time"]
    return lost(addresses, clauses) if clauses else None


def check_all(addresses: Sequence[str]) -> None:
    """Raise RefusedError if a task is gone: a session would wait until its time limit."""
    if clauses := failures(addresses):
        raise lost(addresses, clauses)


def lost(addresses: Sequence[str], clauses: Sequence[str]) -> RefusedError:
    tasks = plural(len(addresses), "task")
    return RefusedError(f"A step over {tasks} was abandoned: {' and '.join(clauses)}.")


# A session over the tasks


def client_host(addresses: Sequence[str]) -> str:
    """Return the host by which the tasks reach this process: its own address on the route to the
    first task that is not on the loopback device. Raises TflabError without such a route."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        if is_local(host):
            continue
        kind = socket.SOCK_DGRAM  # to connect such a socket asks for the route, and sends nothing
        try:
            family, _, _, _, name = socket.getaddrinfo(host.strip("[]"), port, type=kind)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(name)
                own_host = str(probe.getsockname()[0])
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise TflabError(f"This machine has no route to {address}: {reason}.") from error
        return f"[{own_host}]" if family == socket.AF_INET6 else own_host
    return LOCAL


def close(session: tf1.Session) -> None:
    """Close a session over tasks; do not wait for a dead task, as the runtime does for ever."""
    closing = threading.Thread(target=session.close, daemon=True)
    closing.start()
    closing.join(ANSWER_S)


def target(addresses: Sequence[str]) -> str:
    """Return the address of this process, which is the master of a session over tasks."""
    return f"{SCHEME}{own_address(client_host(addresses))}"


def device_of(task: int) -> str:
    return f"/job:{JOB}/task:{task}"


# The server of a task
#
# A server knows nobody else when it starts: a session brings the cluster along (ClusterSpec
# propagation, tensorflow/core/distributed_runtime/master.cc). It ends with its process.

SCHEME = "grpc://"
OPEN = "neither encrypted nor authenticated"  # the transport
KEPT: list[tf.distribute.Server] = []  # a server that is collected shuts down its ports


def job() -> str:
    """Return the name of a server's job, which contains the version of TensorFlow."""
    return f"tflab_{re.sub(r'[^0-9A-Za-z]', '_', tf.__version__)}"


def start(address: str) -> tuple[str, bool]:
    """Start a server. Return its address, with a real port instead of 0, and whether only this
    machine can connect to it. Raises UsageError if the address is not free, or TflabError."""
    host, _, port = address.rpartition(":")
    # TensorFlow would only log that it cannot listen there
    try:
        addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, _, _, _, name = addresses[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(
            f"No task can listen at {host}:{port}: {reason}. Give an address of this machine, and "
            "a free port, or 0 for any."
        ) from error
    spec = tf.train.ClusterSpec({job(): [address]})
    try:
        server = tf.distribute.Server(spec, job_name=job(), task_index=0)
    except tf.errors.OpError as error:
        raise TflabError(f"No server could be started at {address}: {error.message}.") from error
    KEPT.append(server)
    started = str(server.target.removeprefix(SCHEME))
    return started, is_local(host) and keep_local(int(started.rpartition(":")[2]))


@functools.cache
def own_address(host: str) -> str:
    """Return the address of this process's own server, at one of this machine's hosts. It holds the
    master of the session, so the graph is rewritten and fed in this process."""
    return start(f"{host}:0")[0]


def is_local(host: str) -> bool:
    """Return whether only this machine can reach a host of this name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def keep_local(port: int) -> bool:
    """Let only this machine connect to a port, and return whether that worked: TensorFlow listens
    on all addresses, whatever host it is given (`AddListeningPort` in
    core/distributed_runtime/rpc/grpc_server_lib.cc).

    A socket that is bound to the loopback device takes no connection from another one. On a kernel
    before 5.7, and on other systems, the port stays open.
    """
    bound = []
    folder = "/proc/self/fd"
    for descriptor in map(int, os.listdir(folder) if os.path.isdir(folder) else ()):
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as opened:
                listens = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and opened.getsockname()[1] == port:
                    bound.append(False)
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
                    bound[-1] = True
        except (OSError, AttributeError, IndexError, TypeError):  # closed, of another kind, refused
            continue
    return bool(bound) and all(bound)
