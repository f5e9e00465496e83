"""Each advice of run, followed: what the program then saves is about what was said."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.examples import advice

pytestmark = [pytest.mark.thorough, pytest.mark.tensorflow]
WIDE = 0.4  # of what was said: the least that is saved on a machine that does something else, too


@pytest.fixture
def watch(tmp_path):
    """Run a program under tflab, and return what was seen and the text."""

    def watched(source, *arguments):
        (tmp_path / "program.py").write_text(source)
        kept = tmp_path / f"kept{len(arguments)}.json"
        options = ("--overhead", "30", "--save", str(kept))  # enough traces on a busy machine
        command = [sys.executable, "-m", "tflab.run", *options, "program.py", *arguments]
        environment = {**os.environ, "PYTHONPATH": os.getcwd(), "TF_CPP_MIN_LOG_LEVEL": "2"}
        for _ in range(2):  # again if a signal ended Python, which is not what is tested here
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
            )
            if done.returncode >= 0:
                break
        assert done.returncode == 0, done.stderr
        return json.loads(kept.read_text()), " ".join(done.stderr.split())

    return watched


def line_of(source, text):
    return f"program.py:{1 + source[: source.index(text)].count(chr(10))}"


def largest(seen):
    return max(seen["groups"], key=lambda group: group["total_ns"])


@pytest.mark.parametrize(
    "source, about",
    [
        (advice.FEEDS, "copied because their arrays do not begin at a multiple of 64 bytes"),
        (advice.EMBEDDING, "work on all 60,000 rows of table (program.py:"),
        (advice.SMALL_OPS, "calls of small ops"),
        (advice.MOVED, "that only move or convert data"),
    ],
)
def test_a_finding_says_what_a_run_saves(watch, source, about):
    seen, _ = watch(source)
    (finding,) = [sentence for sentence in seen["findings"] if about in sentence]
    share = float(re.match(r"([\d.]+) %", finding)[1]) / 100
    before = largest(seen)["median_ns"]
    changed, _ = watch(source, "after")
    assert before - largest(changed)["median_ns"] >= WIDE * share * before
    assert not any(about in sentence for sentence in changed["findings"])


def test_a_graph_that_grows_is_told_after_ten_rounds(watch):
    seen, text = watch(advice.GROWING)
    (grown,) = seen["grown_graphs"]
    assert (grown["runs"], grown["rises"]) == (11, 10)
    assert [*grown["made"]] == [line_of(advice.GROWING, "            train = ")]
    assert "Graph 1 grew before 10 of its 11 runs, from" in text
    changed, text = watch(advice.GROWING, "after")
    assert (changed["grown_graphs"], "grew" in text) == ([], False)
    # The runtime prepares each new graph
    first_ns = [sum(group["cold_ns"] for group in each["groups"]) for each in (seen, changed)]
    assert first_ns[0] > 2 * first_ns[1]


def test_kept_results_make_memory_grow(watch):
    seen, text = watch(advice.KEPT)
    grown = seen["grown_memory"]
    assert 20 * 2**20 < grown["last_bytes"] - grown["first_bytes"] < 200 * 2**20
    assert grown["place"] in ("", line_of(advice.KEPT, "session.run(y"))
    assert "Resident memory grew steadily" in text
    changed, text = watch(advice.KEPT, "after")
    assert (changed["grown_memory"], "grew" in text) == (None, False)


def test_a_pipeline_has_its_wait_its_stage_and_its_line(watch):
    """Eight rows of 2 ms for each step; eight at a time, they take a fraction."""
    seen, text = watch(advice.PIPELINE)
    pipeline = seen["input_pipeline"]
    assert pipeline["waited_ns"] / pipeline["runs"] > 8e6
    assert pipeline["stage"] in ("Map", "MapAndBatch", "")
    assert pipeline["line"]["place"] == "program.py:7 in load"
    assert "Input pipeline: the 199 runs of group" in text
    changed, _ = watch(advice.PIPELINE, "after")
    least = changed["input_pipeline"]
    assert least is None or least["waited_ns"] < (1 - WIDE) * pipeline["waited_ns"]


def test_a_program_that_waits_for_its_children_is_told_to_watch_them(watch):
    seen, text = watch(advice.CHILDREN)
    assert seen["for_children"]["place"] == "program.py:2"
    assert "of the time passed in waiting for child processes, most at program.py:2." in text
