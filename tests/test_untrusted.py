"""Untrusted files: what is no file, or has too much in it, is said at once."""

import os
import socket

import pytest

from tflab import untrusted


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_is_not_waited_for(pipe):
    with pytest.raises(OSError) as error:
        untrusted.opened(pipe)
    assert error.value.strerror == "it is a pipe, not a file"


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null", "link"])
def test_a_device_is_not_read_also_behind_a_link(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink("/dev/zero", "link")
    with pytest.raises(OSError) as error:
        untrusted.content(place)
    assert error.value.strerror == "it is a device, not a file"


def test_neither_a_folder_nor_a_socket_is_a_file(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError) as error:
        untrusted.opened(tmp_path)
    assert error.value.strerror == "Is a directory"
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError):
            untrusted.opened("socket")


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert untrusted.content(path, largest=5) == b"12345"
    with pytest.raises(OSError) as error:
        untrusted.content(path, largest=4)
    assert error.value.strerror == "it has 5 B, but tflab reads at most 4 B"
