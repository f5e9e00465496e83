"""Google's Model Explorer takes what is written for it: the graph that ran, coloured by time.

Its package is large (0.7 GB) and nothing else needs it, so where it is missing this is skipped:
pip install ai-edge-model-explorer==0.1.34.
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
from tflab.convert import __main__ as convert

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.browser]

GRAPH = "3 placement"
NODE = "conv1/Relu"
JOB = "/job:worker/replica:0/task"
# A step over two tasks, as a RunMetadata in text
TRACE = """
step_stats {
  dev_stats { device: "JOB:0/device:CPU:0" node_stats {
    node_name: "a/x" timeline_label: "a/x = Const()" all_start_micros: 1 all_end_rel_micros: 3 } }
  dev_stats { device: "JOB:1/device:CPU:0" node_stats {
    node_name: "neg" timeline_label: "neg = Neg(x)" all_start_micros: 9 all_end_rel_micros: 1234 } }
}
partition_graphs {
  node { name: "a/x" op: "Const" device: "JOB:0/device:CPU:0" }
  node { name: "a/x_S1" op: "_Send" input: "a/x" device: "JOB:0/device:CPU:0" SENT }
}
partition_graphs {
  node { name: "a/x_S2" op: "_Recv" device: "JOB:1/device:CPU:0" SENT }
  node { name: "neg" op: "Neg" input: "a/x_S2" device: "JOB:1/device:CPU:0" }
}
""".replace(
    "SENT",
    'attr { key: "send_device" value { s: "JOB:0/device:CPU:0" } } '
    'attr { key: "recv_device" value { s: "JOB:1/device:CPU:0" } } '
    'attr { key: "tensor_name" value { s: "edge_1_x" } }',
).replace("JOB", JOB)


@pytest.fixture(scope="module")
def explorer():
    command = shutil.which("model-explorer")
    if command is None:
        pytest.skip("There is no Model Explorer here: pip install ai-edge-model-explorer==0.1.34")
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
    said = opened(page, address, written, [times], "lenet", GRAPH, NODE, ("conv1", "conv2"))
    page.screenshot(path=artefacts / "model_explorer.png")
    time_us = json.loads(times.read_text())[GRAPH]["results"][NODE]["value"]
    for words in (GRAPH, NODE, "_MklNativeFusedConv2D", "CPU:0", "lenet.py:", "executed"):
        assert words in said
    assert f"{time_us:g}"[:4] in said


def test_a_converted_trace_is_drawn_with_the_tasks_and_times_of_its_nodes(
    address, page, artefacts, tmp_path
):
    (tmp_path / "step.pbtxt").write_text(TRACE)
    out = tmp_path / "out"
    line = [str(tmp_path / "step.pbtxt"), "--to", "model-explorer", "--out", str(out)]
    assert convert.main(line) == 0
    data = [out / name for name in ("devices.json", "time.json")]
    said = opened(page, address, out, data, "step", "step", "neg", ("a",))
    page.screenshot(path=artefacts / "model_explorer_of_a_trace.png")
    for words in ("task 1 CPU:0", "1234", "INPUTS (1)", "x_S2"):
        assert words in said
    said = opened(page, address, out, data, "step", "step", "a/x_S2", ("a",))
    assert "x_S1" in said.partition("INPUTS (1)")[2]


def opened(page, address, folder, data, label, graph, node, layers):
    """What the viewer says of a node, with the graphs of a folder and its node data open."""
    shown = {
        "deepestExpandedGroupNodeIds": [f"{layer}___group___" for layer in layers],
        "selectedNodeId": node,
        "selectedGraphId": graph,
        "selectedCollectionLabel": label,
        "widthFraction": 1,
    }
    asked = {
        "models": [{"url": str(folder / "graphs.json"), "adapterId": "builtin_json"}],
        "nodeData": [str(path) for path in data],
        "nodeDataTargets": [""] * len(data),
        "uiState": {"paneStates": [shown]},
    }
    page.goto("about:blank")
    page.goto(f"{address}?data={urllib.parse.quote(json.dumps(asked))}")
    page.get_by_text("NODE DATA PROVIDERS").wait_for(timeout=60_000)
    page.wait_for_timeout(2_000)  # the drawing is a canvas: nothing tells when it is there
    return page.inner_text("body")
