"""Rails: whole drawings, and what holds for the drawing of any graph."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.graph_notation import graph
from tflab.records.graph import Node
from tflab.views import frontend

DRAWINGS = {
    "a product of two values": "x; y; mul(x,y)",
    "a chain stays on one rail": "x; a(x); b(a)",
    "a rail ends at its last use": "x; square(x); cube(square,x); out(cube)",
    "a line leaves alone the rails that it crosses": "x; y; z; x+z(x,z); out(x+z,y)",
    "every kind of joint": "x; y; z; a(x,y,z); b(x,y,z); c(y,a); d(b,c,x)",
    "outputs of one node share its rail": "split; a(split:1); b(split,split:2); end(^a,^b)",
    "a free rail is used again": "x; y; mul(x,y); z; add(mul,z)",
    "nodes that nobody uses": "x; y; z",
    "the way back of a loop": "enter; merge(enter,next); next(merge)",
    "an input from outside": "x(elsewhere,^gone)",
}


def names(nodes) -> list[str]:
    return [node.name for node in nodes]


def test_whole_drawings():
    parts = []
    for title, text in DRAWINGS.items():
        nodes = graph(text)
        rows = zip(frontend.draw(nodes), nodes, strict=True)
        parts.append("\n".join([title, *(f"{row} {node.name}" for row, node in rows), ""]))
    approve("views-rails.txt", "\n".join(parts))


@pytest.mark.parametrize(
    "text, ends, order",
    [
        ("init; x; assign(init); y; loss(x,y)", ["loss"], "x y loss init assign"),
        ("x; y; z; a(x,z); b(y,a)", ["b"], "y x z a b"),  # right before the first consumer
        ("x", ["gone"], "x"),
        ("x; a(x,b); b(a,a)", ["b"], "x a b"),  # a circle
        ("", [], ""),
    ],
)
def test_what_leads_to_the_ends_comes_first(text, ends, order):
    nodes = frontend.ordered(graph(text), ends)
    assert names(nodes) == order.split()
    assert len(frontend.draw(nodes)) == len(nodes)


# Any graph


def node(name: str, *inputs: str, control: tuple[str, ...] = ()) -> Node:
    return Node(name, "Op", inputs, control)


@st.composite
def acyclic(draw) -> list[Node]:
    """Some nodes that take from earlier ones, shuffled."""
    nodes = [node("x")]
    for index in range(draw(st.integers(0, 12))):
        earlier = st.lists(st.sampled_from(names(nodes)), max_size=3)
        nodes.append(node(f"n{index}", *draw(earlier), control=tuple(draw(earlier))))
    return draw(st.permutations(nodes))


def edges(nodes) -> set[tuple[str, str]]:
    return {(parent, each.name) for each in nodes for parent in each.waits_for}


def read_back(rows: list[str], labels: list[str]) -> set[tuple[str, str]]:
    """The edges as a reader sees them: which rail belongs to whom, and who meets it."""
    carried: dict[int, str] = {}
    seen = set()
    for row, label in zip(rows, labels, strict=True):
        for column, glyph in enumerate(row):
            if glyph in "├┼┤╰┴╯" or (glyph == "●" and column in carried):
                seen.add((carried[column], label))
            if glyph in "╰┴╯":
                del carried[column]
            if glyph in " ─":
                carried.pop(column, None)
        carried[row.index("●")] = label
    return seen


@settings(max_examples=25)
@given(acyclic(), st.booleans())
def test_the_edges_can_be_read_back_from_the_drawing(nodes, from_end):
    order = frontend.ordered(nodes, ["n0"] if from_end else [])
    assert sorted(names(order)) == sorted(names(nodes))
    places = {name: place for place, name in enumerate(names(order))}
    assert all(places[parent] < places[child] for parent, child in edges(nodes))
    rows = frontend.draw(order)
    assert [row.count("●") for row in rows] == [1] * len(nodes)
    assert len(set(map(len, rows))) == 1
    assert read_back(rows, names(order)) == edges(nodes)
