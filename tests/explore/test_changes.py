"""Changes since the last edit, worked out by hand."""

import pytest

from tests.examples.printed import approve_view
from tflab.explore import changes
from tflab.records.placed import Fate
from tflab.report import storage

BEFORE = {
    "x": ["forward", "Placeholder() -> float32 [None]", "executed"],
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


def found(later=LATER):
    return changes.compare(BEFORE, NOW, EARLIER, later)


def test_nodes_are_new_gone_or_changed_and_fates_are_told_apart():
    assert found() == changes.Changes(
        new=("grad", "square"),
        gone=("old",),
        changed=("mul",),
        fates=(("mul", "executed", "fused into square"),),
        numbers=(("nodes", 4, 5), ("FLOPs", 32, None), ("ns", 9e3, 12e3)),
    )


def test_a_time_is_compared_only_where_steps_before_and_now_are_apart():
    overlapping = LATER | {"low_ns": 9.5e3}
    assert [row[0] for row in found(overlapping).numbers] == ["nodes", "FLOPs"]
    faster = LATER | {"ns": 4e3, "low_ns": 3e3, "high_ns": 7.9e3}
    assert found(faster).numbers[-1] == ("ns", 9e3, 4e3)
    touching = LATER | {"low_ns": 10e3}, LATER | {"low_ns": 7e3, "high_ns": 8e3}
    assert [found(later).numbers[-1][0] for later in touching] == ["FLOPs", "FLOPs"]
    busy = {"nodes": 5, "FLOPs": 32, "bytes": 2048}  # no time is told on a busy machine
    assert found(busy).numbers == (("nodes", 4, 5),)


NAMES = [f"n{number}" for number in range(10)]
MANY = {name: ["forward", "NoOp()", "executed"] for name in NAMES}
FOLDED = {name: ["forward", "NoOp()", "folded"] for name in NAMES}
SAME = changes.compare(NOW, NOW, LATER, LATER)


def test_the_view_lists_forward_nodes_first_and_cuts_long_lists():
    variants = {
        "many new nodes": changes.blocks(changes.compare({}, MANY, {}, {}), MANY, {}),
        "eight new nodes": changes.blocks(
            changes.compare({}, dict(list(MANY.items())[:8]), {}, {}), MANY, {}
        ),
        "many other fates": changes.blocks(changes.compare(MANY, FOLDED, {}, {}), FOLDED, MANY),
        "two runs with names": changes.blocks(found(), NOW, BEFORE, ("toy", "lenet")),
        "nothing changed": changes.blocks(SAME, NOW, NOW),
        "two runs that are the same": changes.blocks(SAME, NOW, NOW, ("a", "b")),
    }
    approve_view("life-changes.txt", changes.blocks(found(), NOW, BEFORE), variants)


@pytest.mark.parametrize(
    ("fate", "into", "words"),
    [
        ("executed", None, "executed"),
        ("folded", "a", "folded"),
        ("folded", "b", "folded into b"),
        ("merged", "b", "merged with b"),
        ("removed", "b", "removed for b"),
    ],
)
def test_a_fate_names_the_node_that_took_over(fate, into, words):
    assert storage.with_heir(Fate("a", fate, None, into)) == words
