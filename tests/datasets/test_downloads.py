"""Downloads: a host that does not answer, or does not end, is given up; the rest goes to a file."""

import contextlib
import http.server
import threading
import time
import urllib.request

import pytest

from tflab.datasets import files
from tflab.errors import TflabError

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    """The address of a folder that a server of this machine hands out, and the folder."""
    folder = tmp_path / "published"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/", folder
        running.shutdown()


def test_a_file_comes_over_the_network_as_it_is_and_its_bar_is_full(server, tmp_path, capsys):
    address, folder = server
    content = bytes(range(256)) * 1000
    (folder / "data.bin").write_bytes(content)
    part = tmp_path / "data.bin"
    files.receive(f"{address}data.bin", part, limit=len(content))
    assert part.read_bytes() == content
    output = capsys.readouterr()
    assert output.out == ""
    assert "data.bin" in output.err and "256.0/256.0 kB" in output.err


def test_a_file_that_is_not_there_is_told_with_its_address(server, tmp_path):
    address, _ = server
    with pytest.raises(TflabError) as error:
        files.receive(f"{address}data.bin", tmp_path / "part", limit=10)
    assert str(error.value) == f"{address}data.bin failed: HTTP Error 404: File not found."


def test_the_first_address_that_delivers_what_is_right_is_the_last_one_asked(server, tmp_path):
    address, folder = server
    for name in ("second", "third"):
        (folder / name).write_text(name)
    seen = []

    def keep(part, url):
        seen.append((part.read_text(), url))
        if part.name == "second":
            raise TflabError("second is wrong.")

    urls = [address + name for name in ("first", "second", "third", "fourth")]
    files.download(urls, tmp_path, 100, keep)
    assert seen == [("second", urls[1]), ("third", urls[2])]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["published"]
    with pytest.raises(TflabError) as error:
        files.download(urls[:2], tmp_path, 100, keep)
    assert str(error.value) == (
        f"{urls[0]} failed: HTTP Error 404: File not found. second is wrong."
    )


def test_a_silent_host_is_given_up_in_time(monkeypatch):
    monkeypatch.setattr(files, "ANSWER_SECONDS", 0.02)
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: time.sleep(2))
    started = time.monotonic()
    with pytest.raises(TflabError, match=r"^http://silent/ did not answer within 0.02 s\.$"):
        files.open_url("http://silent/")
    assert time.monotonic() - started < 1


def test_an_endless_download_is_cut_off(tmp_path, monkeypatch):
    class Endless(contextlib.nullcontext):
        headers = {}  # noqa: RUF012

        def __enter__(self):
            return self

        def read(self, count: int) -> bytes:
            return bytes(count)

    monkeypatch.setattr(files, "open_url", lambda url: Endless())
    files.receive("http://endless/", tmp_path / "part", limit=1000)
    assert (tmp_path / "part").stat().st_size == files.CHUNK_BYTES
