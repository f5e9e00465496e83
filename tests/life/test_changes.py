"""Changes since the last edit, worked out by hand."""

import pytest

from tests.shown import grid, layout
from tflab.life import changes, storage
from tflab.records.placed import Fate

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


def test_the_view_lists_forward_nodes_first():
    nodes, fates, numbers = changes.blocks(found(), NOW, BEFORE)
    assert grid(nodes) == [
        "Nodes",
        ("", "nodes", "which"),
        ("new", "2", "square, grad"),
        ("gone", "1", "old"),
        ("changed", "1", "mul"),
        0,
    ]
    assert grid(fates) == [
        "Other fates",
        ("node", "before", "now"),
        ("mul", "executed", "fused into square"),
        0,
    ]
    assert grid(numbers) == [
        "Totals",
        ("", "before", "now"),
        ("nodes", "4", "5"),
        ("FLOPs", "32", "not known"),
        ("a step, median", "9.00 us", "12.0 us"),
        0,
    ]
    assert layout(numbers) == ["", "before right", "now right"]
    assert layout(nodes) == ["", "nodes", "which"]


def test_long_lists_are_cut_and_say_so():
    now = {f"n{number}": ["forward", "NoOp()", None] for number in range(10)}
    (nodes,) = changes.blocks(changes.compare({}, now, {}, {}), now, {})
    assert list(nodes.cells()) == [("new", "10", "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more")]
    names = [f"n{number}" for number in range(8)]
    assert changes.listed(names, now) == ", ".join(names)
    earlier = {name: ["forward", "NoOp()", "executed"] for name in now}
    later = {name: ["forward", "NoOp()", "folded"] for name in now}
    _, fates = changes.blocks(changes.compare(earlier, later, {}, {}), later, earlier)
    assert (len(fates.rows), fates.more) == (8, 2)


def test_an_edit_that_changes_nothing_says_so():
    same = changes.compare(NOW, NOW, LATER, LATER)
    assert list(changes.blocks(same, NOW, NOW)) == ["No node is new, gone or changed."]
    assert list(changes.blocks(same, NOW, NOW, ("a", "b"))) == ["Both have the same nodes."]


def test_two_runs_are_called_by_their_names():
    nodes, fates, whole = changes.blocks(found(), NOW, BEFORE, ("toy", "lenet"))
    assert [row[0] for row in nodes.rows] == ["only lenet", "only toy", "differ"]
    heads = [[column.header for column in table.columns] for table in (fates, whole)]
    assert heads == [["node", "toy", "lenet"], ["", "toy", "lenet"]]


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
