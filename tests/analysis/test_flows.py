"""Flows: which run had its data from which."""

import numpy as np
import pytest

from tests.examples.runs import run, runs
from tests.graph_notation import graph
from tflab.analysis import critical_path
from tflab.records.placed import Transfer

SENT = Transfer("a", "a/_1", "a/_2", "/device:CPU:0", "/device:CPU:1", "float32", (4,), 16)
SENDS = "a; a/_1=_Send(a); a/_2=_Recv"


@pytest.mark.parametrize(
    ("nodes", "ran", "producers"),
    [
        ("a; b; c(a,b:1,a:1,^d); d", "a b c d", {"c": ("a", "b")}),
        # Data come through nodes that did not run, and from the other side of a transfer
        ("a; bias(a,conv); conv(a); relu(bias)", "a relu", {"relu": ("a",)}),
        (f"{SENDS}; b(a/_2)", "a b", {"b": ("a",)}),
        (f"{SENDS}; b(a/_2)", "a b a/_2", {"a/_2": ("a",), "b": ("a/_2",)}),
    ],
)
def test_producers(nodes, ran, producers):
    assert critical_path.producers(graph(nodes), [SENT], ran.split()) == producers


@pytest.mark.parametrize(
    ("recorded", "before", "arrows"),
    [
        ("b 10; a 0; b 110 #1; a 100 #1", {"b": ["a"]}, "a 0 b 10, a 100 b 110"),  # of its step
        # In a loop, from the run that ended last
        ("a 20; a 0; a 10; b 5; b 18; b 25", {"b": ["a"]}, "a 0 b 5, a 10 b 18, a 20 b 25"),
        # Nothing comes from what has not ended or did not run
        ("a 0 20; b 10", {"b": ["a", "c"]}, ""),
        ("a 30; b 10 50", {"a": ["b"]}, ""),
        ("a 0; b 1; c 9", {"c": ["a", "b"]}, "a 0 c 9, b 1 c 9"),
    ],
)
def test_arrows_from_run_to_run(recorded, before, arrows):
    table = runs(recorded)
    pairs = zip(*critical_path.flows(table, before), strict=True)
    ends = [[f"{table[at].name} {table[at].start_ns}" for at in pair] for pair in pairs]
    assert sorted(map(" ".join, ends)) == sorted(filter(None, arrows.split(", ")))


def end_ns(run):
    return run.start_ns + run.duration_ns


def test_every_arrow_is_that_of_a_search_through_all_runs():
    numbers = np.random.default_rng(0)
    columns = [numbers.integers(0, most, 120).tolist() for most in (3, 40, 8, 3)]
    table = [
        run(f"{'abc'[node]} {start} {took} #{step}")
        for node, start, took, step in zip(*columns, strict=True)
    ]
    before = {"b": ["a"], "c": ["a", "b"], "a": ["c"]}
    expected = set()
    for place, taker in enumerate(table):
        for name in before[taker.name]:
            ended = [
                (end_ns(other), at)
                for at, other in enumerate(table)
                if (other.name, other.step) == (name, taker.step)
                and end_ns(other) <= taker.start_ns
            ]
            if ended:
                expected.add((max(ended)[1], place))
    assert (
        set(zip(*map(np.ndarray.tolist, critical_path.flows(table, before)), strict=True))
        == expected
    )
