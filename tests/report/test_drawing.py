"""Drawings: order and place of boxes, from records alone."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.follow import node_history
from tflab.records import Backward, Fate, Frontend, Gradient, Node, Pass, Placement, Taken
from tflab.report import drawing, layering, panel, pass_log
from tflab.report.drawn import OUTSIDE, Box, Lane, nodes_of

X = Node("x", "Placeholder")
KERNEL = Node("layer/kernel", "VarHandleOp")
READ = Node("layer/MatMul/ReadVariableOp", "ReadVariableOp", ("layer/kernel",))
MATMUL = Node("layer/MatMul", "MatMul", ("x", "layer/MatMul/ReadVariableOp"))
RELU = Node("layer/Relu", "Relu", ("layer/MatMul",))
LOSS = Node("loss", "Mean", ("layer/Relu",))
FORWARD = (X, KERNEL, READ, MATMUL, RELU, LOSS)

SEED = Node("gradients/ones", "Fill")
RELU_GRAD = Node("gradients/layer/Relu_grad", "ReluGrad", ("gradients/ones", "layer/Relu"))
WEIGHTS = Node("gradients/layer/MatMul_grad", "MatMul", ("x", "gradients/layer/Relu_grad"))
UPDATE = Node("train/update", "Apply", ("layer/kernel", "gradients/layer/MatMul_grad"))
TRAIN = Node("train", "NoOp", (), ("train/update",))
WHOLE = (*FORWARD, SEED, RELU_GRAD, WEIGHTS, UPDATE, TRAIN)

ARG = Node("_arg_x", "_Arg")
FUSED = Node("layer/Relu", "_FusedMatMul", ("_arg_x", "layer/MatMul/ReadVariableOp"))

FRONTEND = Frontend(program=None, nodes=FORWARD)
BACKWARD = Backward(
    program=None,
    nodes=WHOLE,
    added_nodes=tuple(node.name for node in WHOLE[len(FORWARD) :]),
    gradients=(
        Gradient("layer/Relu", "Relu", "_ReluGrad", ("gradients/layer/Relu_grad",)),
        Gradient("layer/MatMul", "MatMul", "_MatMulGrad", ("gradients/layer/MatMul_grad",)),
    ),
    update_nodes=("train/update", "train"),
    shared_nodes=("gradients/ones",),
    variable_count=1,
)
PLACEMENT = Placement(
    program=None,
    nodes=(ARG, KERNEL, READ, FUSED),
    user_nodes=WHOLE,
    passes=(
        Pass("layout", 0, 11, 11),
        Pass(
            "remapper",
            0,
            11,
            10,
            removed=("layer/MatMul",),
            taken=(Taken("layer/MatMul", "fused", "layer/Relu"),),
            definitions=(FUSED,),
        ),
        Pass(
            "feeds_and_fetches",
            None,
            10,
            10,
            added=("_arg_x",),
            removed=("x",),
            taken=(Taken("x", "removed", "_arg_x"),),
            definitions=(ARG,),
        ),
    ),
    ledger=(Fate("layer/MatMul", "fused", "remapper", "layer/Relu"),),
)
STAGES = (FRONTEND, BACKWARD, PLACEMENT)


def drawn(*stages):
    return drawing.draw(stages, node_history.lives(stages))


def shape(rows):
    """The names in rows; a lane as the pair that it joins."""
    return [
        [(entry.source, entry.target) if isinstance(entry, Lane) else entry.name for entry in row]
        for row in rows
    ]


def test_a_row_holds_what_the_row_below_waits_for():
    boxes = [Box(name, name) for name in "abc"]
    waits = {"a": set(), "b": {"a"}, "c": {"b"}}
    assert shape(layering.rows(boxes, waits)) == [["a"], ["b"], ["c"]]


def test_a_long_edge_has_a_lane_in_each_row_that_it_passes():
    boxes = [Box(name, name) for name in "abc"]
    rows = layering.rows(boxes, {"a": set(), "b": {"a"}, "c": {"a", "b"}})
    assert [sorted(map(str, row)) for row in shape(rows)] == [["a"], ["('a', 'c')", "b"], ["c"]]


def test_what_is_used_late_stands_just_above_its_user():
    parents = {"a": [], "constant": [], "b": ["a"], "c": ["b"], "d": ["c", "constant"]}
    assert layering.levels(parents) == {"a": 0, "b": 1, "c": 2, "constant": 2, "d": 3}


def test_edges_from_outside_have_lanes_down_to_their_box():
    boxes = [Box("a", "a"), Box("b", "b")]
    waits = {"a": set(), "b": {"a", "far"}, "far": set(), "away": {"a"}}
    rows = shape(layering.rows(boxes, waits))
    assert sorted(map(str, rows[0])) == [f"('{OUTSIDE}', 'b')", "a"]
    assert sorted(map(str, rows[1])) == [f"('a', '{OUTSIDE}')", "b"]


def test_a_cycle_is_laid_out_all_the_same():
    boxes = [Box("a", "a"), Box("b", "b")]
    rows = layering.rows(boxes, {"a": {"b"}, "b": {"a"}})
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
    found = drawn(*STAGES)
    names = [name for track in found.tracks for name in nodes_of(track)]
    assert sorted(names) == sorted({node.name for node in WHOLE} | {"_arg_x"})


def test_a_state_for_each_pass_that_changed_something():
    states = pass_log.states(STAGES)
    assert [(state.stage, state.title, state.place) for state in states] == [
        ("frontend", "Written", None),
        ("backward", "With gradients", None),
        ("placement", "remapper", 1),
        ("placement", "feeds_and_fetches", 2),
    ]
    assert [len(graph) for graph in pass_log.replay(states)] == [6, 11, 10, 10]
    assert states[2].touched == ("layer/Relu",)


def test_the_changes_count_nodes_before_and_after():
    rows = [cells[:3] for cells in pass_log.changes(pass_log.states(STAGES)).cells()]
    assert rows == [
        ("Written", "0", "6"),
        ("With gradients", "6", "11"),
        ("remapper", "11", "10"),
        ("feeds_and_fetches", "10", "10"),
    ]


def test_the_panel_links_to_the_pass_and_to_the_node_that_took_over():
    states = pass_log.states(STAGES)
    placed = panel.sections(node_history.lives(STAGES)["layer/MatMul"], states)[2]
    assert (placed.title, placed.state) == ("Placed", 2)
    assert placed.lines[0] == (
        panel.Moment(2, "remapper"),
        ": fused",
        " into ",
        panel.Link("layer/Relu", "layer/Relu"),
    )


NAMES = st.lists(
    st.text(st.sampled_from("ab/<&é "), min_size=1, max_size=6)
    .map(lambda text: text.strip("/ ").replace("//", "/"))
    .filter(bool),
    unique=True,
    min_size=1,
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(NAMES, st.data())
def test_any_graph_has_each_node_once_whatever_the_names(names, data):
    nodes = tuple(
        Node(name, "Op", tuple(data.draw(st.lists(st.sampled_from(names), max_size=3))))
        for name in names
    )
    found = drawn(Frontend(program=None, nodes=nodes))
    assert sorted(name for track in found.tracks for name in nodes_of(track)) == sorted(names)


def test_a_thousand_nodes_all_have_a_place():
    nodes = tuple(
        Node(f"block{i // 10}/op{i}", "Op", (f"block{(i - 1) // 10}/op{i - 1}",) if i else ())
        for i in range(1000)
    )
    forward = drawn(Frontend(program=None, nodes=nodes)).tracks[0]
    assert len(nodes_of(forward)) == 1000
    assert len(forward.rows) == 101  # a scope a row, and the row of what belongs to no layer
