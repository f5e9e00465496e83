"""Branches: the nodes that did not run are told only if a `Switch` explains it."""

import pytest

from tests import graph_notation
from tests.graph_notation import graph
from tests.records_by_hand import CPU_0, CPU_1
from tflab.analysis import branches

# y = x + 1 if p else x * w; z = y - x
COND = """p=_Arg; x=_Arg; switch=Switch(x,p); pivot=Identity(switch:1); one=Const(^pivot);
    add=AddV2(switch:1,one); w=Const; of_w=RefSwitch(w,p); mul=Mul(switch,of_w); y=Merge(mul,add);
    z=Sub(y,x)"""
# What takes a `Switch` only into a Merge says nothing
TAKEN = "p=_Arg; switch=Switch(x,p)"
PASSED = f"{TAKEN}; exp=Exp(switch:1); y=Merge(switch:1,switch)"
NESTED = """p=_Arg; outer=_SwitchN(x,p); q=Less(outer:2,limit); inner=Switch(outer:2,q);
    exp=Exp(inner:1); log=Log(inner); both=Merge(exp,log); neg=Neg(outer); y=Merge(neg,both)"""
LOOP = """enter=Enter(x); merge=Merge(enter,next); less=Less(merge,limit); cond=LoopCond(less);
    switch=Switch(merge,cond); body=Identity(switch:1); one=Const(^body); add=AddV2(body,one);
    next=NextIteration(add); exit=Exit(switch); y=Exp(exit)"""
INSIDE = f"outer=Switch(a,p); x=Identity(outer:1); {LOOP}; z=Merge(outer,y)"
ALL = " ".join(node.name for node in graph(LOOP))


@pytest.mark.parametrize(
    ("nodes", "not_in_the_trace", "not_taken"),
    [
        (COND, "pivot one add", "pivot one add"),  # p is False
        (COND, "mul", "mul"),
        (COND, "", ""),
        # What no branch explains
        (COND, "pivot one add w z x", "pivot one add"),
        (COND, "z", ""),  # after the Merge, which ran
        (COND, " ".join(node.name for node in graph(COND)), ""),  # a trace without rows
        (COND, "switch of_w pivot one add", ""),
        # `add` took what `pivot` takes: the row of `pivot` is missing for another reason
        (COND, "pivot", ""),
        (PASSED, "exp", "exp"),
        (f"{TAKEN}; exp=Exp(switch:1)", "exp", "exp"),
        (f"{TAKEN}; exp=Exp(switch:1); log=Log(switch:1)", "exp", ""),  # log took the same
        (f"{TAKEN}; a=Exp(switch:1); b=Const(^a)", "a b", "a b"),
        # What only waits for a switch runs in any case
        ("switch=Switch(x,p); a=Const(^switch)", "a", ""),
        # A branch inside a branch that is not taken: the inner Switch and Merge do not run either
        (NESTED, "q inner exp log both", "q inner exp log both"),
        (NESTED, "exp neg", "exp neg"),
        # The body of a loop without a turn, and a loop in a branch that is not taken
        (LOOP, "body one add next", "body one add next"),
        (LOOP, "", ""),
        (INSIDE, f"x {ALL}", f"x {ALL}"),
    ],
)
def test_nodes_that_did_not_run(nodes, not_in_the_trace, not_taken):
    user = graph(nodes)
    ran = {node.name for node in user} - {*not_in_the_trace.split()}
    assert branches.not_taken(user, ran) == tuple(not_taken.split())


def test_a_node_ran_if_one_of_the_steps_has_it():
    names = {node.name for node in graph(COND)}
    assert branches.not_taken(graph(COND), (names - {"pivot"}) | (names - {"mul"})) == ()


def test_a_receive_is_never_told_but_passes_on_that_a_tensor_is_dead():
    """`_Send` and `_Recv` are in no trace, and they also run for a dead tensor."""
    parts = graph(
        f"""p=_Arg@{CPU_0}; switch=Switch(x,p)@{CPU_0}; h/_1=_Send(switch:1)@{CPU_0};
        w/_3=_Send(p)@{CPU_0}; h/_2=_Recv@{CPU_1}; w/_4=_Recv@{CPU_1}; exp=Exp(h/_2)@{CPU_1};
        log=Log(w/_4)@{CPU_1}"""
    )
    sent = (("h/_1", "h/_2"), ("w/_3", "w/_4"))
    assert branches.not_taken(parts, {"p", "switch"}, sent) == ("exp",)
    assert branches.not_taken(parts, {"p", "switch", "exp"}, sent) == ()
    assert branches.not_taken(parts, {"p", "switch"}) == ()


def test_only_a_step_can_tell_what_runs_after_a_switch():
    assert branches.depending(graph(COND)) == {"pivot", "one", "add", "mul", "y", "z"}
    assert branches.depending(graph(f"{TAKEN}; exp=Exp(switch:1)")) == {"exp"}
    assert branches.depending(graph(COND)[:2]) == set()


def test_the_fate_of_a_node_in_a_step():
    ledger = graph_notation.fates("a executed; remapper: b executed; constant_folding: c folded c")
    assert branches.fates_in_step(ledger, {"b", "c", "d"}) == {
        "a": "executed",
        "b": "in a branch that was not taken",
        "c": "folded",
    }
