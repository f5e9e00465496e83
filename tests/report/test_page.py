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
from tflab.follow import node_history
from tflab.report import drawing, html, viewer_data
from tflab.report.contents import DrawnGraph, Question

TESTS = sorted((Path(__file__).parents[1] / "page").glob("*.test.js"))
INTERFACE = re.compile(r"^export interface (\w+)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+)(\??):", re.MULTILINE)
IMPORTED = re.compile(r'^import .* from "\./([\w.]+)";$', re.MULTILINE)


@pytest.fixture(scope="module")
def data():
    histories = node_history.histories(STAGES)
    ns = {"layer/Relu": 1_500.0, "layer/MatMul/ReadVariableOp": 250.0}
    drawn = DrawnGraph("g", drawing.draw(STAGES, histories), histories, ns, 16)
    return viewer_data.graph_data(drawn)


def test_the_scripts_pass_their_own_tests(data, tmp_path):
    node = shutil.which("node")
    if node is None:
        reason = "There is no node here: the JavaScript was not tested."
        needs.missing(reason)
    sent = tmp_path / "data.json"
    sent.write_text(html.embedded(data), encoding="utf-8")
    environment = {**os.environ, "TFLAB_PAGE_DATA": str(sent)}
    command = [node, "--test", *map(str, TESTS)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    joined = tmp_path / "page.js"  # no two scripts have a name in common
    joined.write_text(html.program(), encoding="utf-8")
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
    assert set(data) == required == known - {"fusions"}  # these are the live page's
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


def test_each_script_imports_only_from_those_before_it():
    for number, name in enumerate(html.SCRIPTS):
        assert set(IMPORTED.findall(html.read(name))) <= set(html.SCRIPTS[:number])


def test_the_page_has_every_script_and_none_of_their_imports():
    files = {path.name for path in html.FOLDER.iterdir() if path.name.endswith(".js")}
    assert files == set(html.SCRIPTS)
    assert not re.search(r"^(import|export)\b", html.program(), re.MULTILINE)


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
    assert re.findall(r"\.line-(\d)", html.read("drawing.css")) == list("01234567")
