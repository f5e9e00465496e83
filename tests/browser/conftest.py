"""What a browser test needs: a logdir, a TensorBoard that serves it, a Chromium that opens it."""

import contextlib
import http.client
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

WRITE_SECONDS = 120  # TensorFlow's import and some sixty steps, on a slow machine
START_SECONDS = 60
STOP_SECONDS = 10
# All of the drawing, with the whole legend beside it.
WINDOW = {"width": 1500, "height": 1100}
# No sandbox, because containers run as root. The rest keeps Chromium off a network it may not have.
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def logdir(tmp_path_factory):
    """A logdir with LeNet's graph and its traced steps, alone in its folder."""
    folder = tmp_path_factory.mktemp("runs") / "lenet"
    command = [sys.executable, "-m", "tflab.lifecycle", "--model", "lenet", "--logdir", str(folder)]
    subprocess.run(command, check=True, timeout=WRITE_SECONDS, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="session")
def tensorboard(logdir, tmp_path_factory):
    """The address of a TensorBoard that serves the logdir."""
    log = tmp_path_factory.mktemp("tensorboard") / "log.txt"
    with serving(logdir, log) as address:
        yield address


@pytest.fixture(scope="session")
def tensorboard_of_all(logdir, tmp_path_factory):
    """The address of a TensorBoard that serves the folder in which the logdir is."""
    log = tmp_path_factory.mktemp("tensorboard") / "log.txt"
    with serving(logdir.parent, log) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium. Without one the test is skipped, but in CI that is a failure."""
    path = shutil.which("chromium")
    if path is None:
        refuse("There is no Chromium here; get it with: apt-get install chromium")
    try:
        from playwright import sync_api
    except ImportError:
        refuse("There is no playwright here; get it with: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    page = chromium.new_page(viewport=WINDOW)
    yield page
    page.close()


@pytest.fixture
def artefacts(tmp_path):
    """The folder for screenshots: TFLAB_ARTEFACTS, or one that pytest throws away."""
    folder = Path(os.environ.get("TFLAB_ARTEFACTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def refuse(reason):
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def serving(logdir, log):
    port = free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_until_loaded(server, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_until_loaded(server, port, log):
    """Until TensorBoard knows a graph: it answers a second before it has read the logdir."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"TensorBoard stopped with status {server.returncode}: {log.read_text()}")
        if answer(port, "/data/plugin/graphs/info") not in (b"", b"{}"):
            return
        time.sleep(0.2)
    pytest.fail(f"TensorBoard served no graph within {START_SECONDS} s: {log.read_text()}")


def answer(port, path):
    """The body behind a path; empty while nobody answers."""
    # http.client, because urllib would ask a proxy.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.read() if response.status == 200 else b""
    except OSError:
        return b""
    finally:
        connection.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
