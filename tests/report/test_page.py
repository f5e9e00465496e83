"""The page's scripts: their tests without a browser, and what Python and they have to agree on."""

import dataclasses
import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import needs
from tests.examples.layer import STAGES
from tflab.explore import markup
from tflab.follow import node_history
from tflab.report import drawing, html, viewer_data
from tflab.report.contents import DrawnGraph, Question

TESTS = sorted((Path(__file__).parents[1] / "page").glob("*.test.js"))
ENTRIES = (
    html.PAGE / "start.js",
    *(markup.FOLDER / f"{name}.js" for name in ("explore", "tab", "alone")),
)
INTERFACE = re.compile(r"^export interface (\w+)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+)(\??):", re.MULTILINE)


@pytest.fixture(scope="module")
def data():
    histories = node_history.histories(STAGES)
    ns = {"layer/Relu": 1_500.0, "layer/MatMul/ReadVariableOp": 250.0}
    drawn = DrawnGraph("g", drawing.draw(STAGES, histories), histories, ns)
    return viewer_data.graph_data(drawn)


def test_the_scripts_pass_their_own_tests(data, tmp_path):
    node = shutil.which("node")
    if node is None:
        reason = "There is no node here: the JavaScript was not tested."
        needs.missing(reason)
    sent = tmp_path / "data.json"
    sent.write_text(html.as_json(html.readable(data)), encoding="utf-8")
    environment = {**os.environ, "TFLAB_PAGE_DATA": str(sent)}
    command = [node, "--test", *map(str, TESTS)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for number, entry in enumerate(ENTRIES):
        joined = tmp_path / f"{number}.js"  # no two scripts of a page have a name in common
        joined.write_text(html.script(entry), encoding="utf-8")
        ran = subprocess.run([node, "--check", str(joined)], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr


def fields():
    """Name -> (required fields, all fields) of each type of the data."""
    text = html.read("data.d.ts")
    found = {name: FIELD.findall(body) for name, body in INTERFACE.findall(text)}
    return {
        name: ({field for field, may_lack in rows if not may_lack}, {field for field, _ in rows})
        for name, rows in found.items()
    }


def test_the_types_of_the_data_have_the_fields_that_python_sends(data):
    types = fields()
    values = types["Values"][1]
    required, known = types["GraphData"]
    assert set(data) == required == known
    for name, rows in (("Node", "nodes"), ("Box", "boxes")):
        required, known = types[name]
        assert all(required <= set(row) <= known | values for row in data[rows])
    for name, rows in (("State", "states"), ("Stop", "stops")):
        assert {frozenset(row) for row in data[rows]} == {frozenset(types[name][1])}
    ticks = [tick for stop in data["stops"] for tick in stop["ticks"]]
    assert {frozenset(row) for row in ticks} == {frozenset(types["Tick"][1])}


def test_the_type_of_a_question_has_its_fields():
    assert {field.name for field in dataclasses.fields(Question)} == fields()["Question"][0]


def test_each_kind_fate_and_step_of_time_has_a_colour():
    style = html.read("drawing.css")
    names = [*(f"kind-{kind}" for kind in viewer_data.KINDS), "fate-many", "heat-none"]
    names += [f"fate-{fate}" for fate in viewer_data.FATES]
    names += [f"heat-{step}" for step in range(viewer_data.HEATS)]
    assert [name for name in names if not re.search(rf"\.{name}\b[^{{}}]*{{ --fill", style)] == []
    assert f"heat-{viewer_data.HEATS}" not in style


def test_a_page_has_all_that_its_script_imports_and_every_script_is_in_a_page():
    joined = [html.script(entry) for entry in ENTRIES]
    assert not any(re.search(r"^(import|export)\b", script, re.MULTILINE) for script in joined)
    for path in (*html.PAGE.glob("*.js"), *markup.FOLDER.glob("*.js")):
        title = path.read_text(encoding="utf-8").partition("\n")[0]  # `/* Layout: ...`
        assert [script.count(title) for script in joined if title in script] != [], path
        assert max(script.count(title) for script in joined) == 1


# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", IEEE TVCG 15(6), 2009: what is seen without the receptors for green; and Oklab
DEUTERANOPIA = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
CONES = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
OKLAB = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]


def seen(colour, receptors):
    """A colour in Oklab, where distances are as seen."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (0, 2, 4)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return OKLAB @ np.cbrt(np.clip(CONES @ (receptors @ linear), 0, None))


def test_eight_hues_stay_apart_for_everybody_in_light_and_dark():
    hues = re.findall(r"--hue-\d: #(\w{6});", html.read("page.css"))
    assert len(hues) == 16
    for shown in (hues[:8], hues[8:]):
        for receptors in (np.eye(3), DEUTERANOPIA):
            views = [seen(colour, receptors) for colour in shown]
            pairs = itertools.combinations(views, 2)
            assert min(float(np.linalg.norm(a - b)) for a, b in pairs) > 0.05
    grounds = re.findall(r"--paper: #(\w{6});", html.read("page.css"))
    for paper, shown in zip(grounds, (hues[:8], hues[8:]), strict=True):
        views = [seen(colour, np.eye(3)) for colour in (paper, *shown)]
        assert min(float(np.linalg.norm(view - views[0])) for view in views[1:]) > 0.08
    assert re.findall(r"\.line-(\d)", html.read("drawing.css")) == list("01234567")


def test_the_lines_of_a_drawing_in_a_table_keep_their_spaces_and_meet():
    rule = re.search(r"\.drawing td \{(.*)\}", html.read("page.css"))
    assert rule
    assert {"padding-block: 0", "white-space: pre"} <= {*map(str.strip, rule[1].split(";"))}


def test_what_took_longest_is_the_darkest_on_white_and_the_brightest_on_black():
    scales = re.findall(r"\.heat-\d { --fill: #(\w{6}); }", html.read("drawing.css"))
    light = [seen(colour, np.eye(3))[0] for colour in scales]
    assert len(light) == 2 * viewer_data.HEATS
    assert light[:7] == sorted(light[:7], reverse=True)
    assert light[7:] == sorted(light[7:])
