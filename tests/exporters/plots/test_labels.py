"""Labels of lines and of points: where they are placed, in points from what they label."""

import pytest
from matplotlib.axes import Axes

from tflab.exporters.plots import label_placement, line_labels, style


@pytest.fixture
def axes() -> Axes:
    """A panel from 0 to 1 both ways, without anything in it."""
    figure, (panel,) = style.canvas("title", "", 4)
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1)
    style.settle(figure)
    return panel


def spread(axes, *heights) -> list[tuple]:
    """The offsets of labels of lines that end at these heights."""
    labels = [
        line_labels.label(axes, (0.8, height), f"line {place}", style.BLUE, "●")
        for place, height in enumerate(heights)
    ]
    line_labels.spread(axes, labels)
    return [label.get_position() for label in labels]


def leaders(axes) -> list[tuple]:
    """(point, offset) of every line that leads to words."""
    return [(text.xy, text.get_position()) for text in axes.texts if text.arrow_patch]


def test_labels_of_lines_that_end_apart_stand_at_their_ends(axes):
    assert spread(axes, 0.2, 0.9) == [(10, 0), (10, 0)]
    assert [text.get_text() for text in axes.texts] == ["●", "line 0", "●", "line 1"]
    assert leaders(axes) == []


def test_labels_of_lines_that_end_together_move_apart_and_a_line_leads_to_each(axes):
    half = 1.3 * 9.5 / 2
    moved = [(10, pytest.approx(-half)), (10, pytest.approx(half))]
    assert spread(axes, 0.5, 0.5) == moved
    assert leaders(axes) == [((0.8, 0.5), moved[0]), ((0.8, 0.5), moved[1])]


def test_a_name_stands_right_of_its_point_and_at_the_right_edge_left_of_it(axes):
    marks = [
        label_placement.LabelledPoint(0.4, 0.5, 6, ["conv1"]),
        label_placement.LabelledPoint(0.99, 0.5, 8, ["loss", "Sum"]),
    ]
    middle, edge = label_placement.place_labels(axes, marks)
    assert (middle.get_text(), middle.xy) == ("conv1", (0.4, 0.5))
    assert (middle.get_position(), middle.get_ha()) == ((10, 0), "left")
    assert (edge.get_text(), edge.xy) == ("loss\nSum", (0.99, 0.5))
    assert (edge.get_position(), edge.get_ha()) == ((-12, 0), "right")
    assert leaders(axes) == []


def test_a_name_far_from_its_point_has_a_line_that_leads_to_it(axes):
    """A large point covers what is near a small one."""
    marks = [
        label_placement.LabelledPoint(0.5, 0.5, 3, ["small"]),
        label_placement.LabelledPoint(0.5, 0.5, 40, []),
    ]
    (label,) = label_placement.place_labels(axes, marks)
    assert (label.get_position(), label.get_ha()) == ((43, 0), "left")
    assert leaders(axes) == [((0.5, 0.5), (43, 0))]


def test_a_point_without_a_name_has_none_and_no_name_is_written_over_another(axes):
    marks = [
        label_placement.LabelledPoint(0.5, 0.5, 3, ["first"]),
        label_placement.LabelledPoint(
            0.5, 0.47, 3, ["second"]
        ),  # so near that its name would touch the other one
        label_placement.LabelledPoint(0.1, 0.1, 5, []),
    ]
    first, second = label_placement.place_labels(axes, marks)
    assert (first.get_text(), second.get_text()) == ("first", "second")
    assert not first.get_window_extent().overlaps(second.get_window_extent())
