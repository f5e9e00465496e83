"""Label placement: the places around a point, and which of them are free; all in points."""

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.pictures import look
from tflab.exporters.plots import label_placement, style
from tflab.exporters.plots.label_placement import LabelledPoint, LabelPosition


@pytest.fixture
def axes() -> Axes:
    """A panel from (72, 72) to (216, 216) on its page, with data from 0 to 144."""
    panel = Figure(figsize=(4, 4), dpi=100).add_axes((0.25, 0.25, 0.5, 0.5))
    panel.set_xlim(0, 144)
    panel.set_ylim(0, 144)
    return panel


def test_a_point_on_the_page_is_in_points_whatever_the_resolution(axes):
    assert label_placement.on_page(axes, 10, 20) == pytest.approx((82, 92))
    axes.figure.set_dpi(160)
    assert label_placement.on_page(axes, 10, 20) == pytest.approx((82, 92))


def test_the_frame_is_the_panel_on_the_page(axes):
    axes.set_ylim(5, 9)
    assert label_placement.frame_of(axes) == pytest.approx((72, 72, 216, 216))


def test_a_square_has_its_radius_on_every_side():
    assert label_placement.square((10, 20), 3) == (7, 17, 13, 23)


@pytest.mark.parametrize(
    ("box", "is_inside"),
    [
        ((0, 0, 4, 6), True),
        ((1, 1, 2, 2), True),
        ((-1, 1, 2, 2), False),
        ((1, -1, 2, 2), False),
        ((1, 1, 5, 2), False),
        ((1, 1, 2, 7), False),
    ],
)
def test_a_box_is_inside_a_frame_that_it_may_touch(box, is_inside):
    assert label_placement.is_inside(box, (0, 0, 4, 6)) is is_inside


@pytest.mark.parametrize(
    ("box", "overlaps"),
    [
        ((1, 1, 2, 2), True),
        ((-1, -1, 1, 1), True),
        ((3, 5, 9, 9), True),
        ((4, 0, 5, 6), False),
        ((-1, 0, 0, 6), False),
        ((0, 6, 4, 7), False),
        ((0, -1, 4, 0), False),
    ],
)
def test_boxes_that_only_touch_do_not_overlap(box, overlaps):
    assert label_placement.overlap(box, (0, 0, 4, 6)) is overlaps
    assert label_placement.overlap((0, 0, 4, 6), box) is overlaps


def test_a_leader_is_covered_by_a_square_for_every_three_points_between_its_ends():
    assert label_placement.leader_squares((100, 200), (9, 12)) == tuple(
        pytest.approx((x - 1, y - 1, x + 1, y + 1))
        for x, y in ((101.8, 202.4), (103.6, 204.8), (105.4, 207.2), (107.2, 209.6))
    )


def test_places_lie_on_eight_sides_the_nearest_first():
    """Of a marker of 6 points at (100, 200): the nearest are 4 points from its edge."""
    point = LabelledPoint(1, 2, 6, ["loss", "Softmax"])
    places = list(label_placement.places((100, 200), point))
    wide = style.text_width("Softmax", 8.5)
    high = 1.3 * 8.5  # half of two lines
    up = 10 + high - 8.5 / 2  # the middle of a label above or below the marker
    assert len(places) == 6 * 8
    assert places[:8] == [
        LabelPosition(offset, align, pytest.approx(box), pytest.approx(edge), ())
        for offset, align, box, edge in (
            ((10, 0), "left", (110, 200 - high, 110 + wide, 200 + high), (10, 0)),
            ((10, 10), "left", (110, 210 - high, 110 + wide, 210 + high), (10, 10)),
            ((10, -10), "left", (110, 190 - high, 110 + wide, 190 + high), (10, -10)),
            ((-10, 0), "right", (90 - wide, 200 - high, 90, 200 + high), (-10, 0)),
            ((-10, 10), "right", (90 - wide, 210 - high, 90, 210 + high), (-10, 10)),
            ((-10, -10), "right", (90 - wide, 190 - high, 90, 190 + high), (-10, -10)),
            (
                *((0, pytest.approx(up)), "center"),
                (100 - wide / 2, 200 + up - high, 100 + wide / 2, 200 + up + high),
                (0, up - high),
            ),
            (
                *((0, pytest.approx(-up)), "center"),
                (100 - wide / 2, 200 - up - high, 100 + wide / 2, 200 - up + high),
                (0, high - up),
            ),
        )
    ]
    assert [place.offset for place in places[::8]] == [(6 + n, 0) for n in (4, 12, 24, 40, 60, 90)]


def test_a_label_further_away_than_twelve_points_has_a_leader():
    point = LabelledPoint(1, 2, 6, ["loss"])
    places = list(label_placement.places((100, 200), point))
    assert [bool(place.lead) for place in places[::8]] == [False, False, True, True, True, True]
    assert places[16].lead == label_placement.leader_squares((100, 200), (30, 0))


def test_a_label_is_small_and_stands_at_its_place(axes):
    point = LabelledPoint(40, 50, 6, ["conv1/", "Relu"])
    near = LabelPosition((10, -10), "left", (0, 0, 1, 1), (10, -10), ())
    label = label_placement.annotate(axes, point, near)
    assert [*axes.texts] == [label]
    assert look(label) == (
        *("conv1/\nRelu", (40, 50), (10, -10), "left", "center", 8.5, "black", "normal"),
    )
    assert (label.anncoords, label._multialignment) == ("offset points", "left")
    assert label._linespacing == pytest.approx(1.2)


def test_a_leader_goes_from_a_point_to_the_edge_of_its_label(axes):
    point = LabelledPoint(40, 50, 6, ["conv1"])
    far = LabelPosition((-46, 30), "right", (0, 0, 1, 1), (-46, 24), ((0, 0, 2, 2),))
    label = label_placement.annotate(axes, point, far)
    line, words = axes.texts
    assert (line.get_text(), line.xy, line.get_position()) == ("", (40, 50), (-46, 24))
    assert words is label
    assert (label.get_position(), label.get_ha()) == ((-46, 30), "right")


def offsets(axes, points, **given) -> list[tuple]:
    """(words, offset) of the labels that find a place."""
    labels = label_placement.place_labels(axes, points, **given)
    return [(label.get_text(), label.get_position()) for label in labels]


def test_without_anything_near_it_a_label_stands_right_of_its_point(axes):
    points = [LabelledPoint(40, 50, 6, ["conv1"]), LabelledPoint(90, 110, 3, ["loss"])]
    assert offsets(axes, points) == [("conv1", (10, 0)), ("loss", (7, 0))]


def test_a_label_covers_no_point_of_a_curve_nor_what_is_occupied(axes):
    point = LabelledPoint(40, 50, 6, ["conv1"])
    assert offsets(axes, [point], curve=[(55, 50)]) == [("conv1", (10, 10))]
    assert offsets(axes, [point], curve=[(55, 57.4)]) == [("conv1", (10, -10))]
    assert offsets(axes, [point], curve=[(55, 57.6)]) == [("conv1", (10, 0))]
    assert offsets(axes, [point], occupied=[(122, 105, 130, 140)]) == [("conv1", (-10, 0))]


def test_a_label_covers_no_other_point_and_no_other_label(axes):
    point = LabelledPoint(40, 50, 6, ["conv1"])
    assert offsets(axes, [point, LabelledPoint(60, 50, 3, [])]) == [("conv1", (10, 10))]
    pair = [point, LabelledPoint(40, 40, 2, ["conv2"])]
    assert offsets(axes, pair) == [("conv1", (10, 0)), ("conv2", (6, -6))]


def test_a_label_stays_within_the_panel(axes):
    assert offsets(axes, [LabelledPoint(140, 50, 6, ["conv1"])]) == [("conv1", (-10, 0))]
    assert offsets(axes, [LabelledPoint(140, 2, 6, ["conv1"])]) == [("conv1", (-10, 10))]


def test_a_label_without_a_place_is_left_out_and_the_others_are_placed(axes):
    points = [LabelledPoint(70, 70, 5, ["W" * 200]), LabelledPoint(40, 50, 6, ["conv1"])]
    assert offsets(axes, points) == [("conv1", (10, 0))]


def test_no_leader_crosses_a_label_and_no_label_covers_a_leader(axes):
    """A large point keeps the labels of two small ones away from them."""
    points = [
        LabelledPoint(72, 72, 3, ["a"]),
        LabelledPoint(72, 72, 34, []),
        LabelledPoint(70, 72, 3, ["b"]),
    ]
    assert offsets(axes, points) == [("a", (43, 0)), ("b", (43, 43))]
    blocked = [(190, 140, 216, 148)]  # on the line that would lead to the right
    leaders = [text.xy for text in axes.texts if text.arrow_patch]
    assert leaders == [(72, 72), (70, 72)]
    assert offsets(axes, points[:2], occupied=blocked) == [("a", (43, 43))]
