"""Toggles: what changed without a pass."""

from tflab.analysis import passes
from tflab.records.graph import Node
from tflab.records.placed import Fate, FateChange, Toggle
from tflab.records.stages import Placement


def placement(*fates: Fate, nodes: int = 0) -> Placement:
    return Placement(None, tuple(Node(f"n{i}", "Op") for i in range(nodes)), ledger=fates)


EXECUTED = Fate("mul", "executed", None, "mul")
FOLDED = Fate("half", "folded", "constant_folding", "mul")
FUSED = Fate("add", "fused", "remapper", "mul")


def test_a_node_whose_fate_is_another_is_a_change():
    usual = placement(EXECUTED, FOLDED, FUSED, nodes=3)
    now = placement(Fate("half", "executed", None, "half"), FUSED, EXECUTED, nodes=4)
    assert passes.toggle(usual, now, ["constant_folding"]) == Toggle(
        without=("constant_folding",),
        usual_node_count=3,
        node_count=4,
        changes=(FateChange("half", "folded", "executed"),),
    )


def test_another_pass_to_the_same_fate_is_no_change():
    now = placement(Fate("add", "fused", "tfg_optimizer", "other"))
    assert passes.toggle(placement(FUSED), now, ["remapper"]).changes == ()


def test_changes_stand_in_the_order_of_the_ledger():
    now = placement(*(Fate(name, "executed", None, name) for name in ("add", "half")))
    found = passes.toggle(placement(FOLDED, FUSED), now, ["grappler"])
    assert [change.name for change in found.changes] == ["half", "add"]
