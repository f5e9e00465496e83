"""Untrusted files: what is no file, or has too much in it, is said at once."""

import os
import socket

import pytest

from tflab import untrusted


def refusal(call, *given, **more):
    with pytest.raises(OSError) as error:
        call(*given, **more)
    return error.value.strerror


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert refusal(untrusted.opened, tmp_path / "pipe") == "it is a pipe, not a file"
    os.symlink("/dev/zero", "link")
    for place in ("/dev/zero", "/dev/null", "link"):
        assert refusal(untrusted.content, place) == "it is a device, not a file"
    assert refusal(untrusted.opened, tmp_path) == "Is a directory"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert refusal(untrusted.opened, "socket")


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert untrusted.content(path, largest=5) == b"12345"
    said = refusal(untrusted.content, path, largest=4)
    assert said == "it has 5 B, but tflab reads at most 4 B"
