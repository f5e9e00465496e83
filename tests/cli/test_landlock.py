"""Landlock: what a confined process can still do, tried in a process of its own."""

import os
import socket
import subprocess
import sys

import pytest

from tests import needs

pytestmark = [pytest.mark.slow, needs.LANDLOCK]

TRY = """
import os, signal, socket, subprocess, sys
from tflab.cli import landlock
readable, writable, secret, port, parent = sys.argv[1:]
python = [sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/etc/ld.so.cache"]
landlock.confine([readable, *python], [writable])

MPTCP = 262  # which has ports of TCP

def outcome(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__

def connect(port):
    socket.create_connection(("127.0.0.1", int(port)), 5).close()

child = "import sys; print(open(sys.argv[1]).read())"
print(outcome(lambda: open(readable + "/given").read()))
print(outcome(lambda: open(readable + "/new", "w")))
print(outcome(lambda: open(writable + "/new", "w")))
print(outcome(lambda: open(secret).read()))
print(outcome(lambda: open(secret, "w")))
print(outcome(lambda: os.unlink(secret)))
print(outcome(lambda: os.symlink(secret, writable + "/link") or open(writable + "/link").read()))
print(outcome(lambda: os.rename(secret, writable + "/moved")))
print(outcome(lambda: os.truncate(secret, 0)))
print(outcome(lambda: connect(port)))
print(outcome(lambda: socket.socket().bind(("127.0.0.1", 0))))
print(outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)))
print(outcome(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)))
print(outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)))
print(outcome(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)))
print(outcome(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)))
print(outcome(lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP)))
print(outcome(lambda: socket.socketpair()))
print(outcome(lambda: os.kill(int(parent), 0)))
print(outcome(lambda: os.kill(os.getpid(), 0)))
print(subprocess.run([sys.executable, "-c", child, secret], capture_output=True).returncode)
print(outcome(lambda: landlock.confine(["/"], ["/"]) or open(secret).read()))
"""
EXPECTED = """\
done
PermissionError
done
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
PermissionError
done
PermissionError
done
1
PermissionError
"""


def listening():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def test_a_confined_process_has_what_it_was_given_and_nothing_else(tmp_path):
    for name in ("readable", "writable"):
        (tmp_path / name).mkdir()
    (tmp_path / "readable" / "given").write_text("given")
    secret = tmp_path / "secret"
    secret.write_text("open sesame")
    with listening() as other:
        port = other.getsockname()[1]
        arguments = [tmp_path / "readable", tmp_path / "writable", secret, port, os.getpid()]
        done = subprocess.run(
            [sys.executable, "-c", TRY, *map(str, arguments)], capture_output=True, text=True
        )
    assert done.stderr == ""
    assert done.stdout == EXPECTED
    assert secret.read_text() == "open sesame"
