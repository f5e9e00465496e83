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
    return [f"{text} | {len(inside)} | {name_scopes.kinds(inside)}" for text, inside in lines]


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


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@settings(max_examples=30)
@given(st.lists(PATHS, unique=True))
def test_a_tree_holds_every_node_once(names):
    nodes = [Node(name, "Op") for name in names]
    root = name_scopes.tree(nodes)
    assert sorted(node.name for node in root.nodes()) == sorted(names)
    lines = name_scopes.lines(root)
    assert sorted(node.name for _, inside in lines for node in inside) == sorted(names)
    opened = name_scopes.lines(root, opened=True)
    shown = [(text.rpartition(" ")[2], inside[0].name) for text, inside in opened]
    assert {(name.rpartition("/")[2], name) for name in names} <= set(shown)
