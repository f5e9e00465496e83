"""Changes since the last edit, worked out by hand."""

import pytest

from tests.examples.printed import approve_view
from tests.graph_notation import fates
from tflab.explore import markup
from tflab.report import storage

BEFORE = {
    "x": ["forward", "Placeholder() -> float32 [None]", None],
    "mul": ["forward", "Mul(x, y) -> float32 [None]", "executed"],
    "mul_grad": ["gradient", "Mul(x, ones) -> float32 []", "removed"],
    "old": ["forward", "Neg(x) -> float32 [None]", None],
}
NOW = {
    "grad": ["gradient", "Fill() -> float32 []", "executed"],
    "x": ["forward", "Placeholder() -> float32 [None]", "executed"],
    "mul": ["forward", "Mul(x, x) -> float32 [None]", "fused into square"],
    "mul_grad": ["gradient", "Mul(x, ones) -> float32 []", "removed"],
    "square": ["forward", "Square(x) -> float32 [None]", "executed"],
}
EARLIER = {"nodes": 4, "FLOPs": 32, "bytes": 2048, "ns": 9e3, "low_ns": 8e3, "high_ns": 10e3}
LATER = {"nodes": 5, "FLOPs": None, "bytes": 2048, "ns": 12e3, "low_ns": 11e3, "high_ns": 15e3}
NAMES = [f"n{number}" for number in range(10)]
MANY = {name: ["forward", "NoOp()", "executed"] for name in NAMES}
FOLDED = {name: ["forward", "NoOp()", "folded"] for name in NAMES}


def test_nodes_fates_and_totals_are_told_apart_forward_nodes_first_and_long_lists_are_cut():
    assert markup.marks(BEFORE, NOW) == {"grad": "new", "square": "new", "mul": "changed"}
    variants = {
        "many new nodes": markup.differences({}, MANY, {}, {}),
        "eight new nodes": markup.differences({}, dict(list(MANY.items())[:8]), {}, {}),
        "many other fates": markup.differences(MANY, FOLDED, {}, {}),
        "nothing changed": markup.differences(NOW, NOW, LATER, LATER),
    }
    approve_view("life-changes.txt", markup.differences(BEFORE, NOW, EARLIER, LATER), variants)


@pytest.mark.parametrize(
    ("later", "differs"),
    [
        ({}, True),
        ({"low_ns": 9.5e3}, False),
        ({"ns": 4e3, "low_ns": 3e3, "high_ns": 7.9e3}, True),
        ({"low_ns": 10e3}, False),
        ({"low_ns": 7e3, "high_ns": 8e3}, False),
    ],
)
def test_a_time_differs_only_where_steps_before_and_now_are_apart(later, differs):
    assert markup.differ("ns", EARLIER, {**LATER, **later}) == differs


def test_a_fate_names_the_node_that_took_over():
    known = fates("a executed, a folded a, a folded b, a merged b, a removed b")
    words = ["executed", "folded", "folded into b", "merged with b", "removed for b"]
    assert [*map(storage.with_heir, known)] == words
