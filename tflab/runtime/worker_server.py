"""Worker server: a task of TensorFlow's own distributed runtime, in this process.

A server knows nobody else when it starts: a session brings the cluster along (ClusterSpec
propagation, tensorflow/core/distributed_runtime/master.cc). It has no clean way to stop; it goes
with its process. What comes over the wire is neither encrypted nor authenticated, and whoever
reaches the port can run ops on this machine.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import socket
import stat
from collections.abc import Iterator

import tensorflow as tf

from tflab.errors import TflabError, UsageError

SCHEME = "grpc://"
OPEN = "neither encrypted nor authenticated"  # the transport
KEPT: list[tf.distribute.Server] = []  # a server that is collected shuts down its ports


def job() -> str:
    """Return the name under which a server starts. It contains the version, for whoever asks."""
    return f"tflab_{re.sub(r'[^0-9A-Za-z]', '_', tf.__version__)}"


def start(address: str) -> tuple[str, bool]:
    """Start a server; return its address, where port 0 has become a real one, and whether only this
    machine can connect to it.

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
    started = str(server.target.removeprefix(SCHEME))
    return started, is_local(host) and keep_local(int(started.rpartition(":")[2]))


@functools.cache
def own_address(host: str) -> str:
    """Return the address of this process's own server at one of this machine's hosts: it holds the
    session's master, so that the graph is rewritten here and fed from here."""
    return start(f"{host}:0")[0]


def check_free(host: str, port: int) -> None:
    """Raise UsageError with what is wrong with an address, which TensorFlow only logs."""
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


def is_local(host: str) -> bool:
    """Return whether only this machine reaches such an address."""
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

    A socket that is bound to the loopback device takes no connection from another one. Linux only;
    elsewhere, and on a kernel before 5.7, the port stays open.
    """
    bound = []
    for listening in sockets_at(port):
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
            bound.append(True)
        except (OSError, AttributeError):
            bound.append(False)
    return bool(bound) and all(bound)


def sockets_at(port: int) -> Iterator[socket.socket]:
    """Yield the sockets of this process that listen at a port, each of them open until the next one
    is requested."""
    folder = "/proc/self/fd"
    for descriptor in map(int, os.listdir(folder) if os.path.isdir(folder) else ()):
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as opened:
                listens = opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and opened.getsockname()[1] == port:
                    yield opened
        except (OSError, IndexError, TypeError):  # closed meanwhile, or of another kind
            continue
