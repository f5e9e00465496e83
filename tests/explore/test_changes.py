"""Changes since the last edit, worked out by hand."""

from tests.examples.printed import approve_view
from tflab.explore import markup

BEFORE = {
    "x": ["forward", "Placeholder() -> float32 [None]"],
    "mul": ["forward", "Mul(x, y) -> float32 [None]"],
    "mul_grad": ["gradient", "Mul(x, ones) -> float32 []"],
    "old": ["forward", "Neg(x) -> float32 [None]"],
}
NOW = {
    "grad": ["gradient", "Fill() -> float32 []"],
    "x": ["forward", "Placeholder() -> float32 [None]"],
    "mul": ["forward", "Mul(x, x) -> float32 [None]"],
    "mul_grad": ["gradient", "Mul(x, ones) -> float32 []"],
    "square": ["forward", "Square(x) -> float32 [None]"],
}
NAMES = [f"n{number}" for number in range(10)]
MANY = {name: ["forward", "NoOp()"] for name in NAMES}


def test_changes_are_told_apart_forward_nodes_first_and_long_lists_are_cut():
    assert markup.marks(BEFORE, NOW) == {"grad": "new", "square": "new", "mul": "changed"}
    variants = {
        "many new nodes": markup.differences({}, MANY),
        "eight new nodes": markup.differences({}, dict(list(MANY.items())[:8])),
        "nothing changed": markup.differences(NOW, NOW),
    }
    approve_view("life-changes.txt", markup.differences(BEFORE, NOW), variants)
