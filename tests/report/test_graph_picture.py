"""The picture of a graph for paper, read back from the figure."""

import itertools

import pytest

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


def test_every_edge_between_boxes_is_an_arrow_and_each_pair_has_one(axes):
    arrows = [patch for patch in axes.patches if not hasattr(patch, "get_width")]
    # x to layer and to its gradients, layer to loss, gradients and updates, gradients to updates
    assert len(arrows) == 6


def test_it_says_how_many_nodes_are_not_in_the_graph_that_runs():
    figure = figure_of(STAGES)
    assert title(figure) == "g: 11 nodes and what became of them"
    assert caption(figure) == (
        "Scopes are closed, with the number of their nodes. 2 nodes are not in the graph that "
        "runs: a box of which none is left is dashed."
    )
    assert caption(figure_of(LONGER[:2])) == "Scopes are closed, with the number of their nodes."
