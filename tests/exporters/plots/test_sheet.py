"""Sheet: what is written and drawn stands where it is put, and looks as it was asked."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tflab.exporters.plots import feature_maps as sheet
from tflab.exporters.plots import style


@pytest.fixture
def page():
    figure = Figure(figsize=(style.width(), 2))
    return sheet.Page(sheet.sheet(figure, 72), 200, (10, 240))


def test_a_sheet_has_points_from_its_top_left_and_takes_what_is_below_the_caption(page):
    axes = page.axes
    assert axes.get_position().bounds == (0, 0, 1, 0.5)
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 540), (72, 0))
    assert (axes.axison, axes.get_autoscale_on()) == (False, False)


def look(text) -> tuple:
    """(words, place, colour, weight, size, align, vertical align, spacing, layer)"""
    return (
        text.get_text(),
        *(text.get_position(), text.get_color(), text.get_weight(), text.get_size()),
        *(text.get_ha(), text.get_va(), text._linespacing, text.get_zorder()),
    )


def test_words_stand_on_the_foot_of_their_line(page):
    sheet.write(page, 20, 30, "plain", style.INK)
    sheet.write(page, 50, 30, "more", style.FAINT, weight="bold", size=7.5, align="right")
    plain, more = map(look, page.axes.texts)
    usual = ("normal", style.SMALL, "left", "baseline", 1.3, 4)
    assert plain == ("plain", (20, 39), style.INK, *usual)
    assert more == ("more", (50, 39), style.FAINT, "bold", 7.5, "right", "baseline", 1.3, 4)


def test_an_image_fills_its_area_with_its_pixels_as_they_are(page):
    pixels = np.array([[[0, 1, 2], [3, 4, 5]]], np.uint8)
    sheet.image(page, pixels, 20, 30, (40, 8))
    sheet.image(page, pixels, 70, 30, (40, 8))
    first, second = page.axes.images
    assert (first.get_extent(), second.get_extent()) == ([20, 60, 38, 30], [70, 110, 38, 30])
    assert np.asarray(first.get_array()).tolist() == pixels.tolist()
    assert (first.get_interpolation(), first.get_zorder()) == ("none", 2)
    assert (first.get_gid(), second.get_gid()) == ("image_1", "image_2")
    assert page.axes.get_aspect() == "auto"


def test_a_box_has_its_area_its_colour_and_an_edge_only_where_one_is_asked_for(page):
    sheet.box(page, 20, 30, (40, 8), style.BLUE)
    sheet.box(page, 20, 30, (40, 8), "none", style.FAINT)
    plain, framed = page.axes.patches
    assert plain.get_bbox().bounds == framed.get_bbox().bounds == (20, 30, 40, 8)
    assert (to_hex(plain.get_facecolor()).upper(), plain.get_edgecolor()[3]) == (style.BLUE, 0)
    assert (framed.get_facecolor()[3], to_hex(framed.get_edgecolor())) == (0, style.FAINT.lower())
    assert (plain.get_linewidth(), plain.get_zorder()) == (0.5, 3)


def right_end(text) -> float:
    """In points; figures have 100 pixels in an inch."""
    return text.get_window_extent().x1 * 72 / 100


def test_a_name_is_bold_with_its_note_behind_and_is_shortened_to_the_page(page):
    sheet.name(page, 30, "conv", "a note")
    sheet.name(page, 50, "/".join(["a_long_scope"] * 12), "a note")
    name, note, long, behind = page.axes.texts
    assert [text.get_text() for text in (name, note, behind)] == ["conv", "a note", "a note"]
    assert (name.get_weight(), note.get_weight()) == ("bold", "normal")
    assert (name.get_color(), note.get_color()) == (style.INK, style.FAINT)
    assert (name.get_position(), note.get_position()[1]) == ((10, 39), 39)
    assert note.get_position()[0] == pytest.approx(right_end(name) + 8, abs=1)
    assert long.get_text().endswith("a_long_scope") and len(long.get_text()) <= 60
    assert right_end(behind) <= 240 + 200
