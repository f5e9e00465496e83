"""Google's Model Explorer takes what is written for it: the graph that ran, coloured by time.

Its package is large (0.7 GB) and nothing else needs it, so where it is missing this is skipped:
pip install ai-edge-model-explorer.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from tests.browser import conftest as servers

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.browser]

GRAPH = "3 placement"
NODE = "conv1/Relu"


@pytest.fixture(scope="module")
def explorer():
    command = shutil.which("model-explorer")
    if command is None:
        pytest.skip("There is no Model Explorer here: pip install ai-edge-model-explorer")
    return command


@pytest.fixture(scope="module")
def written(explorer, tmp_path_factory):
    logdir = tmp_path_factory.mktemp("explored") / "lenet"
    command = [sys.executable, "-m", "tflab.lifecycle", "--model", "lenet", "--no-values"]
    command += ["--to", "model-explorer", "--logdir", str(logdir)]
    subprocess.run(command, check=True, timeout=servers.WRITE_SECONDS, stdout=subprocess.DEVNULL)
    return logdir / "model-explorer"


@pytest.fixture(scope="module")
def address(explorer, written, tmp_path_factory):
    home, port = tmp_path_factory.mktemp("home"), servers.free_port()
    command = [explorer, "--no_open_in_browser", "--skip_health_check", "--port", str(port)]
    surroundings = {**os.environ, "HOME": str(home), "PYTHONPATH": ""}
    server = subprocess.Popen(
        command, env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://localhost:{port}/"
    try:
        deadline = time.monotonic() + servers.START_SECONDS
        while time.monotonic() < deadline and server.poll() is None:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(address, timeout=5).close()
                break
            time.sleep(0.2)
        yield address
    finally:
        server.kill()
        server.wait()


def test_the_graph_that_ran_is_drawn_with_lines_fates_and_times(address, written, page, artefacts):
    times = written / "time-batch-64.json"
    shown = {
        "deepestExpandedGroupNodeIds": [f"{layer}___group___" for layer in ("conv1", "conv2")],
        "selectedNodeId": NODE,
        "selectedGraphId": GRAPH,
        "selectedCollectionLabel": "lenet",
        "widthFraction": 1,
    }
    asked = {
        "models": [{"url": str(written / "graphs.json"), "adapterId": "builtin_json"}],
        "nodeData": [str(times)],
        "nodeDataTargets": [""],
        "uiState": {"paneStates": [shown]},
    }
    page.goto(f"{address}?data={urllib.parse.quote(json.dumps(asked))}")
    page.get_by_text("NODE DATA PROVIDERS").wait_for(timeout=60_000)
    page.wait_for_timeout(2_000)  # the drawing is a canvas: nothing tells when it is there
    page.screenshot(path=artefacts / "model_explorer.png")
    said = page.inner_text("body")
    time_us = json.loads(times.read_text())[GRAPH]["results"][NODE]["value"]
    for words in (GRAPH, NODE, "_MklNativeFusedConv2D", "CPU:0", "lenet.py:", "executed"):
        assert words in said
    assert f"{time_us:g}"[:4] in said
