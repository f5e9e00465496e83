"""Changes since the last edit, worked out by hand."""

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
NAMES = [f"n{number}" for number in range(10)]
MANY = {name: ["forward", "NoOp()", "executed"] for name in NAMES}
FOLDED = {name: ["forward", "NoOp()", "folded"] for name in NAMES}


def test_nodes_and_fates_are_told_apart_forward_nodes_first_and_long_lists_are_cut():
    assert markup.marks(BEFORE, NOW) == {"grad": "new", "square": "new", "mul": "changed"}
    variants = {
        "many new nodes": markup.differences({}, MANY),
        "eight new nodes": markup.differences({}, dict(list(MANY.items())[:8])),
        "many other fates": markup.differences(MANY, FOLDED),
        "nothing changed": markup.differences(NOW, NOW),
    }
    approve_view("life-changes.txt", markup.differences(BEFORE, NOW), variants)


def test_a_fate_names_the_node_that_took_over():
    known = fates("a executed, a folded a, a folded b, a merged b, a removed b")
    words = ["executed", "folded", "folded into b", "merged with b", "removed for b"]
    assert [*map(storage.with_heir, known)] == words
