"""Downloads: a host that does not answer is given up; only the published file is kept."""

import os
import sys

import pytest

from tests.approval import refused
from tests.datasets.publication import Quiet, served
from tflab.datasets import files

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 1000


def fetch(cache, mirrors):
    """Download the file, which is published if it has the content."""
    files.fetch(cache / "data.bin", lambda path: path.read_bytes() == CONTENT, mirrors)


@pytest.fixture
def mirrors(tmp_path):
    """The addresses of two folders that servers of this machine hand out, and the folders."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with served(folders[0]) as first, served(folders[1]) as second:
        yield [first, second], folders


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def cache(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def test_the_first_mirror_that_has_the_published_file_is_the_last_one_asked_and_shows_a_bar(
    mirrors, cache, capsys, monkeypatch
):
    """The bar is on stderr, with the name and the size, where that is a terminal."""
    addresses, folders = mirrors
    (folders[0] / "data.bin").write_bytes(b"<html>Sign in</html>")
    (folders[1] / "data.bin").write_bytes(CONTENT)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    fetch(cache, [*addresses, "http://never.invalid/"])
    assert names(cache) == ["data.bin"]
    assert (cache / "data.bin").read_bytes() == CONTENT
    output = capsys.readouterr()
    assert output.out == ""
    assert "data.bin" in output.err and "256.0 kB" in output.err


def test_each_mirror_that_failed_is_told_with_its_reason(mirrors, cache):
    addresses, folders = mirrors
    (folders[1] / "data.bin").write_bytes(CONTENT[:-1])
    assert refused(fetch, cache, ["http://127.0.0.1:1/", *addresses]) == (
        "TflabError: http://127.0.0.1:1/data.bin failed: Connection refused. "
        f"{addresses[0]}data.bin failed: HTTP Error 404: File not found. "
        f"{addresses[1]}data.bin differs from the published file (its SHA-256 differs)."
    )
    assert names(cache) == []


class Breaking(Quiet):
    """Announces the whole file, and ends the connection after half of it."""

    def copyfile(self, source, outputfile):
        outputfile.write(source.read(os.fstat(source.fileno()).st_size // 2))


def test_a_broken_connection_leaves_no_file(mirrors, cache):
    _, folders = mirrors
    (folders[0] / "data.bin").write_bytes(CONTENT)
    with served(folders[0], Breaking) as address:
        said = refused(fetch, cache, [address])
    differs = "differs from the published file (its SHA-256 differs)."
    assert said == f"TflabError: {address}data.bin {differs}"
    assert names(cache) == []
