"""What a browser test needs: a written report, a logdir that TensorBoard serves, a Chromium."""

import gzip
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests import needs
from tests.commands import run_here
from tests.examples.layer import EVIL
from tflab.analysis import critical_path
from tflab.exporters.plots import style
from tflab.follow import measurement, node_history
from tflab.records.blocks import Column, Fact, Table
from tflab.records.options import Options
from tflab.report import contents, drawing, html, storage
from tflab.report.contents import Chapter, DrawnGraph, Question, Report

ROOT = Path(__file__).parents[2]
# An empty page has no storage
FORGET = "() => { try { localStorage.clear(); sessionStorage.clear() } catch {} }"
START_SECONDS = 240  # TensorFlow's import, beside much other work
STOP_SECONDS = 10
# All of the drawing, with the whole legend beside it.
WINDOW = {"width": 1500, "height": 1100}
PHONE = 400  # pixels across
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
    """A logdir with LeNet's graph and its traced steps, beside that of a short training of it."""
    from tflab.lifecycle import __main__ as lifecycle
    from tflab.train import __main__ as train

    folder = tmp_path_factory.mktemp("runs") / "lenet"
    training = ("--epochs", "2", "--batch-size", str(BATCH_SIZE))
    for main, name, options in ((lifecycle.main, "lenet", ()), (train.main, "training", training)):
        logs = ("--logdir", str(folder.parent / name))
        done = run_here(main, "--model", "lenet", *options, *logs)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def damaged_run(logdir):
    """A damaged life beside the run of LeNet: its nodes have no fields."""
    life = storage.read(storage.runs(logdir)["."])
    content = {"kind": storage.KIND, "format": storage.FORMAT, **life}
    content["graph"] = {**life["graph"], "nodes": [{}] * len(life["graph"]["nodes"])}
    folder = logdir.parent.joinpath("damaged", *storage.PLACE)
    folder.mkdir(parents=True)
    (folder / storage.NAME).write_bytes(gzip.compress(json.dumps(content).encode()))


# A timeline of 1 ms: a long op, and on another device one of which only a zoom shows the name
SLICES = {
    "wall": 1_000_000,
    "lanes": ["CPU:0", "CPU:1"],
    "slices": [
        (0, 0, 600_000, "layer/first", "layer/first (MatMul)", True),
        (1, 600_000, 20_000, "layer/second", "layer/second (Relu): 20.0 us, from 600 us on", False),
    ],
}
BATCH_SIZE = 150  # of a training: ten steps an epoch even with what stands in for MNIST


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium. Without one the test is skipped, but in CI that is a failure."""
    path = shutil.which("chromium")
    if path is None:
        needs.missing("There is no Chromium here; get it with: apt-get install chromium")
    try:
        from playwright import sync_api
    except ImportError:
        needs.missing("There is no playwright here; get it with: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def one_page(chromium):
    """The page of most tests: opening another one takes longer than reading a file into it."""
    return chromium.new_page(viewport=WINDOW)


@pytest.fixture
def page(one_page, monkeypatch):
    """An empty page, in which nothing is left of the test before."""
    one_page.set_viewport_size(WINDOW)
    one_page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    listeners = []
    listen = one_page.on

    def on(event, listener):
        listeners.append((event, listener))
        listen(event, listener)

    monkeypatch.setattr(one_page, "on", on)
    yield one_page
    for event, listener in listeners:
        one_page.remove_listener(event, listener)
    one_page.evaluate(FORGET)
    one_page.context.clear_cookies()
    one_page.goto("about:blank")  # the page of a test would go on drawing and asking


@pytest.fixture
def heard(page):
    """What the page says to the console, and what it asks for."""
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url))
    return heard


@pytest.fixture
def artefacts(tmp_path):
    """The folder for screenshots: TFLAB_ARTEFACTS, or one that pytest throws away."""
    folder = Path(os.environ.get("TFLAB_ARTEFACTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def installed(folder):
    """Let Python find the entry points of tflab below a folder, whether it is installed or not, and
    no Keras: TensorBoard imports it with TensorFlow, which takes twice as long, and needs none."""
    (folder / "keras.py").write_text("raise ImportError")
    section = "[project.entry-points.tensorboard_plugins]"
    points = (ROOT / "pyproject.toml").read_text().partition(section)[2].partition("\n\n")[0]
    place = folder / "tflab-0.1.0.dist-info"
    place.mkdir(exist_ok=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: tflab\nVersion: 0.1.0\n")
    (place / "entry_points.txt").write_text(f"[tensorboard_plugins]{points.replace(chr(34), '')}\n")
    return os.pathsep.join((str(folder), str(ROOT)))


@pytest.fixture(scope="session")
def tensorboard(logdir, damaged_run, tmp_path_factory):
    """The address of a TensorBoard that serves the folder in which the logdir is."""
    log, port = tmp_path_factory.mktemp("tensorboard") / "log.txt", free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir.parent)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--reload_interval", "0"]
    found = {**os.environ, "PYTHONPATH": installed(log.parent)}
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=found)
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


# The report

SENTENCE = "a sentence that is far too long to stand in one line of a phone beside its numbers"
LOW = Table("Low", (Column("step", str), Column("found", lambda _: SENTENCE)), (1, 2))
ASKED = (
    Question("How many nodes will run?", "80", "The passes took the others.", unit="nodes"),
    Question(f"Which goes, {EVIL}?", EVIL, "It was fused.", ("a/b", EVIL)),
    Question("How many times as long?", "2.5", "A reason.", unit="x"),
)


def drawn_graph(name, stages, histories=None, ns=None):
    histories = histories or node_history.histories(stages)
    return DrawnGraph(name, drawing.draw(stages, histories), histories, ns or {})


RESULTS = (
    Fact("nodes", "109 / 197 / 83", "as written / with gradients / that runs"),
    Fact("median step", "13.3 ms / 38.0 ms / 27.8 ms", "inference, batch 1 / 16 / 64"),
    Fact("most expensive op", "_MklNativeFusedConv2D", "75.3 % of op time at batch 64"),
    Fact("test accuracy", "86.20 %", "after epoch 2, digits, not MNIST"),
)


def save(path, *chapters, asked=()):
    whole = Report("A report", "About it.", "python -m tflab.report", chapters, asked, RESULTS)
    path.write_text(html.page(whole), encoding="utf-8")
    return path


def save_graph(path, name, stages):
    return save(path, Chapter(name, (drawn_graph(name, stages),)))


@pytest.fixture(scope="session")
def lenet(walked):
    return tuple(walked("lenet").values())


@pytest.fixture(scope="session")
def toy(walked):
    return tuple(walked("toy").values())


@pytest.fixture(scope="session")
def on_two(walked):
    """The toy's stages up to its placement on two devices."""
    return tuple(walked("toy", 2).values())[:3]


@pytest.fixture(scope="session")
def written(lenet, toy, on_two, tmp_path_factory):
    """A report on LeNet, whose times were measured at two batch sizes, and on the toy, with graphs
    to compare, a plot, tables and questions."""
    times, _ = measurement.follow(lenet, (1, 16), Options(steps=5))
    large = drawn_graph("lenet", lenet, times, critical_path.median_per_step(lenet[3].runs))
    small = drawn_graph("toy", toy, ns={node.name: 900.0 for node in toy[3].nodes[:4]})
    two = drawn_graph("two devices", on_two)
    two = replace(two, start=len(two.drawing.states) - 1)
    picture = contents.picture("p", lambda: style.canvas("A title", "A sentence.", 1.0)[0])
    return save(
        tmp_path_factory.mktemp("report") / "report.html",
        Chapter("LeNet", (large, picture, LOW)),
        Chapter("Toy", (small,)),
        Chapter("Two devices", (two,)),
        Chapter("Results", ("The results of a run.", replace(picture, slices=SLICES))),
        Chapter("Folded", ("A folded sentence.",), folded=True),
        asked=ASKED,
    )


@pytest.fixture
def at(page, written):
    """Open the report in a window of some size, and give the viewer of a model in it."""

    def opened(model, width=WINDOW["width"], height=WINDOW["height"], scheme="light"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(written.as_uri())
        return page.locator(f"#{model} .viewer")

    return opened


def press(viewer, name):
    viewer.get_by_role("button", name=name, exact=True).click()


def node(viewer, name):
    return viewer.get_by_role("button", name=f"{name}, ", exact=False).first


def title(viewer):
    return viewer.locator("[data-part=title]").inner_text()


def drawn(viewer):
    """How many nodes are drawn, in boxes of their own or counted in closed scopes."""
    return viewer.locator("svg [data-count]").evaluate_all(
        "boxes => boxes.reduce((sum, box) => sum + Number(box.dataset.count), 0)"
    )


def places(viewer):
    """Where the box of each drawn node stands on the screen."""
    return dict(
        viewer.locator("svg [data-box]").evaluate_all(
            """boxes => boxes.map(box => {
                const rect = box.querySelector('rect:last-of-type').getBoundingClientRect();
                return [box.dataset.box, [rect.x + scrollX, rect.y + scrollY].map(Math.round)];
            })"""
        )
    )
