"""Drawings: order and place of boxes, from records alone."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.layer import BACKWARD, FRONTEND, STAGES, WHOLE
from tflab.follow import node_history
from tflab.records.graph import Node
from tflab.records.node_history import NodeHistory
from tflab.records.placed import Pass, Takeover
from tflab.records.stages import Backward, Frontend, Gradient, Placement
from tflab.report import drawing, graph_states, layering, viewer_data
from tflab.report.contents import OUTSIDE, Box, Lane, nodes_of
from tflab.report.layering import Waits


def drawn(*stages):
    return drawing.draw(stages, node_history.histories(stages))


def shape(rows):
    """The names in rows; a lane as the pair that it joins."""
    return [
        [(entry.source, entry.target) if isinstance(entry, Lane) else entry.name for entry in row]
        for row in rows
    ]


def test_a_row_holds_what_the_row_below_waits_for():
    boxes = [Box(name, name) for name in "abc"]
    waits = {"a": set(), "b": {"a"}, "c": {"b"}}
    assert shape(layering.rows(boxes, Waits(waits))) == [["a"], ["b"], ["c"]]


def test_a_long_edge_has_a_lane_in_each_row_that_it_passes():
    boxes = [Box(name, name) for name in "abc"]
    rows = layering.rows(boxes, Waits({"a": set(), "b": {"a"}, "c": {"a", "b"}}))
    assert [sorted(map(str, row)) for row in shape(rows)] == [["a"], ["('a', 'c')", "b"], ["c"]]


def test_the_longest_edges_have_no_lanes_if_there_would_be_too_many(monkeypatch):
    monkeypatch.setattr(layering, "MOST_LANES", 2)
    level = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}
    edges = [("a", "e"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a")]
    assert layering.with_lanes(edges, level) == edges[1:]
    assert layering.with_lanes(edges[1:], level) == edges[1:]


def test_what_is_used_late_stands_just_above_its_user():
    parents = {"a": [], "constant": [], "b": ["a"], "c": ["b"], "d": ["c", "constant"]}
    assert layering.levels(parents) == {"a": 0, "b": 1, "c": 2, "constant": 2, "d": 3}


def test_edges_from_outside_have_lanes_down_to_their_box():
    boxes = [Box("a", "a"), Box("b", "b")]
    waits = {"a": set(), "b": {"a", "far"}, "far": set(), "away": {"a"}}
    rows = shape(layering.rows(boxes, Waits(waits)))
    assert sorted(map(str, rows[0])) == [f"('{OUTSIDE}', 'b')", "a"]
    assert sorted(map(str, rows[1])) == [f"('a', '{OUTSIDE}')", "b"]


def test_a_cycle_is_laid_out_all_the_same():
    boxes = [Box("a", "a"), Box("b", "b")]
    rows = layering.rows(boxes, Waits({"a": {"b"}, "b": {"a"}}))
    assert sorted(itertools.chain(*shape(rows))) == ["a", "b"]


def test_a_scope_is_a_box_and_a_small_one_gives_way_to_its_nodes():
    forward = drawn(FRONTEND).tracks[0]
    assert shape(forward.rows) == [[], ["x"], ["layer/"], ["loss"]]
    layer = forward.rows[2][0]
    labels = {box.name: box.label for row in layer.rows for box in row if isinstance(box, Box)}
    assert labels == {
        "layer/kernel": "kernel",
        "layer/MatMul/ReadVariableOp": "MatMul/ReadVariableOp",
        "layer/MatMul": "MatMul",
        "layer/Relu": "Relu",
    }


def outline(box):
    """A box as its name, its label and its rows; the order within a row is igraph's."""
    if isinstance(box, Lane):
        return (box.source, box.target)
    rows = [sorted(map(outline, row), key=str) for row in box.rows]
    return (box.name, box.label, *rows) if rows else (box.name, box.label)


def test_a_drawing_holds_every_box_and_lane_in_its_row_and_nothing_else():
    forward, backward, update = drawn(*STAGES).tracks
    assert outline(forward) == (
        "forward/",
        "Forward",
        [],
        [("_arg_x", "_arg_x"), ("x", "x")],
        [
            (
                "layer/",
                "layer",
                [
                    ("/", "layer/MatMul"),
                    ("/", "layer/Relu"),
                    ("layer/kernel", "kernel"),
                ],
                [
                    ("/", "layer/MatMul"),
                    ("/", "layer/Relu"),
                    ("layer/MatMul/ReadVariableOp", "MatMul/ReadVariableOp"),
                ],
                [
                    ("/", "layer/Relu"),
                    ("layer/MatMul", "MatMul"),
                    ("layer/MatMul/ReadVariableOp", "layer/Relu"),
                ],
                [("layer/Relu", "Relu")],
            )
        ],
        [("loss", "loss")],
    )
    assert outline(backward) == (
        "backward/",
        "Backward",
        [],
        [],
        [
            (
                "1:layer//",
                "layer gradients",
                [("gradients/layer/MatMul_grad", "layer/MatMul_grad")],
                [("gradients/layer/Relu_grad", "layer/Relu_grad")],
                [("gradients/ones", "ones")],
            )
        ],
        [],
    )
    assert outline(update) == (
        "update/",
        "Updates",
        [],
        [],
        [("2:layer//", "layer updates", [("train/update", "train/update")], [("train", "train")])],
        [],
    )
    assert [track.framed for track in (forward, backward, update)] == [False] * 3
    beside = [entry for track in (backward, update) for row in track.rows for entry in row]
    assert [entry.framed for entry in beside] == [True, True]


def test_what_belongs_to_no_layer_stands_in_a_row_above_and_lanes_join_what_is_beside():
    forward = (
        Node("a/x", "Op"),
        Node("b/y", "Op", ("a/x",)),
        Node("c/z", "Op", ("a/x", "b/y")),
    )
    added = (
        Node("g/lone", "Op"),
        Node("g/other", "Op", ("g/lone",)),
        Node("g/z", "Op"),
        Node("g/y", "Op", ("g/z",)),
        Node("g/x", "Op", ("g/y", "g/z")),
    )
    derived = tuple(
        Gradient(name, "Op", "_Grad", (f"g/{name[-1]}",)) for name in ("a/x", "b/y", "c/z")
    )
    stages = Frontend(None, forward), Backward(None, (*forward, *added), gradients=derived)
    there, back, _ = drawn(*stages).tracks
    assert outline(there)[2:] == (
        [],
        [("a/x", "a/x")],
        [("a/x", "c/z"), ("b/y", "b/y")],
        [("c/z", "c/z")],
    )
    assert outline(back)[2:] == (
        [("1:/", "", [("g/other", "other")], [("g/lone", "lone")])],
        [("g/x", "x")],
        [("g/y", "y"), ("g/z", "g/x")],
        [("g/z", "z")],
    )
    assert not back.rows[0][0].framed


def test_a_long_edge_has_no_lane_beside_it_where_an_end_has_no_gradient():
    forward = (Node("x", "Op"), Node("y", "Op", ("x",)), Node("z", "Op", ("x", "y")))
    added = (Node("g/z", "Op"), Node("g/y", "Op", ("g/z",)))
    derived = tuple(Gradient(name, "Op", "_Grad", (f"g/{name}",)) for name in "yz")
    stages = Frontend(None, forward), Backward(None, (*forward, *added), gradients=derived)
    assert outline(drawn(*stages).tracks[1])[2:] == ([], [], [("g/y", "y")], [("g/z", "z")])


def test_a_scope_around_nearly_everything_is_opened_and_its_name_stays_in_the_labels():
    nodes = [Node(f"model/{scope}/{n}", "Op") for scope in "ab" for n in range(3)]
    assert outline(drawn(Frontend(None, (*nodes, Node("x", "Op")))).tracks[0])[3:] == (
        [
            (
                f"model/{scope}/",
                f"model/{scope}",
                [(f"model/{scope}/{n}", f"{n}") for n in range(3)],
            )
            for scope in "ab"
        ]
        + [("x", "x")],
    )


def test_two_scopes_of_updates_with_one_name_say_what_they_update():
    forward = tuple(Node(name, "Op") for name in "abc")
    added = (
        *(Node(f"train/slots/{name}{n}", "Op", (name,)) for name in "ab" for n in range(3)),
        Node("train/other", "Op", ("c",)),
    )
    stages = (
        Frontend(None, forward),
        Backward(None, (*forward, *added), update_nodes=tuple(node.name for node in added)),
    )
    boxes = [box for row in drawn(*stages).tracks[2].rows for box in row]
    assert sorted(box.label for box in boxes) == ["other", "slots of a", "slots of b"]


def test_a_scope_of_three_nodes_out_of_four_keeps_its_box():
    nodes = [Node(f"a/{n}", "Op") for n in range(3)]
    assert outline(drawn(Frontend(None, (*nodes, Node("x", "Op")))).tracks[0])[3:] == (
        [("a/", "a", [("a/0", "0"), ("a/1", "1"), ("a/2", "2")]), ("x", "x")],
    )


def test_many_boxes_beside_each_other_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(drawing, "CROWD", 4)
    names = ("a", "b", "c", "d", "e")
    nodes = tuple(
        Node(name, "Op", (before,) if before else ())
        for before, name in zip(("", *names), names, strict=False)
    )
    _, _, _, *rows = outline(drawn(Frontend(None, nodes)).tracks[0])
    assert rows == [
        [("a ... c/", "a ... c", [("a", "a")], [("b", "b")], [("c", "c")])],
        [("d ... e/", "d ... e", [("d", "d")], [("e", "e")])],
    ]
    _, _, _, *rows = outline(drawn(Frontend(None, nodes[:4])).tracks[0])
    assert rows == [[(name, name)] for name in names[:4]]


def test_an_update_stands_beside_the_one_layer_whose_variable_it_changes():
    waits = Waits(
        {"a": set(), "b": {"a"}, "up": {"b"}, "both": {"a", "b"}, "after": {"both", "up"}}
    )
    kinds = {name: "update" if len(name) > 1 else "forward" for name in waits}
    histories = {
        name: NodeHistory(name, "Op", kind, None, (), (), ()) for name, kind in kinds.items()
    }
    homes = {name: (drawing.TRACKS[kind], (name,)) for name, kind in kinds.items()}
    within = Waits({"a": set(), "b": {"a"}, "up": set(), "both": set(), "after": {"both", "up"}})
    boxes = (Box("a", "a"), Box("b", "b"))
    assert drawing.anchors_of(waits, within, homes, histories, boxes) == {
        "a": "a",
        "b": "b",
        "up": "b",
    }


def test_what_the_runtime_made_lives_where_what_it_took_over_or_its_user_lives():
    nodes = ("s/x", "t/y", "_arg", "made", "alone")
    kinds = ("forward", "gradient", "runtime", "runtime", "runtime")
    histories = {
        name: NodeHistory(name, "Op", kind, None, (), (), ())
        for name, kind in zip(nodes, kinds, strict=True)
    }
    waits = Waits(
        {"s/x": {"_arg"}, "t/y": {"made"}, "_arg": set(), "made": {"s/x"}, "alone": set()}
    )
    step = Pass("feeds", None, 1, 1, added=("_arg",), taken=(Takeover("t/y", "removed", "_arg"),))
    placement = Placement(None, (), passes=(step,))
    assert drawing.homes_of(waits, histories, (placement,)) == {
        "s/x": (0, ("s", "x")),
        "t/y": (1, ("t", "y")),
        "_arg": (1, ("t", "_arg")),
        "made": (1, ("t", "made")),
        "alone": (0, ("alone",)),
    }


def test_what_an_expanded_call_was_made_into_lives_in_the_scope_of_the_call():
    names = ("loop", "loop/enter/_1", "loop/body/_2/mul", "Func/loop/output/_3", "loops/x", "y")
    kinds = ("gradient", *["runtime"] * 4, "forward")
    waits = Waits(dict(zip(names, (set(), *({"y"},) * 4, set()), strict=True)))
    histories = {
        name: NodeHistory(name, "Op", kind, None, (), (), ())
        for name, kind in zip(names, kinds, strict=True)
    }
    homes = drawing.homes_of(waits, histories, ())
    assert [homes[name] for name in names] == [
        (1, ("loop",)),
        (1, ("loop", "enter", "_1")),
        (1, ("loop", "body", "_2", "mul")),
        (1, ("loop", "output", "_3")),
        (0, ("loops/x",)),
        (0, ("y",)),
    ]
    # A node that still runs is not expanded: _1 sends its value
    stage = Placement(None, (Node("loop", "Op"), Node("loop/enter/_1", "_Send")))
    homes = drawing.homes_of(waits, histories, [stage])
    assert homes["loop/enter/_1"] == (0, ("loop/enter/_1",))


def test_two_chains_that_need_not_cross_do_not():
    boxes = [Box(name, name) for name in ("a1", "a2", "b2", "b1")]
    waits = {"a1": set(), "a2": set(), "b2": {"a2"}, "b1": {"a1"}}
    rows = shape(layering.rows(boxes, Waits(waits)))
    upper, lower = rows
    assert [name[1] for name in upper] == [name[1] for name in lower]


def test_a_box_with_more_parents_than_users_stays_below_its_parents():
    parents = {"a": [], "b": [], "sum": ["a", "b"], "c": ["a"], "d": ["c"], "end": ["d", "sum"]}
    assert layering.levels(parents) == {"a": 0, "b": 0, "sum": 1, "c": 1, "d": 2, "end": 3}


def test_gates_are_where_something_comes_in_or_leaves():
    boxes = [Box(name, name) for name in "abc"]
    waits = {"a": {"far"}, "b": {"a"}, "c": {"b"}, "far": set(), "away": {"a", "c"}, "on": {"away"}}
    assert layering.crossings(boxes, Waits(waits)) == [
        (OUTSIDE, "a"),
        ("a", layering.OUTSIDE_BELOW),
        ("c", layering.OUTSIDE_BELOW),
    ]


def test_gradients_stand_beside_their_layer_and_flow_up():
    forward, backward, _ = drawn(FRONTEND, BACKWARD).tracks
    assert [len(row) for row in backward.rows] == [0, 0, 1, 0]
    (beside,) = backward.rows[2]
    assert set(nodes_of(beside)) == {
        "gradients/ones",
        "gradients/layer/Relu_grad",
        "gradients/layer/MatMul_grad",
    }
    assert [row for row in map(nodes_of, map(one_box, beside.rows)) if row] == [
        ["gradients/layer/MatMul_grad"],
        ["gradients/layer/Relu_grad"],
        ["gradients/ones"],
    ]
    assert len(forward.rows) == len(backward.rows)


def one_box(row):
    return Box("row/", "", (tuple(entry for entry in row if isinstance(entry, Box)),))


def test_updates_stand_beside_their_variable():
    update = drawn(FRONTEND, BACKWARD).tracks[2]
    assert [len(row) for row in update.rows] == [0, 0, 1, 0]
    assert nodes_of(update.rows[2][0]) == ["train/update", "train"]


def test_what_the_runtime_made_stands_where_what_it_took_over_stood():
    forward = drawn(*STAGES).tracks[0]
    assert [set(row) for row in shape(forward.rows)][1] == {"x", "_arg_x"}


def test_every_node_of_every_state_has_one_place():
    graph = drawn(*STAGES)
    names = [name for track in graph.tracks for name in nodes_of(track)]
    assert sorted(names) == sorted({node.name for node in WHOLE} | {"_arg_x"})


def test_a_state_for_each_pass_that_changed_something():
    states = graph_states.states(STAGES)
    assert [(state.stage, state.title, state.place) for state in states] == [
        ("frontend", "Written", None),
        ("backward", "With gradients", None),
        ("placement", "remapper", 1),
        ("placement", "feeds_and_fetches", 2),
    ]
    assert graph_states.node_counts(states, graph_states.versions(states)) == [6, 11, 10, 10]
    assert states[2].touched == ("layer/Relu",)


def test_the_changes_count_nodes_before_and_after():
    rows = [cells[:3] for cells in graph_states.changes(graph_states.states(STAGES)).cells()]
    assert rows == [
        ("Written", "0", "6"),
        ("With gradients", "6", "11"),
        ("remapper", "11", "10"),
        ("feeds_and_fetches", "10", "10"),
    ]


def test_the_panel_links_to_the_pass_and_to_the_node_that_took_over():
    states = graph_states.states(STAGES)
    history = node_history.histories(STAGES)["layer/MatMul"]
    placed = viewer_data.sections(history, states, {"layer/Relu": 7})[2]
    assert (placed["title"], placed["state"]) == ("Placed", 2)
    assert placed["lines"][0] == [
        {"state": 2, "text": "remapper"},
        *(" (pass 2): fused", " into "),
        {"node": 7, "text": "layer/Relu"},
    ]


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
    graph = drawn(Frontend(program=None, nodes=nodes))
    assert sorted(name for track in graph.tracks for name in nodes_of(track)) == sorted(names)


def test_a_thousand_nodes_all_have_a_place():
    nodes = tuple(
        Node(f"block{i // 10}/op{i}", "Op", (f"block{(i - 1) // 10}/op{i - 1}",) if i else ())
        for i in range(1000)
    )
    forward = drawn(Frontend(program=None, nodes=nodes)).tracks[0]
    assert len(nodes_of(forward)) == 1000
    assert len(forward.rows) == 101  # a scope a row, and the row of what belongs to no layer
