"""Server: a task of TensorFlow's own distributed runtime, in this process, and whether those of a
cluster are there.

A server knows nobody else when it starts: a session brings the cluster along (ClusterSpec
propagation, tensorflow/core/distributed_runtime/master.cc). It has no clean way to stop; it goes
with its process. What comes over the wire is neither encrypted nor authenticated, and whoever
reaches the port can run ops on this machine.
"""

from __future__ import annotations

import errno
import functools
import ipaddress
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator, Sequence

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import LostTaskError, RefusedError, TflabError, UsageError
from tflab.units import plural

SCHEME = "grpc://"
OPEN = "neither encrypted nor authenticated"  # the transport
# The start of gRPC in both directions: HTTP/2 (RFC 9113, 3.4), whose first frame has the settings
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS
ANSWER_S = 5  # time in which a running task has to answer
STARTED: dict[str, subprocess.Popen[bytes]] = {}  # by this process, by address
# by address, when the session began: a restarted task has another one
INCARNATIONS: dict[str, int] = {}


def job() -> str:
    """The name under which a server starts. It says the version, for whoever asks."""
    return f"tflab_{re.sub(r'[^0-9A-Za-z]', '_', tf.__version__)}"


def start(address: str) -> str:
    """Start a server; return its address, where port 0 has become a real one.

    Raises UsageError where the address cannot be had.
    """
    host, _, port = address.rpartition(":")
    check_free(host, int(port))
    spec = tf.train.ClusterSpec({job(): [address]})
    try:
        server = tf.distribute.Server(spec, job_name=job(), task_index=0)
    except tf.errors.OpError as error:
        raise TflabError(f"No server could be started at {address}: {error.message}.") from error
    KEPT.append(server)
    started = server.target.removeprefix(SCHEME)
    if is_local(host):
        keep_local(int(started.rpartition(":")[2]))
    return started


KEPT: list[tf.distribute.Server] = []  # a server that is collected shuts down its ports


@functools.cache
def own_address(host: str) -> str:
    """The address of this process's own server at one of this machine's hosts: it holds the
    session's master, so that the graph is rewritten here, and is fed from here."""
    return start(f"{host}:0")


def check_free(host: str, port: int) -> None:
    """Say what is wrong with an address, which TensorFlow only logs."""
    try:
        addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, _, _, _, name = addresses[0]
        with socket.socket(family) as probe:
            if os.name == "posix":  # on Windows it would share a port that is in use
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(name)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = "the port is in use; give another, or 0 for any free port"
        elif error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
            why = f"this machine has no address '{host}'; give one of its addresses, or 127.0.0.1"
        else:
            why = f"{error.strerror}; give another port"
        raise UsageError(f"No task can listen at {host}:{port}: {why}.") from error


def is_local(host: str) -> bool:
    """Whether only this machine reaches such an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def keep_local(port: int) -> None:
    """Let only this machine connect to a port: TensorFlow listens on all addresses, whatever host
    it is given (`AddListeningPort` in core/distributed_runtime/rpc/grpc_server_lib.cc).

    A socket that is bound to the loopback device takes no connection from another one. Linux only;
    elsewhere, and on a kernel before 5.7, the port stays open, and `is_kept_local` says so.
    """
    for listening in sockets_at(port):
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
        except (OSError, AttributeError):
            continue


def is_kept_local(port: int) -> bool:
    if not hasattr(socket, "SO_BINDTODEVICE"):
        return False
    devices = [
        listening.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0")
        for listening in sockets_at(port)
    ]
    return bool(devices) and set(devices) == {b"lo"}


def disconnect(address: str) -> None:
    """End the connections of this process to an address, so that calls which wait for an answer
    fail at once. Linux only; elsewhere they wait until their time limit."""
    host, _, port = address.rpartition(":")
    try:
        addresses = {item[4][0] for item in socket.getaddrinfo(host.strip("[]"), port)}
    except OSError:
        return
    for opened in sockets():
        try:
            peer = opened.getpeername()
            if peer[1] == int(port) and peer[0].removeprefix("::ffff:") in addresses:
                opened.shutdown(socket.SHUT_RDWR)
        except (OSError, IndexError, TypeError):  # not connected, or a socket of another kind
            continue


def sockets_at(port: int) -> Iterator[socket.socket]:
    """The sockets of this process that listen at a port."""
    for opened in sockets():
        try:
            listens = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if listens and opened.getsockname()[1] == port:
                yield opened
        except (OSError, IndexError, TypeError):  # a socket of another kind
            continue


def sockets() -> Iterator[socket.socket]:
    """The sockets of this process, each of them open until the next one is asked for."""
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # other systems have no /proc
        descriptors = [*range(os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 0)]
    for descriptor in descriptors:
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as opened:
                yield opened
        except OSError:  # not open, or closed meanwhile
            continue


def host_towards(address: str) -> str:
    """The address of this machine from which it reaches another address, as its routes say.

    Raises TflabError where no route leads there.
    """
    host, _, port = address.rpartition(":")
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


# Whether the tasks of a cluster are there, and the error if one is not


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
    ours = job()
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
        with tf1.Session(f"{SCHEME}{address}", graph=tf.Graph(), config=config) as session:
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
        disconnect(address)


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
