"""Scopes: the tree of names, and its lines as they are drawn."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.records.graph import Node
from tflab.views import name_scopes

NODES = [
    Node("x", "Placeholder"),
    Node("conv1/kernel", "VarHandleOp"),
    Node("conv1/kernel/Assign", "AssignVariableOp"),
    Node("conv1/Conv2D", "Conv2D"),
    Node("loss", "Mean"),
    Node("conv1/Const", "Const"),
    Node("loss/Const", "Const"),
]


def drawn(nodes, opened: bool = False) -> list[str]:
    lines = name_scopes.lines(name_scopes.tree(nodes), opened)
    return [f"{line.branches}{line.label} | {line.count} | {line.what}" for line in lines]


def test_scopes_are_closed_and_count_what_is_in_them():
    assert drawn(NODES) == [
        "├─ x | 1 | Placeholder",
        "├─ conv1 | 4 | VarHandleOp, AssignVariableOp, Conv2D, Const",
        "╰─ loss | 2 | Mean, Const",
    ]


def test_opened_scopes_show_their_children_at_all_depths():
    assert drawn(NODES, opened=True) == [
        "├─ x | 1 | Placeholder",
        "├─ conv1 | 4 | VarHandleOp, AssignVariableOp, Conv2D, Const",
        "│  ├─ kernel | 2 | VarHandleOp, AssignVariableOp",
        "│  │  ╰─ Assign | 1 | AssignVariableOp",
        "│  ├─ Conv2D | 1 | Conv2D",
        "│  ╰─ Const | 1 | Const",
        "╰─ loss | 2 | Mean, Const",
        "   ╰─ Const | 1 | Const",
    ]


BLOCKS = [
    Node(f"block_{number}/{name}", op)
    for number in range(1, 97)
    for name, op in (
        ("kernel", "VarHandleOp"),
        ("MatMul", "MatMul"),
        *([("Relu", "Relu")] if number != 51 else [("drop/Mul", "Mul"), ("drop/Cast", "Cast")]),
    )
]


def test_scopes_that_are_numbered_alike_are_one_line_and_one_that_differs_another():
    lines = list(name_scopes.lines(name_scopes.tree([NODES[0], *BLOCKS]), most=40))
    assert [(line.branches + line.label, line.counted, line.what) for line in lines] == [
        ("├─ x", "1", "Placeholder"),
        ("├─ block_1 ... block_96 (95 alike)", "3 each", "VarHandleOp, MatMul, Relu"),
        ("╰─ block_51", "4", "VarHandleOp, MatMul, Mul, Cast"),
    ]


def test_no_more_children_than_wanted_are_listed():
    nodes = [Node("n" + "x" * length, "Op") for length in range(6)]
    lines = list(name_scopes.lines(name_scopes.tree(nodes), most=3))
    assert [(line.branches + line.label, line.counted) for line in lines] == [
        ("├─ n", "1"),
        ("├─ nx", "1"),
        ("├─ nxx", "1"),
        ("╰─ ... and 3 more", "3"),
    ]
    assert len(drawn(nodes)) == 6


def test_a_line_keeps_the_first_node_of_its_scope():
    lines = name_scopes.lines(name_scopes.tree(NODES))
    assert [line.node.name for line in lines] == ["x", "conv1/kernel", "loss"]


def test_a_graph_without_nodes_has_no_lines():
    assert drawn([]) == []


def test_types_stand_in_order_of_appearance_with_their_counts():
    ops = [Node("a", "Conv2D"), Node("b", "Const"), Node("c", "BiasAdd"), Node("d", "Const")]
    assert name_scopes.kinds(ops) == "Conv2D, 2 Const, BiasAdd"


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@settings(max_examples=30)
@given(st.lists(PATHS, unique=True))
def test_a_tree_holds_every_node_once(names):
    nodes = [Node(name, "Op") for name in names]
    root = name_scopes.tree(nodes)
    assert sorted(node.name for node in root.nodes()) == sorted(names)
    assert sum(line.count for line in name_scopes.lines(root)) == len(names)
    assert sum(line.count for line in name_scopes.lines(root, most=1)) == len(names)


@settings(max_examples=30)
@given(st.lists(PATHS, unique=True))
def test_opened_everywhere_the_tree_shows_every_node_under_its_own_label(names):
    root = name_scopes.tree([Node(name, "Op") for name in names])
    shown = [(line.label, line.node.name) for line in name_scopes.lines(root, opened=True)]
    assert {(name.rpartition("/")[2], name) for name in names} <= set(shown)
