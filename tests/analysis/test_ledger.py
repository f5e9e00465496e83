"""Ledger: by hand, and closed after any passes over any graph."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflab.analysis import ledger, passes
from tflab.records.graph import Node, node_of
from tflab.records.placed import Fate, Origin, Pass, Rewrite, Snapshot, Takeover
from tflab.views import words


def node(name: str, *inputs: str, op: str = "Op", control: tuple[str, ...] = ()) -> Node:
    return Node(name, op, inputs, control)


def step(name: str, *taken: tuple[str, str, str | None], **changes) -> Pass:
    """A pass by what it took; the counts do not matter here."""
    return Pass(name, None, 0, 0, taken=tuple(Takeover(*record) for record in taken), **changes)


def fates(nodes, steps, executed, fetches=("out",), feeds=()) -> list[Fate]:
    """The fates of the nodes that do not simply run."""
    running = [node(name) for name in executed]
    account = ledger.fates(nodes, steps, running, fetches, feeds)
    assert [fate.name for fate in account] == [node.name for node in nodes]
    return [fate for fate in account if fate != Fate(fate.name, "executed", None, None)]


A, B, C = node("a"), node("b", "a"), node("c", "b")
OUT = node("out", "c")

# Fates


def test_a_node_that_runs_was_executed():
    assert ledger.fates([A], [], [A], ["a"], []) == (Fate("a", "executed", None, None),)


def test_a_node_that_runs_as_another_type_was_executed_and_the_last_pass_that_did_it_is_named():
    steps = [
        step("remapper", rewritten=(Rewrite("out", "Relu", "_Fused"),)),
        step("mkl", rewritten=(Rewrite("out", "_Fused", "_MklFused"),)),
    ]
    assert fates([OUT], steps, ["out"]) == [Fate("out", "executed", "mkl", None)]


def test_each_way_out_of_the_graph_is_a_fate():
    users = [*map(node, ("k", "twin", "conv", "member", "id")), A]
    out = node("out", "k", "twin", "conv", "member", "id", "a")
    steps = [
        step("fold", ("k", "folded", "out")),
        step("merge", ("twin", "merged", "a")),
        step("fuse", ("conv", "fused", "out")),
        step("xla", ("member", "compiled", "run")),
        step("pass_over", ("id", "removed", "a")),
    ]
    assert fates([*users, out], steps, ["a", "out", "run"]) == [
        Fate("k", "folded", "fold", "out"),
        Fate("twin", "merged", "merge", "a"),
        Fate("conv", "fused", "fuse", "out"),
        Fate("member", "compiled", "xla", "run"),
        Fate("id", "removed", "pass_over", "a"),
    ]


def test_a_node_that_became_a_constant_in_place_was_folded_whether_that_runs_or_not():
    steps = [
        step("fold", ("a", "folded", "a"), ("b", "folded", "b")),
        step("fold_more", ("a", "folded", "b")),
    ]
    assert fates([A, B, OUT], steps, ["b", "out"]) == [
        Fate("a", "folded", "fold", "b"),
        Fate("b", "folded", "fold", "b"),
    ]


def test_a_node_behind_no_fetch_was_unreached_whatever_a_pass_made_of_it():
    steps = [step("merge", ("b", "merged", "a")), step("prune", ("c", "removed", None))]
    users = [A, B, C, node("out", "a")]
    assert fates(users, steps, ["a", "out"]) == [
        Fate("b", "unreached", "merge", None),
        Fate("c", "unreached", "prune", None),
    ]


def test_a_node_that_a_fetch_needs_by_control_only_was_reached():
    users = [A, node("out", control=("a",))]
    assert fates(users, [step("drop", ("a", "removed", None))], ["out"]) == [
        Fate("a", "removed", "drop", None)
    ]


def test_behind_a_feed_in_the_middle_of_the_graph_nothing_was_reached():
    steps = [step("feeds", ("a", "removed", None), ("b", "removed", "_arg_b_0_0"))]
    assert fates([A, B, C, OUT], steps, ["_arg_b_0_0", "c", "out"], feeds=["b:0"]) == [
        Fate("a", "unreached", "feeds", None),
        Fate("b", "removed", "feeds", "_arg_b_0_0"),
    ]


def test_a_fetched_tensor_and_a_fetched_node_are_reached_alike():
    steps = [step("prune", ("b", "removed", None))]
    for fetch in ("a:0", "a:1", "a"):
        assert fates([A, B], steps, ["a"], [fetch]) == [Fate("b", "unreached", "prune", None)]


def test_a_node_that_went_without_a_trace_was_removed_by_nobody_knows_whom():
    assert fates([C, OUT], [], ["out"]) == [Fate("c", "removed", None, None)]


def test_a_node_that_came_back_counts_by_its_last_end():
    steps = [
        step("first", ("c", "merged", "out")),
        step("again", added=("c",)),
        step("last", ("c", "fused", "out")),
    ]
    assert fates([C, OUT], steps, ["out"]) == [Fate("c", "fused", "last", "out")]
    assert fates([C, OUT], steps[:2], ["c", "out"]) == []


def test_a_node_that_was_fused_and_only_passed_on_until_it_went_was_fused():
    steps = [step("fuse", ("c", "fused", "b")), step("clean", ("c", "removed", "b"))]
    assert fates([B, C, OUT], steps, ["b", "out"]) == [Fate("c", "fused", "fuse", "b")]


def test_a_node_whose_users_turned_to_another_was_replaced_by_the_pass_that_did_it():
    """Of half * half the arithmetic optimiser makes a square; the product goes one pass later."""
    half, square = node("half", "x"), node("square", "half", op="Square")
    before = [half, node("planted", "half", "half", op="Mul"), node("out", "planted")]
    switched = [*before[:2], square, node("out", "square")]
    pruned = [half, square, node("out", "square")]
    dumps = [
        Snapshot("after", "grappler", name, 0, None, tuple(nodes), {})
        for name, nodes in (("arithmetic", switched), ("dependency", pruned))
    ]
    steps = passes.compare(tuple(before), dumps, tuple(pruned))
    assert fates(before, steps, ["half", "square", "out"]) == [
        Fate("planted", "removed", "arithmetic", "square", replaced=True)
    ]
    assert list(ledger.origins([], steps, [square])) == [Origin("square", "arithmetic")]


def test_a_cast_and_a_reshape_that_changed_places_are_each_followed_by_their_own():
    swapped = "Arithmetic/Reorder"
    x = node("x")
    before = [
        x,
        node("s/cast", "x", op="Cast"),
        node("s/wide", "s/cast", op="ExpandDims"),
        node("out", "s/wide"),
    ]
    made = [
        node(f"s/{swapped}_uint8_wide", "x", op="ExpandDims"),
        node(f"s/{swapped}_float_cast", f"s/{swapped}_uint8_wide", op="Cast"),
    ]
    out = node("out", f"s/{swapped}_float_cast")
    pruned = [x, *made, out]
    for dumped in ([[*before[:3], *made, out], pruned], [pruned]):  # removed later, or at once
        dumps = [
            Snapshot("after", "grappler", str(number), 0, None, tuple(nodes), {})
            for number, nodes in enumerate(dumped)
        ]
        steps = passes.compare(tuple(before), dumps, tuple(pruned))
        assert fates(before[1:], steps, ["out", *(one.name for one in made)])[:2] == [
            Fate("s/cast", "removed", "0", f"s/{swapped}_float_cast", (), False, replaced=True),
            Fate("s/wide", "removed", "0", f"s/{swapped}_uint8_wide", (), False, replaced=True),
        ]


@pytest.mark.parametrize(
    ("later", "fate"),
    [
        (Takeover("b", "fused", "out", has_value=False), ("fused", "later", "out", (), False)),
        (
            Takeover("b", "compiled", "out", has_value=False),
            ("compiled", "later", "out", (), False),
        ),
        (Takeover("b", "folded", "out"), ("folded", "later", "out")),
        (
            Takeover("b", "removed", "out", replaced=True),
            ("removed", "first", "out", (), True, True),
        ),
        (Takeover("b", "removed", "out"), ("removed", "first", "out", (), True, True)),
    ],
)
def test_the_work_of_a_replaced_node_goes_where_its_replacement_goes(later, fate):
    replaced = Pass("first", None, 3, 3, taken=(Takeover("c", "removed", "b", replaced=True),))
    steps = [replaced, Pass("later", None, 3, 2, taken=(later,))]
    assert fates([C, OUT], steps, ["out"]) == [Fate("c", *fate)]


def test_a_replacement_that_was_bypassed_was_not_fused_with_what_follows():
    replaced = Pass("first", None, 3, 3, taken=(Takeover("c", "removed", "b", replaced=True),))
    steps = [replaced, step("pass", ("b", "removed", "a")), part("a", "fused", "out")]
    assert fates([C, OUT], steps, ["out"]) == [Fate("c", "removed", "first", None)]


def test_a_node_that_comes_in_for_the_first_time_changes_no_fate():
    assert fates([OUT], [step("make", added=("new",))], ["out", "new"]) == []


def test_a_node_that_is_fetched_twice_does_not_hide_what_else_is():
    for fetches in (["c", "a:0", "a:1"], ["c", "elsewhere"]):
        assert ledger.nodes_needed([A, B, C, OUT], fetches, []) == {"a", "b", "c"}


def test_only_what_a_fed_tensor_is_made_of_is_not_needed():
    parsed = node("parsed", "strings", op="ParseExample")
    graph = [node("strings"), parsed, node("out", "parsed:1"), node("late", "out", "parsed:2")]
    fed = ["parsed:1"]
    assert ledger.nodes_needed(graph, ["out:0"], fed) == {"out", "parsed"}
    assert ledger.nodes_needed(graph, ["out:0"], ["parsed:0"]) == {"out", "parsed", "strings"}
    assert ledger.nodes_needed(graph, ["late:0"], fed) == {"late", "out", "parsed", "strings"}
    assert ledger.nodes_needed(graph, ["parsed"], fed) == {"parsed", "strings"}
    waits = Node("waits", "NoOp", control_inputs=("parsed",))
    assert ledger.nodes_needed([*graph, waits], ["waits"], fed) == {"waits", "parsed", "strings"}


# Chains


def test_the_node_that_took_over_is_the_one_at_the_end_of_the_chain():
    steps = [
        step("merge", ("a", "merged", "b")),
        step("fold", ("b", "folded", "c")),
        step("fuse", ("c", "fused", "out")),
    ]
    assert fates([A, B, C, OUT], steps, ["out"]) == [
        Fate("a", "merged", "merge", "out"),
        Fate("b", "folded", "fold", "out"),
        Fate("c", "fused", "fuse", "out"),
    ]


def test_a_merged_node_whose_twin_vanished_names_the_last_of_the_chain():
    steps = [
        step("merge", ("a", "merged", "b")),
        step("again", ("b", "merged", "c")),
        step("drop", ("c", "removed", None)),
    ]
    assert fates([A, B, C, OUT], steps, ["out"])[:2] == [
        Fate("a", "merged", "merge", "c"),
        Fate("b", "merged", "again", "c"),
    ]


def test_each_output_of_a_node_that_is_gone_is_followed_to_what_holds_it():
    taken = Takeover("a", "removed", "x", (("a", "x"), ("a:1", "y:2"), ("a:2", "z"), ("a:3", "w")))
    steps = [
        Pass("lower", None, 0, 0, taken=(taken,)),
        step("fold", ("x", "folded", "one"), ("z", "removed", None)),
        Pass("two", None, 0, 0, taken=(Takeover("y", "fused", "f", (("y:2", "f:1"),)),)),
    ]
    out = node("out", "a")
    assert fates([A, out], steps, ["out", "one", "f", "w"]) == [
        Fate("a", "removed", "lower", "one", (("a", "one"), ("a:1", "f:1"), ("a:3", "w")))
    ]


def test_a_node_whose_heirs_all_vanish_keeps_its_fate_and_has_none():
    steps = [step("pass", ("b", "removed", "c")), step("drop", ("c", "removed", None))]
    assert fates([B, C, OUT], steps, ["out"]) == [
        Fate("b", "removed", "pass", None),
        Fate("c", "removed", "drop", None),
    ]


def test_a_node_whose_fusion_was_compiled_was_compiled():
    steps = [
        step("fuse", ("b", "fused", "both")),
        step("prune", ("both", "merged", "equal")),
        step("encapsulate", ("c", "compiled", "cluster"), ("equal", "compiled", "cluster")),
        step("build", ("cluster", "compiled", "run")),
    ]
    assert fates([B, C, OUT], steps, ["out", "run"]) == [
        Fate("b", "compiled", "encapsulate", "run"),
        Fate("c", "compiled", "encapsulate", "run"),
    ]


def test_nodes_that_took_over_from_each_other_have_no_heir():
    steps = [step("one", ("b", "merged", "c")), step("two", ("c", "merged", "b"))]
    assert fates([B, C, OUT], steps, ["out"]) == [
        Fate("b", "merged", "one", None),
        Fate("c", "merged", "two", None),
    ]


def part(name: str, fate: str, into: str) -> Pass:
    """A pass in which the value of a node went into what another one computes."""
    return Pass(name, None, 0, 0, taken=(Takeover(name, fate, into, has_value=False),))


def test_a_bypassed_node_has_no_heir_in_what_its_heir_was_fused_into():
    steps = [step("pass", ("b", "removed", "c")), part("c", "fused", "out")]
    assert fates([B, C, OUT], steps, ["out"]) == [
        Fate("b", "removed", "pass", None),
        Fate("c", "fused", "c", "out", has_value=False),
    ]


def test_the_twin_of_a_merged_node_stands_for_it_until_a_constant_was_computed_from_it():
    steps = [step("merge", ("a", "merged", "b")), part("b", "folded", "c")]
    assert fates([A, B, C], steps, ["c"], ["c"]) == [
        Fate("a", "merged", "merge", "b"),
        Fate("b", "folded", "b", "c", has_value=False),
    ]
    steps = [step("merge", ("a", "merged", "b")), part("b", "fused", "c")]
    assert fates([A, B, C], steps, ["c"], ["c"])[0] == Fate(
        "a", "merged", "merge", "c", has_value=False
    )


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion():
    users = [node(f"n{i}", f"n{i - 1}") for i in range(2_000)]
    steps = [step("merge", (f"n{i}", "merged", f"n{i + 1}")) for i in range(1_999)]
    account = fates(users, steps, ["n1999"], fetches=["n1999"])
    assert account[0] == Fate("n0", "merged", "merge", "n1999")


# Origins


def test_a_node_that_the_runtime_needs_for_itself_is_told_by_its_role():
    ops = ("_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv")
    running = [node(op.lower(), op=op) for op in ops]
    roles = ("feed", "fetch", "transfer", "transfer", "transfer", "transfer")
    assert list(ledger.origins([], [], running)) == [
        Origin(op.lower(), role) for op, role in zip(ops, roles, strict=True)
    ]


def test_over_tasks_feeds_are_received_and_fetches_are_sent():
    named = {"_recv_images_0": "_Recv", "_send_loss_0": "_Send"}
    named |= {"_recv_images_0_S5": "_Recv", "_recv_images_0/send": "_Send"}  # of transfers
    running = [node(name, op=op) for name, op in named.items()]
    roles = ("feed", "fetch", "transfer", "transfer")
    assert [origin.origin for origin in ledger.origins([], [], running)] == [*roles]


def test_a_node_that_a_pass_made_comes_from_the_last_pass_that_made_it():
    steps = [step("first", added=("a", "b")), step("second", added=("b",))]
    assert list(ledger.origins([], steps, [A, B])) == [Origin("a", "first"), Origin("b", "second")]


def test_a_users_node_that_became_a_constant_comes_from_the_pass_that_folded_it():
    account = [Fate("a", "folded", "fold", "a"), Fate("b", "executed", None, None)]
    assert list(ledger.origins(account, [], [A, B])) == [Origin("a", "fold")]


def test_a_node_from_nowhere_says_so():
    assert list(ledger.origins([], [], [A])) == [Origin("a", "unknown")]


def test_a_node_that_was_inlined_names_the_innermost_call_that_the_user_wrote():
    account = [Fate("net", "removed", None, None), Fate("net/call", "removed", None, None)]
    inlined = ("net/call/body/mul", "Func/net/call/input/_0", "net/call", "net/x", "other/x")
    steps = [
        step("function_optimizer", added=inlined),
        step("LowerFunctionalOpsPass", added=("net/call/then",)),
        step("remapper", added=("net/call/fused",)),
    ]
    running = [*map(node, (*inlined, "net/call/then", "net/call/fused"))]
    assert list(ledger.origins(account, steps, running)) == [
        Origin("net/call/body/mul", "function_optimizer, from net/call"),
        Origin("Func/net/call/input/_0", "function_optimizer, from net/call"),
        Origin("net/call", "function_optimizer, from net"),
        Origin("net/x", "function_optimizer, from net"),
        Origin("other/x", "function_optimizer"),
        Origin("net/call/then", "LowerFunctionalOpsPass, from net/call"),
        Origin("net/call/fused", "remapper"),
    ]


# Any passes over any graph

LABELS = st.sampled_from([f"n{index}" for index in range(12)])
OPS = st.sampled_from(["Const", "Identity", "Add", "Mul"])
PLACE = st.integers(0, 99)


@st.composite
def graphs(draw) -> list[Node]:
    """Nodes that take from earlier ones."""
    nodes: list[Node] = []
    for name in draw(st.lists(LABELS, min_size=1, unique=True)):
        places = st.lists(PLACE, max_size=3 if nodes else 0)
        inputs, control = (
            tuple(nodes[place % len(nodes)].name for place in draw(places)) for _ in range(2)
        )
        nodes.append(Node(name, draw(OPS), inputs, control))
    return nodes


def without(nodes, gone: str, heir: str | None) -> list[Node]:
    """The graph without a node. Its users take another in its place, or lose an input."""

    def handed_on(names):
        swapped = [heir if node_of(name) == gone else name for name in names]
        return tuple(name for name in swapped if name)

    return [
        replace(n, inputs=handed_on(n.inputs), control_inputs=handed_on(n.control_inputs))
        for n in nodes
        if n.name != gone
    ]


def changed(nodes, kind: str, first: int, second: int, name: str, op: str) -> list[Node]:
    """A graph after one change; `first` and `second` are places in it."""
    if not nodes or kind == "add":
        taken = {n.name for n in nodes}
        inputs = (nodes[first % len(nodes)].name,) if nodes else ()
        return nodes if name in taken else [*nodes, Node(name, op, inputs)]
    place = first % len(nodes)
    node, heir = nodes[place], nodes[second % len(nodes)].name
    if kind == "remove":
        return without(nodes, node.name, None)
    if kind == "merge" and heir != node.name:
        return without(nodes, node.name, heir)
    if kind == "rename" and name not in {n.name for n in nodes}:
        return [*without(nodes, node.name, name), replace(node, name=name)]
    if kind == "retype":
        return [*nodes[:place], replace(node, op=op), *nodes[place + 1 :]]
    return nodes


CHANGE = st.tuples(
    *(st.sampled_from(["add", "remove", "merge", "rename", "retype"]), PLACE, PLACE, LABELS, OPS)
)


@pytest.mark.slow
@given(
    user_nodes=graphs(),
    rounds=st.lists(st.lists(CHANGE, max_size=4), max_size=6),
    fetches=st.lists(LABELS, max_size=3),
    feeds=st.lists(LABELS, max_size=2),
)
def test_the_account_is_closed_after_any_passes_over_any_graph(user_nodes, rounds, fetches, feeds):
    snapshots, nodes = [], user_nodes
    for number, changes in enumerate(rounds):
        for change in changes:
            nodes = changed(nodes, *change)
        snapshots.append(
            Snapshot("after", "grappler", f"pass{number}", None, None, tuple(nodes), {})
        )
    steps = passes.compare(tuple(user_nodes), snapshots, tuple(nodes))
    account = ledger.fates(user_nodes, steps, nodes, fetches, feeds)
    made = list(ledger.origins(account, steps, nodes))

    running = {node.name for node in nodes}
    assert [fate.name for fate in account] == [node.name for node in user_nodes]
    assert {fate.fate for fate in account} <= words.FATES.keys()
    own = [fate.name for fate in account if fate.fate == "executed"]
    assert Counter([*own, *(origin.name for origin in made)]) == Counter(running)
    twins = {fate.into for fate in account if fate.fate == "merged"}
    assert {fate.into for fate in account} - twins <= {None, *running}
    ever = running.union(*(step.removed for step in steps))
    assert twins <= {None, *ever}
    assert all(node_of(now) in running for fate in account for _, now in fate.outputs)
    assert {origin.origin for origin in made} <= {step.name for step in steps}
    assert {fate.by for fate in account} <= {None, *(step.name for step in steps)}
