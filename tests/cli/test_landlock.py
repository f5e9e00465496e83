"""Landlock: what a confined process can still do, tried in a process of its own."""

import os
import socket
import subprocess
import sys

import pytest

from tests import needs

pytestmark = [pytest.mark.slow, needs.LANDLOCK]

PROGRAM = """
import os, signal, socket, subprocess, sys
from tflab.cli import landlock
readable, writable, secret, port, parent = sys.argv[1:]
python = [sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/etc/ld.so.cache"]
landlock.confine([readable, *python], [writable])

MPTCP = 262  # which has ports of TCP
child = "import sys; print(open(sys.argv[1]).read())"

for action in {actions!r}:
    try:
        result = eval(action)
        print(result if isinstance(result, int) else "done")
    except OSError as error:
        print(type(error).__name__)
"""
ALLOWED = (
    "open(readable + '/given').read()",
    "open(writable + '/new', 'w')",
    "socket.socketpair()",
    "os.kill(os.getpid(), 0)",
)
REFUSED = (
    "open(readable + '/new', 'w')",
    "open(secret).read()",
    "open(secret, 'w')",
    "os.unlink(secret)",
    "os.symlink(secret, writable + '/link') or open(writable + '/link').read()",
    "os.rename(secret, writable + '/moved')",
    "os.truncate(secret, 0)",
    "socket.create_connection(('127.0.0.1', int(port)), 5)",
    "socket.socket().bind(('127.0.0.1', 0))",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)",
    "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)",
    "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP)",
    "os.kill(int(parent), 0)",
    "landlock.confine(['/'], ['/']) or open(secret).read()",
)
FAILING = ("subprocess.run([sys.executable, '-c', child, secret], capture_output=True).returncode",)
EXPECTED = dict.fromkeys(ALLOWED, "done") | dict.fromkeys(REFUSED, "PermissionError")
EXPECTED |= dict.fromkeys(FAILING, "1")


def test_a_confined_process_has_what_it_was_given_and_nothing_else(tmp_path):
    for name in ("readable", "writable"):
        (tmp_path / name).mkdir()
    (tmp_path / "readable" / "given").write_text("given")
    secret = tmp_path / "secret"
    secret.write_text("open sesame")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        arguments = [tmp_path / "readable", tmp_path / "writable", secret, port, os.getpid()]
        program = PROGRAM.format(actions=[*EXPECTED])
        words = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True)
    assert done.stderr == ""
    assert dict(zip(EXPECTED, done.stdout.splitlines(), strict=True)) == EXPECTED
    assert secret.read_text() == "open sesame"
