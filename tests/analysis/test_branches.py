"""Branches: the nodes that did not run are told only if a `Switch` explains it."""

from tests.records_by_hand import CPU_0, CPU_1
from tflab.analysis import branches
from tflab.records.graph import Node
from tflab.records.placed import Fate

# y = x + 1 if p else x * w; z = y - x
COND = (
    Node("p", "_Arg"),
    Node("x", "_Arg"),
    Node("switch", "Switch", ("x", "p")),
    Node("pivot", "Identity", ("switch:1",)),
    Node("one", "Const", (), ("pivot",)),
    Node("add", "AddV2", ("switch:1", "one")),
    Node("w", "Const"),
    Node("of_w", "RefSwitch", ("w", "p")),
    Node("mul", "Mul", ("switch", "of_w")),
    Node("y", "Merge", ("mul", "add")),
    Node("z", "Sub", ("y", "x")),
)
NAMES = {node.name for node in COND}
FALSE = {"pivot", "one", "add"}  # do not run if p is False


def test_a_branch_that_is_not_taken_does_not_run():
    assert branches.not_taken(COND, NAMES - FALSE) == ("pivot", "one", "add")
    assert branches.not_taken(COND, NAMES - {"mul"}) == ("mul",)
    assert branches.not_taken(COND, NAMES) == ()


def test_a_node_ran_if_one_of_the_steps_has_it():
    first, second = NAMES - FALSE, NAMES - {"mul"}
    assert branches.not_taken(COND, first | second) == ()


def test_a_node_that_no_branch_explains_is_not_told():
    assert branches.not_taken(COND, NAMES - FALSE - {"w", "z", "x"}) == ("pivot", "one", "add")
    assert branches.not_taken(COND, NAMES - {"z"}) == ()  # after the Merge, which ran
    assert branches.not_taken(COND, ()) == ()  # a trace without rows
    assert branches.not_taken(COND, NAMES - {"switch", "of_w"} - FALSE) == ()


def test_an_output_that_a_node_took_is_not_dead():
    """`add` took what `pivot` takes: the row of `pivot` is missing for another reason. But what
    takes a `Switch` only into a Merge says nothing."""
    assert branches.not_taken(COND, NAMES - {"pivot"}) == ()
    passed = (
        Node("p", "_Arg"),
        Node("switch", "Switch", ("x", "p")),
        Node("exp", "Exp", ("switch:1",)),
        Node("y", "Merge", ("switch:1", "switch")),
    )
    assert branches.not_taken(passed, {"p", "switch", "y"}) == ("exp",)


def test_what_only_waits_for_a_switch_runs_in_any_case():
    waits = (Node("switch", "Switch", ("x", "p")), Node("a", "Const", (), ("switch",)))
    assert branches.not_taken(waits, {"switch"}) == ()


def test_a_branch_inside_a_branch_with_its_merge():
    """The outer branch is not taken, so the inner `Switch` and `Merge` do not run either."""
    nested = (
        Node("p", "_Arg"),
        Node("outer", "_SwitchN", ("x", "p")),
        Node("q", "Less", ("outer:2", "limit")),
        Node("inner", "Switch", ("outer:2", "q")),
        Node("exp", "Exp", ("inner:1",)),
        Node("log", "Log", ("inner",)),
        Node("both", "Merge", ("exp", "log")),
        Node("neg", "Neg", ("outer",)),
        Node("y", "Merge", ("neg", "both")),
    )
    ran = {"p", "outer", "neg", "y"}
    assert branches.not_taken(nested, ran) == ("q", "inner", "exp", "log", "both")
    ran = {"p", "outer", "q", "inner", "log", "both", "y"}
    assert branches.not_taken(nested, ran) == ("exp", "neg")


LOOP = (
    Node("enter", "Enter", ("x",)),
    Node("merge", "Merge", ("enter", "next")),
    Node("less", "Less", ("merge", "limit")),
    Node("cond", "LoopCond", ("less",)),
    Node("switch", "Switch", ("merge", "cond")),
    Node("body", "Identity", ("switch:1",)),
    Node("one", "Const", (), ("body",)),
    Node("add", "AddV2", ("body", "one")),
    Node("next", "NextIteration", ("add",)),
    Node("exit", "Exit", ("switch",)),
    Node("y", "Exp", ("exit",)),
)


def test_the_body_of_a_loop_without_a_turn_does_not_run():
    ran = {"enter", "merge", "less", "cond", "switch", "exit", "y"}
    assert branches.not_taken(LOOP, ran) == ("body", "one", "add", "next")
    assert branches.not_taken(LOOP, {node.name for node in LOOP}) == ()


def test_a_loop_in_a_branch_that_is_not_taken():
    inside = (
        Node("outer", "Switch", ("a", "p")),
        Node("x", "Identity", ("outer:1",)),
        *LOOP,
        Node("z", "Merge", ("outer", "y")),
    )
    assert branches.not_taken(inside, {"outer", "z"}) == ("x", *(node.name for node in LOOP))


def test_a_receive_is_never_told_but_passes_on_that_a_tensor_is_dead():
    """`_Send` and `_Recv` are in no trace, and they also run for a dead tensor."""
    parts = (
        Node("p", "_Arg", device=CPU_0),
        Node("switch", "Switch", ("x", "p"), device=CPU_0),
        Node("h/_1", "_Send", ("switch:1",), device=CPU_0),
        Node("w/_3", "_Send", ("p",), device=CPU_0),
        Node("h/_2", "_Recv", device=CPU_1),
        Node("w/_4", "_Recv", device=CPU_1),
        Node("exp", "Exp", ("h/_2",), device=CPU_1),
        Node("log", "Log", ("w/_4",), device=CPU_1),
    )
    sent = (("h/_1", "h/_2"), ("w/_3", "w/_4"))
    assert branches.not_taken(parts, {"p", "switch"}, sent) == ("exp",)
    assert branches.not_taken(parts, {"p", "switch", "exp"}, sent) == ()
    assert branches.not_taken(parts, {"p", "switch"}) == ()


def test_only_a_step_can_tell_what_runs_after_a_switch():
    assert branches.depending(COND) == {"pivot", "one", "add", "mul", "y", "z"}
    assert branches.depending(COND[:2]) == set()


def test_the_fate_of_a_node_in_a_step():
    ledger = (
        Fate("a", "executed", None, None),
        Fate("b", "executed", "remapper", None),
        Fate("c", "folded", "constant_folding", "c"),
    )
    assert branches.fates_in_step(ledger, {"b", "c", "d"}) == {
        "a": "executed",
        "b": "in a branch that was not taken",
        "c": "folded",
    }
