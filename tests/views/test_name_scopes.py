"""Scopes: the tree of names, and its lines as they are drawn."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.records.graph import Node
from tflab.views import frontend
from tflab.views.words import counted

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
    lines = frontend.scopes([(node.name.split("/"), node) for node in nodes], opened)
    return [f"{text} | {len(inside)} | {counted(n.op for n in inside)}" for text, inside in lines]


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
    nodes = [(name.split("/"), Node(name, "Op")) for name in names]
    lines = frontend.scopes(nodes)
    assert sorted(node.name for _, inside in lines for node in inside) == sorted(names)
    opened = [text.rpartition(" ")[2] for text, _ in frontend.scopes(nodes, opened=True)]
    paths = {name[: at + 1] for name in names for at in range(0, len(name), 2)}
    assert sorted(opened) == sorted(path.rpartition("/")[2] for path in paths)
