"""The picture of a graph for paper, read back from the figure."""

import itertools

import pytest
from matplotlib.figure import Figure

from tests.pictures import caption, title
from tests.report.test_drawing import STAGES
from tests.report.test_pass_log import STAGES as LONGER
from tflab.follow import node_history
from tflab.report import drawing, graph_picture
from tflab.report.contents import DrawnGraph


def figure_of(stages):
    histories = node_history.histories(stages)
    return graph_picture.draw(
        DrawnGraph("g", drawing.draw(stages, histories), histories, {}, 16),
    )


@pytest.fixture(scope="module")
def axes():
    return figure_of(STAGES).axes[0]


def boxes(axes):
    """Label -> (left, right, row, whether it is dashed) of every box."""
    middles = {text.get_text(): text.get_position() for text in axes.texts}
    spans = {}
    for patch in axes.patches:
        if hasattr(patch, "get_width"):
            x, y = patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2
            label = next(
                words for words, place in middles.items() if place == pytest.approx((x, y))
            )
            dashed = patch.get_linestyle() != "solid" and patch.get_facecolor()[:3] == (1, 1, 1)
            spans[label] = (patch.get_x(), patch.get_x() + patch.get_width(), round(y), dashed)
    return spans


def test_scopes_are_closed_and_what_is_gone_is_dashed(axes):
    assert {label: (row, dashed) for label, (*_, row, dashed) in boxes(axes).items()} == {
        "x": (0, True),
        "layer (4)": (1, False),
        "loss": (2, False),
        "layer gradients (3)": (1, False),
        "layer updates (2)": (1, False),
    }


def test_boxes_of_a_row_do_not_overlap(axes):
    spans = sorted((row, left, right) for left, right, row, _ in boxes(axes).values())
    for (row, _, right), (next_row, left, _) in itertools.pairwise(spans):
        assert row != next_row or right < left


def sides(axes):
    """Label -> the middle of each side of a box, by the name of the side."""
    half = graph_picture.HEIGHT / graph_picture.PITCH / 2
    return {
        label: {
            "left": (left, row),
            "right": (right, row),
            "top": ((left + right) / 2, row - half),
            "foot": ((left + right) / 2, row + half),
        }
        for label, (left, right, row, _) in boxes(axes).items()
    }


def end_of(point, axes):
    """(label, side) of the box at which an arrow starts or ends."""
    return next(
        (label, side)
        for label, places in sides(axes).items()
        for side, place in places.items()
        if place == pytest.approx(point)
    )


def arrows(axes):
    """((label, side), (label, side)) of the two ends of every arrow."""
    drawn = [patch for patch in axes.patches if not hasattr(patch, "get_width")]
    assert all(patch.get_arrowstyle().arrow == "-|>" for patch in drawn)  # the head is at the end
    return [tuple(end_of(point, axes) for point in patch._posA_posB) for patch in drawn]


def test_every_edge_between_boxes_is_one_arrow_from_the_side_that_faces_the_other_box(axes):
    gradients, updates = "layer gradients (3)", "layer updates (2)"
    assert sorted(arrows(axes)) == [
        (("layer (4)", "foot"), ("loss", "top")),
        (("layer (4)", "right"), (gradients, "left")),
        (("layer (4)", "right"), (updates, "left")),
        ((gradients, "right"), (updates, "left")),
        (("x", "foot"), ("layer (4)", "top")),
        (("x", "right"), (gradients, "left")),
    ]


@pytest.mark.parametrize(
    ("source", "target", "start", "end"),
    [
        ((1, 2, 50), (1, 1, 50), (50, 1.7), (50, 1.3)),  # up, as gradients flow
        ((1, 1, 50), (1, 2, 50), (50, 1.3), (50, 1.7)),
        ((1, 1, 50), (1, 1, 90), (60, 1), (80, 1)),  # to the right in a row, and back
        ((1, 1, 90), (1, 1, 50), (80, 1), (60, 1)),
        ((2, 1, 90), (1, 2, 50), (80, 1), (60, 2)),  # to a track on the left
    ],
)
def test_an_arrow_leads_from_the_nearest_side_to_the_nearest_side(source, target, start, end):
    axes = Figure().add_subplot()
    placed = [
        graph_picture.Placed("", (), track, row, x, width=20) for track, row, x in (source, target)
    ]
    graph_picture.draw_edge(axes, *placed, {1: 1.0, 2: 2.0})
    (arrow,) = axes.patches
    assert arrow._posA_posB == [pytest.approx(start), pytest.approx(end)]


def test_it_says_how_many_nodes_are_not_in_the_graph_that_runs():
    figure = figure_of(STAGES)
    assert title(figure) == "g: 11 nodes and their fates"
    assert caption(figure) == (
        "Scopes are closed and show their number of nodes. 2 nodes are not in the graph that "
        "runs: a box with no node left is dashed."
    )
    assert caption(figure_of(LONGER[:2])) == "Scopes are closed and show their number of nodes."
