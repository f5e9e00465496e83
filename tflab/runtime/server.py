"""Server: a task of TensorFlow's own distributed runtime, in this process.

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
from collections.abc import Iterator

import tensorflow as tf

from tflab.cli import confined
from tflab.errors import TflabError, UsageError

SCHEME = "grpc://"
OPEN = "neither encrypted nor authenticated"  # the transport


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
    return start(f"{host}:{confined.port()}")


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
    except OSError:  # a child of a confined process may not list them; other systems have no /proc
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
    # To connect a datagram socket asks for the route and sends nothing; a confined process has none
    kind = socket.SOCK_STREAM if confined.CONFINED else socket.SOCK_DGRAM
    try:
        family, _, _, _, name = socket.getaddrinfo(host.strip("[]"), port, type=kind)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(name)
            own_host = str(probe.getsockname()[0])
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TflabError(f"This machine has no route to {address}: {reason}.") from error
    return f"[{own_host}]" if family == socket.AF_INET6 else own_host
