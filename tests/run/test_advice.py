"""Each advice of run, followed: what the program then saves is about what was said."""

import json
import re

import pytest

from tests.commands import run_python
from tests.examples import advice
from tflab.cli import environment

pytestmark = [pytest.mark.thorough, pytest.mark.tensorflow]
WIDE = 0.4  # of what was said: the least that is saved on a machine that does something else, too


@pytest.fixture
def watch(tmp_path):
    """Run a program under tflab, and return what was seen and the text."""

    def watched(source):
        (tmp_path / "program.py").write_text(source)
        options = ("--overhead", "30", "--save", "kept.json")  # enough traces on a busy machine
        for _ in range(2):  # again if a signal ended Python, which is not what is tested here
            (tmp_path / "kept.json").unlink(missing_ok=True)
            done = run_python(tmp_path, "-m", "tflab.run", *options, "program.py")
            if done.returncode >= 0:
                break
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "kept.json").read_text()), " ".join(done.stderr.split())

    return watched


def line_of(source, text):
    return f"program.py:{1 + source[: source.index(text)].count(chr(10))}"


def saves_what_is_said(seen, about, before, after):
    """Whether the runs of one group are shorter than those of another by what a finding says."""
    for finding in seen["findings"]:
        if about in finding:
            break
    else:
        return False
    share = float(re.search(r"([\d.]+) %", finding)[1]) / 100
    return before["median_ns"] - after["median_ns"] >= WIDE * share * before["median_ns"]


@pytest.mark.parametrize(
    "source, about",
    [
        (advice.FEEDS, "copied because their arrays do not begin at a multiple of 64 bytes"),
        (advice.EMBEDDING, "work on all 60,000 rows of table (program.py:"),
        (advice.MOVED, "moving or converting data"),
    ],
)
def test_a_finding_says_what_a_run_saves(watch, source, about):
    for _ in range(3):  # a busy machine may hide it
        seen, _ = watch(source)
        before, after = (group for group in seen["groups"] if group["calls"] > 1)
        if saves_what_is_said(seen, about, before, after):
            return
    raise AssertionError(seen["findings"])


def test_small_ops_cost_what_is_said_and_a_graph_that_grows_is_told_after_ten_rounds(watch):
    for _ in range(3):  # what else runs may take longer than the small ops
        seen, text = watch(advice.SMALL_OPS)
        if any("calls of small ops" in sentence for sentence in seen["findings"]):
            break
    small, large, *others = seen["groups"]
    assert saves_what_is_said(seen, "calls of small ops", small, large)
    (grown,) = seen["grown_graphs"]
    assert (grown["graph"], grown["runs"], grown["rises"]) == (2, 11, 10)
    made = line_of(advice.SMALL_OPS, "                train = ")
    assert [*grown["made"]] == [made]
    assert "Graph 2 grew before 10 of its 11 runs, from" in text
    # The runtime prepares each new graph
    growing, constant = (
        sum(group["cold_ns"] for group in others if group["graph"] == f"graph {number}")
        for number in (2, 3)
    )
    assert growing > 2 * constant


def test_kept_results_make_memory_grow(watch):
    for _ in range(3):  # what else runs may take most of the time, and no rise is seen
        seen, text = watch(advice.KEPT)
        if grown := seen["grown_memory"]:
            break
    assert 20 * 2**20 < grown["last_bytes"] - grown["first_bytes"] < 200 * 2**20
    assert grown["place"] in ("", line_of(advice.KEPT, "results.append"))
    assert "Resident memory grew steadily" in text


@pytest.mark.skipif(environment.describe()["cpus"] == 1, reason="There is one processor.")
def test_a_pipeline_has_its_wait_its_stage_and_its_line(watch):
    """Eight rows of 2 ms for each step; eight at a time, they take a fraction."""
    seen, text = watch(advice.PIPELINE)
    pipeline = seen["input_pipeline"]
    waits = [
        group["waited_ns"][0] / (group["calls"] - 1)
        for group in seen["groups"]
        if group["graph"] == "function step"
    ]
    assert waits[0] > 8e6
    assert waits[1] < (1 - WIDE) * waits[0]
    assert pipeline["runs"] == 119 + 59  # of both
    assert pipeline["stage"] in ("Map", "MapAndBatch", "")  # which tf.data may make of it
    assert pipeline["line"]["place"] == "program.py:7 in load"
    assert re.search(r"Input pipeline: \S+ waited", text)


def test_a_program_that_waits_for_its_children_is_told_to_watch_them(watch):
    seen, text = watch(advice.CHILDREN)
    assert seen["for_children"]["place"] == "program.py:2"
    assert "of the time passed in waiting for child processes, most at program.py:2." in text
