"""Graphs at random, watched from outside: what the gate lets through touches nothing."""

import shutil
import subprocess

import pytest

from tests.fuzz import gate

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

GRAPHS = 60


def strace_works():
    watch = ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=%file", "true"]
    return shutil.which("strace") and not subprocess.run(watch, capture_output=True).returncode


@pytest.fixture(autouse=True)
def strace():
    if not strace_works():
        pytest.skip("strace is missing, or may not watch here; get it with: apt install strace")


def test_what_the_gate_lets_through_touches_nothing():
    tried = list(gate.tried(seed=1, graphs=GRAPHS, seconds=0))
    assert [graph.number for graph in tried] == list(range(GRAPHS))
    assert {"ran", "gated"} <= {graph.outcome for graph in tried}
    assert [graph for graph in tried if graph.touched or graph.failed] == []


def test_what_an_open_gate_lets_through_is_seen():
    """Among all types, sorted by their names, these are the readers of data sets of lines."""
    (graph,) = [g for n in [gate.number_of("WriteFile")] for g in gate.process(3, n, n + 1, True)]
    assert graph.op == "WriteFile"
    assert any("bait" in what or "openat" in what for what in graph.touched)
