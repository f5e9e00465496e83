"""Rails: whole drawings, and what holds for the drawing of any graph."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.records.graph import Node
from tflab.views import ascii_graph


def node(name: str, *inputs: str, control: tuple[str, ...] = ()) -> Node:
    return Node(name, "Op", inputs, control)


def names(nodes) -> list[str]:
    return [node.name for node in nodes]


# Drawings


def drawing(*nodes: Node) -> str:
    """Rails with the names beside them, below an empty line so that a literal lines up."""
    rows = zip(ascii_graph.draw(nodes), nodes, strict=True)
    return "".join(f"\n{row} {node.name}" for row, node in rows)


X, Y, Z = node("x"), node("y"), node("z")


def test_a_product_of_two_values_is_drawn():
    assert drawing(X, Y, node("mul", "x", "y")) == (
        """
●   x
│ ● y
●─╯ mul"""
    )


def test_a_chain_stays_on_one_rail():
    assert drawing(X, node("a", "x"), node("b", "a")) == (
        """
● x
● a
● b"""
    )


def test_a_rail_ends_at_its_last_use():
    assert drawing(X, node("square", "x"), node("cube", "square", "x"), node("out", "cube")) == (
        """
●   x
├─● square
●─╯ cube
●   out"""
    )


def test_a_line_leaves_alone_the_rails_that_it_crosses():
    assert drawing(X, Y, Z, node("x+z", "x", "z"), node("out", "x+z", "y")) == (
        """
●     x
│ ●   y
│ │ ● z
●─│─╯ x+z
●─╯   out"""
    )


def test_every_kind_of_joint_tells_whether_its_rail_runs_on():
    assert drawing(
        *(X, Y, Z),
        node("a", "x", "y", "z"),
        node("b", "x", "y", "z"),
        node("c", "y", "a"),
        node("d", "b", "c", "x"),
    ) == (
        """
●       x
│ ●     y
│ │ ●   z
├─┼─┼─● a
├─┼─● │ b
│ ●─│─╯ c
●─┴─╯   d"""
    )


def test_outputs_of_one_node_share_its_rail_and_control_inputs_count():
    assert drawing(
        node("split"),
        node("a", "split:1"),
        node("b", "split", "split:2"),
        node("end", control=("a", "b")),
    ) == (
        """
●   split
├─● a
● │ b
●─╯ end"""
    )


def test_a_free_rail_is_used_again():
    assert drawing(X, Y, node("mul", "x", "y"), Z, node("add", "mul", "z")) == (
        """
●   x
│ ● y
●─╯ mul
│ ● z
●─╯ add"""
    )


def test_a_node_below_a_value_that_nobody_uses_stands_beside_it():
    assert drawing(X, Y, Z) == (
        """
●   x
  ● y
●   z"""
    )


def test_the_way_back_of_a_loop_is_not_drawn():
    loop = [node("enter"), node("merge", "enter", "next"), node("next", "merge")]
    assert drawing(*loop) == (
        """
● enter
● merge
● next"""
    )


def test_an_input_from_outside_the_drawing_has_no_rail():
    assert ascii_graph.draw([node("x", "elsewhere", control=("gone",))]) == ["●"]


def test_nothing_is_drawn_as_nothing():
    assert ascii_graph.draw(ascii_graph.ordered([], [])) == []


# Order


def test_what_leads_to_the_ends_comes_first():
    nodes = [node("init"), X, node("assign", "init"), Y, node("loss", "x", "y")]
    assert names(ascii_graph.ordered(nodes, ["loss"])) == ["x", "y", "loss", "init", "assign"]


def test_a_producer_stands_right_before_its_first_consumer():
    nodes = [X, Y, Z, node("a", "x", "z"), node("b", "y", "a")]
    assert names(ascii_graph.ordered(nodes, ["b"])) == ["y", "x", "z", "a", "b"]


def test_an_end_that_is_not_in_the_graph_is_ignored():
    assert names(ascii_graph.ordered([X], ["gone"])) == ["x"]


# Any graph


@st.composite
def acyclic(draw) -> list[Node]:
    """Some nodes that take from earlier ones, shuffled."""
    nodes = [X]
    for index in range(draw(st.integers(0, 12))):
        earlier = st.lists(st.sampled_from(names(nodes)), max_size=3)
        nodes.append(node(f"n{index}", *draw(earlier), control=tuple(draw(earlier))))
    return draw(st.permutations(nodes))


@st.composite
def any_graph(draw) -> list[Node]:
    """Nodes that take from any others: from themselves, in circles, from nowhere."""
    labels = [f"n{index}" for index in range(draw(st.integers(0, 8)))]
    inputs = st.lists(st.sampled_from([*labels, "elsewhere"]), max_size=3)
    return [node(label, *draw(inputs)) for label in labels]


def edges(nodes) -> set[tuple[str, str]]:
    return {(parent, each.name) for each in nodes for parent in ascii_graph.parents(each)}


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
def test_producers_come_before_consumers_and_every_node_comes_once(nodes, from_end):
    order = names(ascii_graph.ordered(nodes, ["n0"] if from_end else []))
    assert sorted(order) == sorted(names(nodes))
    assert all(order.index(parent) < order.index(child) for parent, child in edges(nodes))


@settings(max_examples=25)
@given(acyclic())
def test_the_edges_can_be_read_back_from_the_drawing(nodes):
    order = ascii_graph.ordered(nodes, ["n0"])
    assert read_back(ascii_graph.draw(order), names(order)) == edges(nodes)


@settings(max_examples=25)
@given(acyclic())
def test_a_drawing_has_a_row_and_a_dot_for_each_node_and_all_rows_are_equally_long(nodes):
    rows = ascii_graph.draw(ascii_graph.ordered(nodes, ["n0"]))
    assert [row.count("●") for row in rows] == [1] * len(nodes)
    assert len(set(map(len, rows))) == 1


@settings(max_examples=25)
@given(any_graph())
def test_a_circle_is_ordered_with_every_node_once_and_drawn(nodes):
    order = ascii_graph.ordered(nodes, ["n0"])
    assert sorted(names(order)) == names(nodes)
    assert [row.count("●") for row in ascii_graph.draw(order)] == [1] * len(nodes)


@pytest.mark.slow
def test_a_deep_graph_is_drawn_without_recursion_and_in_linear_time():
    chain = [X, *(node(f"n{i}", f"n{i - 1}" if i else "x") for i in range(20_000))]
    start = time.process_time()
    order = ascii_graph.ordered(chain[::-1], ["n19999"])
    assert order == chain
    assert ascii_graph.draw(order) == ["●"] * len(chain)
    # A step that looks through its whole stack takes 10 s, this one a third of a second.
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("rail", "ends", "sign"),
    [
        *((2, True, "╰"), (2, False, "├"), (5, True, "╯"), (5, False, "┤")),
        *((3, True, "┴"), (3, False, "┼")),
    ],
)
def test_a_rail_joins_a_line_at_its_ends_or_between_them(rail, ends, sign):
    assert ascii_graph.joint(rail, 2, 5, ends) == sign
