"""Access order: which reads and writes of a step no path puts in an order."""

import pytest

from tests.graph_notation import graph
from tflab.analysis import access_order
from tflab.analysis.access_order import Step
from tflab.records.graph import BranchInput, Call, Function

W = "w=VarHandleOp; x=Placeholder; r=ReadVariableOp(w); y=Mul(x,r); "
R = W.replace("VarHandleOp", "VariableV2").replace("ReadVariableOp", "Identity")
QUEUE = "q=FIFOQueueV2; a=QueueDequeueV2(q); b=QueueDequeueV2(q{}); c=Add(a,b)"
TABLE = "t=HashTableV2; k=Const; put=LookupTableImportV2(t,k,k); v=LookupTableFindV2(t,k{})"
# `yes` runs if p is true, and reads by a switched handle
COND = (
    "w=VarHandleOp; p=Placeholder; s=Switch(w,p); g=Const; up=AssignVariableOp(w,g); "
    "r=ReadVariableOp(s:1); neg=Neg(r); no=Switch(g,p); m=Merge(neg,no); y=Abs(m)"
)
LOOP = (
    "w=VarHandleOp; e=Enter(w); z=Const; first=Enter(z); m=Merge(first,next); l=LoopCond(m); "
    "s=Switch(m,l); r=ReadVariableOp(e,^s); add=Add(s:1,r); next=NextIteration(add); out=Exit(s); "
)


def found(text, fetches, feeds=(), functions=()):
    """`r reads w up`: what the first access is, of which variable, and the second."""
    rows = access_order.unordered(Step(graph(text), fetches.split(), feeds), functions)
    return ", ".join(f"{r.first.node} {r.first.does} {r.resource} {r.second.node}" for r in rows)


@pytest.mark.parametrize(
    "nodes, fetches, expected",
    [
        (W + "up=AssignVariableOp(w,x)", "y:0 up", "r reads w up"),
        (W + "up=AssignVariableOp(w,x)", "y:0", ""),  # it does not run
        (W + "up=AssignVariableOp(w,y)", "y:0 up", ""),
        (W + "up=AssignVariableOp(w,x,^y)", "y:0 up", ""),
        (W + "up=ResourceApplyAdam(w,x,x)", "y:0 up", "r reads w up"),
        (W + "up=AssignVariableOp(w,x); z=ReadVariableOp(w,^up)", "z:0 y:0", "r reads w up"),
        # Nobody uses the value that is read, or only its shape
        ("w=VarHandleOp; r=ReadVariableOp(w); s=Shape(r); up=AssignSubVariableOp(w)", "s:0 up", ""),
        ("w=VarHandleOp; r=ReadVariableOp(w); up=AssignSubVariableOp(w)", "r:0 up", "r reads w up"),
        ("w=VarHandleOp; r=VariableShape(w); up=AssignSubVariableOp(w)", "r:0 up", ""),
        # Two changes
        (W + "a=AssignVariableOp(w,x); b=AssignVariableOp(w,x)", "a b", "a writes w b"),
        (W + "a=AssignAddVariableOp(w,x); b=ResourceScatterSub(w,x)", "a b", ""),
        (W + "a=AssignAddVariableOp(w,x); b=ResourceScatterUpdate(w,x)", "a b", "a writes w b"),
        (W + "a=ResourceApplyMomentum(w,x); b=ResourceApplyMomentum(w,x,^a)", "a b", ""),
        ("w=VarHandleOp; v=VarHandleOp; x; a=ResourceApplyAdam(w,v,x)", "a", ""),
        # Variables whose output is the value: a second change takes what the first one returns
        (R + "up=Assign(w,x)", "y:0 up", "r reads w up"),
        (R + "a=Assign(w,x); b=AssignAdd(a,x)", "b", ""),
        (
            R + "a=Assign(w,y); z=Neg(a); b=Assign(w,x)",
            "z:0 b",
            "r reads w b, a writes w b, z reads w b",
        ),
        (R + "v=VariableV2; a=Assign(v,w); b=Assign(w,x)", "a b", "a reads w b"),
        # Queues and tables
        (QUEUE.format(""), "c:0", "a takes q b"),
        (QUEUE.format(",^a"), "c:0", ""),
        (QUEUE.format("").replace("FIFO", "RandomShuffle"), "c:0", ""),
        ("q=FIFOQueueV2; x; a=QueueEnqueueV2(q,x); b=QueueDequeueV2(q)", "a b", ""),
        (TABLE.format(""), "v:0 put", "v reads t put"),
        (TABLE.format(",^put"), "v:0 put", ""),
        # What only may run
        (COND, "y:0 up", ""),
        (COND.replace("up=AssignVariableOp(w,g)", "up=AssignVariableOp(w,g,^y)"), "up", ""),
        (COND.replace("Read", "Assign").replace("(s:1)", "(s:1,g)"), "y:0 up", "up writes w r"),
        (COND + "; late=ReadVariableOp(w,^m)", "late:0 up", "late reads w up"),
        (LOOP + "up=AssignVariableOp(w,z)", "out:0 up", "r reads w up"),
        (LOOP + "up=AssignVariableOp(w,out)", "out:0 up", ""),
        (LOOP + "up=AssignVariableOp(w,z,^out)", "out:0 up", ""),
    ],
)
def test_accesses_without_a_path_between_them_have_no_order(nodes, fetches, expected):
    assert found(nodes, fetches) == expected


def test_no_path_leads_through_a_tensor_that_is_fed():
    nodes = W + "up=AssignVariableOp(w,y)"
    assert found(nodes, "up r:0", ["y:0"]) == "r reads w up"


def test_fetches_that_are_computed_from_a_read_are_named_and_reads_of_a_line_are_one():
    nodes = graph(W + "z=Neg(y); up=AssignVariableOp(w,x)")
    (row,) = access_order.unordered(Step(nodes, ["z:0", "x:0", "up"]), ())
    assert row.fetches == ("z:0",)


ADD, INNER = "u=AssignAddVariableOp(a)", "a=_Arg; c=PartitionedCall(a)"
FUNCTIONS = (
    Function("reading", (Call("call", "f"),), graph("a=_Arg; b=_Arg; v=ReadVariableOp(b)"), ("v",)),
    Function("calling", (Call("while", "body"),), graph(INNER), ("c",)),
    Function("adding", (Call("c", "f", "calling"),), graph(f"a=_Arg; {ADD}"), (), ("u",)),
    Function("circle", (Call("c", "f", "circle"), Call("round", "f")), graph(INNER), ("c",)),
    Function("lost", (Call("lose", "f"),), graph(f"a=_Arg; {ADD}"), ("a",)),
    Function("unused", (Call("unused", "f"),), graph("a=_Arg; r=ReadVariableOp(a)"), (), ("r",)),
    Function("chosen", (Call("cond", "then_branch"),), graph(f"a=_Arg; {ADD}"), (), ("u",)),
    Function("map", (Call("data", "f"),), graph(f"a=_Arg; {ADD}"), (), ("u",)),
)  # fmt: skip


@pytest.mark.parametrize(
    "call, expected",
    [
        ("call=PartitionedCall(x,w)", "call reads w up"),
        ("call=PartitionedCall(w,x)", ""),  # it only gets the other argument
        ("while=While(w)", "while writes w up"),
        ("cond=If(x,w)", "cond writes w up"),
        ("round=PartitionedCall(w)", ""),
        ("unused=PartitionedCall(w)", ""),  # a read that nothing of its body uses
        ("lose=PartitionedCall(w)", ""),  # a change that does not run
        ("data=MapDataset(w)", ""),
    ],
)
def test_a_call_does_what_its_function_shows(call, expected):
    name = call.partition("=")[0]
    nodes = f"w=VarHandleOp; x; {call}; up=AssignVariableOp(w,x)"
    assert found(nodes, f"{name}:0 up", functions=FUNCTIONS) == expected


def test_two_calls_that_add_have_no_order_that_matters():
    nodes = "w=VarHandleOp; c=PartitionedCall(w); d=PartitionedCall(w); up=AssignVariableOp(w,d)"
    body = graph("a=_Arg; u=AssignAddVariableOp(a)")
    adding = Function("adding", (Call("c", "f"), Call("d", "f")), body, (), ("u",))
    assert found(nodes, "c d", functions=[adding]) == ""
    assert found(nodes, "c up", functions=[adding]) == "c writes w up"


# What always runs


IF = "p=Placeholder; x=Placeholder; z=Mul(x,x); c=Const; cz=Neg(c); cond=If(p,x,z,cz); y=Abs(cond)"
ARGUMENTS = "x=_Arg; z=_Arg; c=_Arg"
BODIES = (
    Function("yes", (Call("cond", "then_branch"),), graph(f"{ARGUMENTS}; a=Add(x,z)"), ("a",)),
    Function("no", (Call("cond", "else_branch"),), graph(ARGUMENTS), ("x",)),
)  # fmt: skip
SWITCHED = (
    "p=Placeholder; x=Placeholder; z=Mul(x,x); cond/pred_id=Identity(p); s=Switch(z,cond/pred_id); "
    "n=Neg(s:1); o=Switch(x,cond/pred_id); m=Merge(o,n); y=Abs(m)"
)


@pytest.mark.parametrize(
    "nodes, fetches, expected",
    [
        (IF, "y:0", [("z", "then_branch of cond")]),
        (IF, "y:0 <- x:0 p:0", [("z", "then_branch of cond")]),
        (IF.replace("p=Placeholder", "p=Const"), "y:0 <- x:0", []),
        (SWITCHED, "y:0 <- x:0 p:0", [("z", "true branch of cond")]),
        (IF, "y:0 z:0", []),
        (IF + "; t=Tanh(z)", "y:0 t", []),
        (IF + "; t=NoOp(^z)", "y:0 t", []),
        (IF.replace("z=Mul(x,x)", "z=Mul(c,c)"), "y:0", []),  # known before the step
        (IF.replace("z=Mul(x,x)", "z=Identity(x)"), "y:0", []),
        (IF.replace("p=Placeholder", "p=Const"), "y:0", []),
        (SWITCHED.replace("p=Placeholder", "p=Const"), "y:0", []),
        (SWITCHED, "y:0", [("z", "true branch of cond")]),
        (SWITCHED.replace("m=Merge(o,n)", "b=Neg(s); m=Merge(b,n)"), "y:0", []),  # both branches
        (SWITCHED.replace("s:1", "s"), "y:0", [("z", "false branch of cond")]),
    ],
)
def test_what_only_one_branch_uses_and_always_runs_is_named(nodes, fetches, expected):
    fetched, _, fed = fetches.partition("<-")
    rows = access_order.of_one_branch(Step(graph(nodes), fetched.split(), fed.split()), BODIES)
    assert [(row.node, row.branch) for row in rows] == expected
    assert all(isinstance(row, BranchInput) for row in rows)
