"""Drawings: order and place of boxes, from records alone."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.examples.layer import STAGES
from tests.graph_notation import graph, one_pass
from tests.records_by_hand import a_backward, a_frontend, a_placement
from tflab.follow import node_history
from tflab.records.graph import Node
from tflab.records.stages import Gradient, NodeHistory
from tflab.report import drawing
from tflab.report.contents import OUTSIDE, Box, Lane, nodes_of
from tflab.report.drawing import Waits


def drawn(*stages):
    return drawing.draw(stages, node_history.histories(stages))


def shape(rows):
    """The names in rows; a lane as the pair that it joins."""
    return [
        [(entry.source, entry.target) if isinstance(entry, Lane) else entry.name for entry in row]
        for row in rows
    ]


# Layers


@pytest.mark.parametrize(
    "waits, boxes, expected",
    [
        ({"a": "", "b": "a", "c": "b"}, "abc", [["a"], ["b"], ["c"]]),
        # A long edge has a lane in each row that it passes
        ({"a": "", "b": "a", "c": "ab"}, "abc", [["a"], ["a -> c", "b"], ["c"]]),
        # Edges from outside have lanes down to their box
        (
            {"a": "", "b": "af", "f": "", "away": "a"},
            "ab",
            [[f"{OUTSIDE} -> b", "a"], [f"a -> {OUTSIDE}", "b"]],
        ),
    ],
)
def test_a_row_holds_what_the_row_below_waits_for_and_lanes(waits, boxes, expected):
    waiting = Waits({name: set(before) for name, before in waits.items()})
    rows = drawing.rows([Box(name, name) for name in boxes], waiting)
    assert [
        sorted(" -> ".join(entry) if isinstance(entry, tuple) else entry for entry in row)
        for row in shape(rows)
    ] == expected


def test_the_longest_edges_have_no_lanes_if_there_would_be_too_many(monkeypatch):
    monkeypatch.setattr(drawing, "MOST_LANES", 2)
    level = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}
    edges = [("a", "e"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a")]
    assert drawing.with_lanes(edges, level) == edges[1:]
    assert drawing.with_lanes(edges[1:], level) == edges[1:]


@pytest.mark.parametrize(
    "parents, levels",
    [
        # What is used late stands just above its user
        (
            {"a": "", "k": "", "b": "a", "c": "b", "d": "ck"},
            {"a": 0, "b": 1, "c": 2, "k": 2, "d": 3},
        ),
        # A box with more parents than users stays below its parents
        (
            {"a": "", "b": "", "s": "ab", "c": "a", "d": "c", "e": "ds"},
            {"a": 0, "b": 0, "s": 1, "c": 1, "d": 2, "e": 3},
        ),
    ],
)
def test_levels(parents, levels):
    assert drawing.levels({name: list(above) for name, above in parents.items()}) == levels


def test_a_cycle_is_laid_out_all_the_same():
    boxes = [Box("a", "a"), Box("b", "b")]
    rows = drawing.rows(boxes, Waits({"a": {"b"}, "b": {"a"}}))
    assert sorted(itertools.chain(*shape(rows))) == ["a", "b"]


# Whole drawings


def outline(entry, depth=0):
    """A line for each box with its label, then its rows; the order within a row is igraph's."""
    indent = "  " * depth
    if isinstance(entry, Lane):
        return f"{indent}lane {entry.source} -> {entry.target}"
    lines = [
        f"{indent}{entry.name} ({entry.label}){' framed' * (entry.framed and bool(entry.rows))}"
    ]
    for number, row in enumerate(entry.rows):
        inner = sorted(outline(inside, depth + 2) for inside in row)
        lines += [f"{indent}  row {number}", *inner]
    return "\n".join(lines)


def walk(forward, added="", derived="", updates=False):
    """A walk of a graph whose nodes have gradients: `a > g/a, b > g/b`."""
    before, new = graph(forward), graph(added)
    pairs = [pair.split(" > ") for pair in derived.split(", ") if pair]
    gradients = tuple(Gradient(name, "Op", "_Grad", (made,), None) for name, made in pairs)
    updating = tuple(node.name for node in new) if updates else ()
    backward = a_backward(None, (*before, *new), gradients=gradients, update_nodes=updating)
    return a_frontend(None, before), backward


DRAWINGS = {
    "a layer, its gradients and its updates": STAGES,
    "gradients before the placement": STAGES[:2],
    "what belongs to no layer, and lanes between what is beside": walk(
        "a/x; b/y(a/x); c/z(a/x,b/y)",
        "g/lone; g/other(g/lone); g/z; g/y(g/z); g/x(g/y,g/z)",
        "a/x > g/x, b/y > g/y, c/z > g/z",
    ),
    "no lane beside a long edge of which an end has no gradient": walk(
        "x; y(x); z(x,y)", "g/z; g/y(g/z)", "y > g/y, z > g/z"
    ),
    "a scope around nearly everything is opened": walk(
        "model/a/0; model/a/1; model/a/2; model/b/0; model/b/1; model/b/2; x"
    ),
    "two scopes of updates with one name": walk(
        "a; b; c",
        "t/slots/a0(a); t/slots/a1(a); t/slots/a2(a); "
        "t/slots/b0(b); t/slots/b1(b); t/slots/b2(b); t/other(c)",
        updates=True,
    ),
    "a scope of three nodes out of four keeps its box": walk("a/0; a/1; a/2; x"),
}


def test_a_drawing_holds_every_box_and_lane_in_its_row_and_nothing_else():
    parts = []
    for title, stages in DRAWINGS.items():
        tracks = drawn(*stages).tracks
        parts.append("\n".join([f"==== {title}", *map(outline, tracks), ""]))
        names = [name for track in tracks for name in nodes_of(track)]
        assert len(names) == len(set(names)) == len(node_history.histories(stages))
        assert len({len(track.rows) for track in tracks}) == 1
    approve("report-drawings.txt", "\n".join(parts))


def test_many_boxes_beside_each_other_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(drawing, "CROWD", 4)
    many = drawn(*walk("a; b(a); c(b); d(c); e(d)")[:1]).tracks[0]
    few = drawn(*walk("a; b(a); c(b); d(c)")[:1]).tracks[0]
    approve("report-crowds.txt", "\n".join(map(outline, (many, few))))


# The place of what is in no layer


def named(kinds):
    """Histories of nodes of these kinds."""
    return {name: NodeHistory(name, "Op", kind, None, (), (), ()) for name, kind in kinds.items()}


def test_an_update_stands_beside_the_one_layer_whose_variable_it_changes():
    waits = Waits(
        {"a": set(), "b": {"a"}, "up": {"b"}, "both": {"a", "b"}, "after": {"both", "up"}}
    )
    kinds = {name: "update" if len(name) > 1 else "forward" for name in waits}
    homes = {name: (drawing.TRACKS[kind], (name,)) for name, kind in kinds.items()}
    within = Waits({"a": set(), "b": {"a"}, "up": set(), "both": set(), "after": {"both", "up"}})
    boxes = (Box("a", "a"), Box("b", "b"))
    anchors = drawing.anchors_of(waits, within, homes, named(kinds), boxes)
    assert anchors == {"a": "a", "b": "b", "up": "b"}


def test_tensors_that_a_function_captured_have_one_scope():
    waits = Waits({"x": set(), "12": set(), "13": set()})
    homes = drawing.homes_of(waits, named(dict.fromkeys(waits, "forward")), ())
    assert homes["12"] == (0, ("captured tensors", "12"))
    assert (homes["x"], homes["13"][1][0]) == ((0, ("x",)), "captured tensors")


def test_what_the_runtime_made_lives_where_what_it_took_over_or_its_user_lives():
    runtimes = dict.fromkeys(("_arg", "made", "alone"), "runtime")
    histories = named({"s/x": "forward", "t/y": "gradient", **runtimes})
    waits = Waits(
        {"s/x": {"_arg"}, "t/y": {"made"}, "_arg": set(), "made": {"s/x"}, "alone": set()}
    )
    placement = a_placement(None, (), passes=(one_pass("feeds: +_arg, t/y removed _arg"),))
    assert drawing.homes_of(waits, histories, (placement,)) == {
        "s/x": (0, ("s", "x")),
        "t/y": (1, ("t", "y")),
        "_arg": (1, ("t", "_arg")),
        "made": (1, ("t", "made")),
        "alone": (0, ("alone",)),
    }


def test_what_an_expanded_call_was_made_into_lives_in_the_scope_of_the_call():
    inside = ("loop/enter/_1", "loop/body/_2/mul", "Func/loop/output/_3", "loops/x")
    waits = Waits({"loop": set(), **{name: {"y"} for name in inside}, "y": set()})
    histories = named({"loop": "gradient", **dict.fromkeys(inside, "runtime"), "y": "forward"})
    homes = drawing.homes_of(waits, histories, ())
    assert [homes[name] for name in waits] == [
        (1, ("loop",)),
        (1, ("loop", "enter", "_1")),
        (1, ("loop", "body", "_2", "mul")),
        (1, ("loop", "output", "_3")),
        (0, ("loops/x",)),
        (0, ("y",)),
    ]
    # A node that still runs is not expanded: _1 sends its value
    stage = a_placement(None, graph("loop; loop/enter/_1=_Send"))
    homes = drawing.homes_of(waits, histories, [stage])
    assert homes["loop/enter/_1"] == (0, ("loop/enter/_1",))


NAMES = st.lists(
    st.text(st.sampled_from("ab/<&é "), min_size=1, max_size=6)
    .map(lambda text: text.strip("/ ").replace("//", "/"))
    .filter(bool),
    unique=True,
    min_size=1,
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=30)
@given(NAMES, st.data())
def test_any_graph_has_each_node_once_whatever_the_names(names, data):
    nodes = tuple(
        Node(name, "Op", tuple(data.draw(st.lists(st.sampled_from(names), max_size=3))))
        for name in names
    )
    graph = drawn(a_frontend(nodes=nodes))
    assert sorted(name for track in graph.tracks for name in nodes_of(track)) == sorted(names)
