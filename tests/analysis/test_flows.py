"""Flows: which run had its data from which."""

import pytest

from tests.examples.runs import runs
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
