"""Fates: by hand, and closed after any passes over any graph."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import graph_notation
from tests.graph_notation import graph
from tests.records_by_hand import CPU_0, CPU_1
from tflab.analysis import fates, passes
from tflab.records.graph import Node, nodes_needed
from tflab.records.placed import Fate, Origin, Snapshot
from tflab.views import words


def fates_of(nodes, steps, executed, fetches=("out",), feeds=()) -> list[Fate]:
    """The fates of the nodes that do not simply run."""
    running = [Node(name, "Op") for name in executed]
    account = fates.fates(nodes, steps, running, fetches, feeds)
    assert [fate.name for fate in account] == [node.name for node in nodes]
    return [fate for fate in account if fate != Fate(fate.name, "executed", None, None)]


# Fates: the user's graph | the names of the nodes that run | what the passes did => the fates of
# the nodes that do not simply run | fetches, if not `out` | feeds

CHAIN = "a; b(a); c(b); out(c)"
FATES = {
    "a node that runs was executed": """
        out | out | =>""",
    "a node that runs as another type is named with the last pass that did it": """
        out(c) | out | remapper: out Relu>_Fused; mkl: out _Fused>_MklFused => mkl: out executed""",
    "each way out of the graph is a fate": """
        k; twin; conv; member; id; a; out(k,twin,conv,member,id,a) | a out run
        | fold: k folded out; merge: twin merged a; fuse: conv fused out; xla: member compiled run;
        over: id removed a
        => fold: k folded out; merge: twin merged a; fuse: conv fused out; xla: member compiled run;
        over: id removed a""",
    "a node that became a constant in place was folded whether that runs or not": """
        a; b(a); out(c) | b out
        | fold: a folded a, b folded b; more: a folded b
        => fold: a folded b, b folded b""",
    "a node behind no fetch was unreached whatever a pass made of it": """
        a; b(a); c(b); out(a) | a out
        | merge: b merged a; prune: c removed
        => merge: b unreached; prune: c unreached""",
    "a node that a fetch needs by control only was reached": """
        a; out(^a) | out | drop: a removed => drop: a removed""",
    "behind a feed in the middle of the graph nothing was reached": f"""
        {CHAIN} | _arg_b_0_0 c out
        | feeds: a removed, b removed _arg_b_0_0
        => feeds: a unreached, b removed _arg_b_0_0 | out | b:0""",
    "of a fetched a:1 its node is reached": """
        a; b(a) | a | prune: b removed => prune: b unreached | a:1""",
    "a node that went without a trace was removed by nobody knows whom": """
        c(b); out(c) | out | => c removed""",
    "a node that came back counts by its last end": """
        c(b); out(c) | out
        | first: c merged out; again: +c; last: c fused out
        => last: c fused out""",
    "a node that came back and stays runs": """
        c(b); out(c) | c out | first: c merged out; again: +c =>""",
    "a node that was fused and only passed on until it went was fused": """
        b(a); c(b); out(c) | b out | fuse: c fused b; clean: c removed b => fuse: c fused b""",
    "a node that comes in for the first time changes no fate": """
        out(c) | out new | make: +new =>""",
    # The work of a replaced node goes where its replacement goes
    "a replacement was fused": """
        c(b); out(c) | out | first: c replaced b; later: b fused in out => later: c fused in out""",
    "a replacement was compiled": """
        c(b); out(c) | out
        | first: c replaced b; later: b compiled in out
        => later: c compiled in out""",
    "a replacement was folded": """
        c(b); out(c) | out | first: c replaced b; later: b folded out => later: c folded out""",
    "a replacement was replaced": """
        c(b); out(c) | out | first: c replaced b; later: b replaced out => first: c replaced out""",
    "a replacement of another value was merged": """
        c(b); out(c) | out | first: c replaced in b; later: b merged out
        => first: c replaced in out""",
    "the equal of a replacement was fused": """
        c(b); out(c) | out
        | first: c replaced b; second: b merged d; third: d fused in out
        => third: c fused in out""",
    "a replacement was bypassed in favour of what runs": """
        c(b); out(c) | out | first: c replaced b; later: b removed out => first: c replaced out""",
    "a replacement that was bypassed was not fused with what follows": """
        c(b); out(c) | out
        | first: c replaced b; pass: b removed a; a: a fused in out
        => first: c removed""",
    # Chains
    "the node that took over is the one at the end of the chain": f"""
        {CHAIN} | out
        | merge: a merged b; fold: b folded c; fuse: c fused out
        => merge: a merged out; fold: b folded out; fuse: c fused out""",
    "a merged node whose twin vanished names that": f"""
        {CHAIN} | out
        | merge: a merged b; again: b merged c; drop: c removed
        => merge: a merged b; again: b merged c; drop: c removed""",
    "a node whose heirs all vanish keeps its fate and has none": """
        b(a); c(b); out(c) | out
        | pass: b removed c; drop: c removed
        => pass: b removed; drop: c removed""",
    "a node whose fusion was compiled was compiled": """
        b(a); c(b); out(c) | out run
        | fuse: b fused both; prune: both merged equal;
        encapsulate: c compiled cluster, equal compiled cluster; build: cluster compiled run
        => encapsulate: b compiled run, c compiled run""",
    "nodes that took over from each other name each other": """
        b(a); c(b); out(c) | out
        | one: b merged c; two: c merged b
        => one: b merged c; two: c merged b""",
    "a bypassed node has no heir in what its heir was fused into": """
        b(a); c(b); out(c) | out
        | pass: b removed c; c: c fused in out
        => pass: b removed; c: c fused in out""",
    # The twin of a merged node stands for it until a constant was computed from it
    "a twin from which a constant was computed": """
        a; b(a); c(b) | c
        | merge: a merged b; b: b folded in c
        => merge: a merged b; b: b folded in c | c""",
    "a folded node that is merged with one that vanishes has no heir": """
        a; b; c(a) | c
        | fold: a folded a; merge: a merged b; drop: b removed
        => fold: a folded; drop: b unreached""",
    "a twin that was fused": """
        a; b(a); c(b) | c
        | merge: a merged b; b: b fused in c
        => merge: a merged in c; b: b fused in c | c""",
    "a node whose heir has another value later has none": """
        a; out(a) | out b | square: a replaced b; fold: b removed; prune: b removed c
        => square: a removed""",
    "a node whose heir had another value before has none": """
        a; b; out(a,b) | b out | turn: b removed; merge: a merged b
        => merge: a removed""",
}


@pytest.mark.parametrize("case", FATES.values(), ids=FATES.keys())
def test_fates(case):
    user, running, account, *rest = case.split("|")
    fetches, feeds = *rest, *("out", "")[len(rest) :]
    steps, expected = account.split("=>")
    assert fates_of(
        graph(user), graph_notation.passes(steps), running.split(), fetches.split(), feeds.split()
    ) == graph_notation.fates(expected)


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion():
    users = [Node(f"n{i}", "Op", (f"n{i - 1}",)) for i in range(1_200)]
    steps = [graph_notation.one_pass(f"merge: n{i} merged n{i + 1}") for i in range(1_199)]
    account = fates_of(users, steps, ["n1199"], fetches=["n1199"])
    assert account[0] == Fate("n0", "merged", "merge", "n1199")


# What the fetches need

PARSED = "strings; parsed=ParseExample(strings); out(parsed:1); late(out,parsed:2); waits(^parsed)"


@pytest.mark.parametrize(
    ("nodes", "fetches", "feeds", "needed"),
    [
        (CHAIN, "c a:0 a:1", "", "a b c"),  # one that is fetched twice does not hide what else is
        (CHAIN, "c elsewhere", "", "a b c"),
        # Only what a fed tensor is made of is not needed
        (PARSED, "out:0", "parsed:1", "out parsed"),
        (PARSED, "out:0", "parsed:0", "out parsed strings"),
        (PARSED, "late:0", "parsed:1", "late out parsed strings"),
        (PARSED, "parsed", "parsed:1", "parsed strings"),
        (PARSED, "waits", "parsed:1", "waits parsed strings"),
    ],
)
def test_nodes_needed(nodes, fetches, feeds, needed):
    assert nodes_needed(graph(nodes), fetches.split(), feeds.split()) == {*needed.split()}


# Origins: the user's fates => what the passes did => the graph that runs : where each node is from

NAMES = ["net/call/body/mul", "Func/net/call/input/_0", "net/call", "net/x", "other/x"]
ORIGINS = {
    "a node that the runtime needs for itself is told by its role": """
        => => arg=_Arg; retval=_Retval; s=_Send; r=_Recv; hs=_HostSend; hr=_HostRecv
        : feed; fetch; transfer; transfer; transfer; transfer""",
    # The last two are of transfers
    "over tasks feeds are received and fetches are sent": """
        => => _recv_images_0=_Recv; _send_loss_0=_Send; _recv_images_0_S5=_Recv;
        _recv_images_0/send=_Send : feed; fetch; transfer; transfer""",
    "a node that a pass made comes from the last pass that made it": """
        => first: +a, +b; second: +b => a; b : first; second""",
    "a user's node that became a constant comes from the pass that folded it": """
        fold: a folded a; b executed => => a; b : fold""",
    "a node from nowhere says so": "=> => a : unknown",
    "a node that was inlined names the innermost call that the user wrote": f"""
        net removed; net/call removed
        => function_optimizer: {", ".join(f"+{name}" for name in NAMES)};
        LowerFunctionalOpsPass: +net/call/then; remapper: +net/call/fused
        => {"; ".join(NAMES)}; net/call/then; net/call/fused
        : function_optimizer, from net/call; function_optimizer, from net/call;
        function_optimizer, from net; function_optimizer, from net; function_optimizer;
        LowerFunctionalOpsPass, from net/call; remapper""",
}


@pytest.mark.parametrize("case", ORIGINS.values(), ids=ORIGINS.keys())
def test_origins(case):
    told, _, expected = case.rpartition(" : ")
    account, steps, running = told.split("=>")
    user, nodes = graph_notation.fates(account), graph(running)
    foreign = [node.name for node in nodes if Fate(node.name, "executed", None, None) not in user]
    made = fates.origins(user, graph_notation.passes(steps), nodes)
    assert [*made] == [*map(Origin, foreign, graph_notation.parts(expected, ";"))]


# Any passes over any graph

LABELS = st.sampled_from([f"n{index}" for index in range(7)])
OPS = st.sampled_from(["Const", "Identity", "Mul"])


@st.composite
def any_graph(draw) -> tuple[Node, ...]:
    """Nodes that take from earlier ones; of so few names that graphs have many in common."""
    nodes: list[Node] = []
    for name in draw(st.lists(LABELS, min_size=1, unique=True)):
        earlier = st.lists(st.sampled_from([node.name for node in nodes] or [name]), max_size=2)
        inputs, control = (tuple(draw(earlier)) if nodes else () for _ in range(2))
        nodes.append(Node(name, draw(OPS), inputs, control))
    return tuple(nodes)


@pytest.mark.slow
@given(
    graphs=st.lists(any_graph(), min_size=1, max_size=6),
    fetches=st.lists(LABELS, max_size=3),
    feeds=st.lists(LABELS, max_size=2),
)
def test_the_account_is_closed_after_any_passes_over_any_graph(graphs, fetches, feeds):
    user, nodes = graphs[0], graphs[-1]
    snapshots = [
        Snapshot("after", "grappler", f"pass{number}", None, None, after, {})
        for number, after in enumerate(graphs[1:])
    ]
    steps = passes.compare(user, snapshots, nodes)
    account = fates.fates(user, steps, nodes, fetches, feeds)
    made = list(fates.origins(account, steps, nodes))

    running = {node.name for node in nodes}
    assert [fate.name for fate in account] == [node.name for node in user]
    assert {fate.fate for fate in account} <= words.FATES.keys()
    own = [fate.name for fate in account if fate.fate == "executed"]
    assert Counter([*own, *(origin.name for origin in made)]) == Counter(running)
    assert {fate.into for fate in account if fate.fate != "merged"} <= {None, *running}
    assert {origin.origin for origin in made} <= {step.name for step in steps}
    assert {fate.by for fate in account} <= {None, *(step.name for step in steps)}


# Branches

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
    assert fates.not_taken(user, ran) == tuple(not_taken.split())


def test_a_node_ran_if_one_of_the_steps_has_it():
    names = {node.name for node in graph(COND)}
    assert fates.not_taken(graph(COND), (names - {"pivot"}) | (names - {"mul"})) == ()


def test_a_receive_is_never_told_but_passes_on_that_a_tensor_is_dead():
    """`_Send` and `_Recv` are in no trace, and they also run for a dead tensor."""
    parts = graph(
        f"""p=_Arg@{CPU_0}; switch=Switch(x,p)@{CPU_0}; h/_1=_Send(switch:1)@{CPU_0};
        w/_3=_Send(p)@{CPU_0}; h/_2=_Recv@{CPU_1}; w/_4=_Recv@{CPU_1}; exp=Exp(h/_2)@{CPU_1};
        log=Log(w/_4)@{CPU_1}"""
    )
    sent = (("h/_1", "h/_2"), ("w/_3", "w/_4"))
    assert fates.not_taken(parts, {"p", "switch"}, sent) == ("exp",)
    assert fates.not_taken(parts, {"p", "switch", "exp"}, sent) == ()
    assert fates.not_taken(parts, {"p", "switch"}) == ()


def test_only_a_step_can_tell_what_runs_after_a_switch():
    assert fates.depending(graph(COND)) == {"pivot", "one", "add", "mul", "y", "z"}
    assert fates.depending(graph(f"{TAKEN}; exp=Exp(switch:1)")) == {"exp"}
    assert fates.depending(graph(COND)[:2]) == set()


def test_the_fate_of_a_node_in_a_step():
    ledger = graph_notation.fates("a executed; remapper: b executed; constant_folding: c folded c")
    assert fates.fates_in_step(ledger, {"b", "c", "d"}) == {
        "a": "executed",
        "b": "in a branch that was not taken",
        "c": "folded",
    }
