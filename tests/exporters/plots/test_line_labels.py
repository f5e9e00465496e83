"""Line labels: how they look, and where those of several lines stand, in points."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.pictures import look
from tflab.exporters.plots import label_placement, style


@pytest.fixture
def axes() -> Axes:
    """A panel of 144 points each way, from 0 to 1."""
    panel = Figure(figsize=(4, 4), dpi=100).add_axes((0.25, 0.25, 0.5, 0.5))
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1)
    return panel


def test_a_label_is_a_marker_in_the_colour_of_its_line_and_words_beside_it(axes):
    glyph = label_placement.label(axes, (0.8, 0.4), "conv1", style.GREEN, "▲")
    assert [look(text) for text in axes.texts] == [
        ("▲", (0.8, 0.4), (10, 0), "left", "center", 9.5, style.GREEN, "normal"),
        ("conv1", (0, 0.5), (13, 0), "left", "center", 9.5, "black", "normal"),
    ]
    assert axes.texts[0] is glyph
    assert axes.texts[1].xycoords is glyph
    assert [text.anncoords for text in axes.texts] == 2 * ["offset points"]
    assert [text.get_annotation_clip() for text in axes.texts] == [False, False]


def test_a_leader_is_a_thin_faint_line_without_words(axes):
    label_placement.leader(axes, (0.8, 0.4), (10, 25))
    (line,) = axes.texts
    assert (line.get_text(), line.xy, line.get_position()) == ("", (0.8, 0.4), (10, 25))
    assert (line.anncoords, line.get_annotation_clip()) == ("offset points", False)
    assert line.arrowprops == {
        "arrowstyle": "-",
        "color": style.FAINT,
        "linewidth": 0.6,
        "shrinkB": 2,
    }


def test_labels_move_apart_and_one_that_moves_more_than_three_points_gets_a_leader(axes):
    """The gap is 12.35 points; lines that end 7.35 apart move by 2.5 each."""
    far = 7.35 / 144
    near = 5.35 / 144
    for apart, moved, leaders in ((far, 2.5, 0), (near, 3.5, 2)):
        for text in [*axes.texts]:
            text.remove()
        ends = [(0.5, 0.2), (0.8, 0.2 + apart)]
        labels = [label_placement.label(axes, end, "x", style.BLUE, "●") for end in ends]
        label_placement.separate(axes, labels)
        offsets = [(10, pytest.approx(-moved)), (10, pytest.approx(moved))]
        assert [label.get_position() for label in labels] == offsets
        lines = [(text.xy, text.get_position()) for text in axes.texts if text.arrow_patch]
        assert lines == list(zip(ends, offsets, strict=True))[:leaders]


@pytest.mark.parametrize(
    ("targets", "positions"),
    [
        ([], []),
        ([3], [3]),
        ([0, 20], [0, 20]),
        ([0, 10], [0, 10]),
        ([0, 4], [-3, 7]),
        ([4, 0], [7, -3]),
        ([5, 5, 5], [-5, 5, 15]),
        ([0, 1, 40, 40, 43], [-4.5, 5.5, 31, 41, 51]),
        ([100, 4, 0], [100, 7, -3]),
    ],
)
def test_labels_move_only_as_far_as_they_have_to(targets, positions):
    assert label_placement.spread_positions(targets, 10) == positions


@settings(max_examples=30)
@given(st.lists(st.floats(-1e3, 1e3), max_size=12), st.floats(0.1, 50))
def test_labels_that_are_spread_keep_their_order_and_their_distance(targets, gap):
    positions = label_placement.spread_positions(targets, gap)
    ranked = sorted(zip(targets, positions, strict=True))
    for (_, low), (_, high) in pairwise(ranked):
        assert high - low >= gap * (1 - 1e-6)
    assert sum(positions) == pytest.approx(sum(targets), abs=1e-6 * (1 + len(targets) * 1e3))
