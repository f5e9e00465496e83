"""Mosaic: tiles, their places and their colours, worked out by hand."""

import io

import numpy as np
import pytest
from PIL import Image

from tflab.exporters.plots import mosaic

WHITE, BLACK, FRAME = [255] * 3, [0] * 3, [mosaic.FRAME] * 3
BLUE, ORANGE, VERMILION = [0, 0x72, 0xB2], [0xE6, 0x9F, 0], [0xD5, 0x5E, 0]


def middles(drawn: mosaic.Mosaic, high: int, wide: int) -> list[list[list[int]]]:
    """The colour in the middle of each of high x wide parts of equal size."""
    rows, columns = drawn.pixels.shape[:2]
    return [
        [
            drawn.pixels[int((y + 0.5) * rows / high), int((x + 0.5) * columns / wide)].tolist()
            for x in range(wide)
        ]
        for y in range(high)
    ]


def test_channels_stand_beside_one_another_and_then_below():
    array = np.zeros((1, 1, 5))
    array[0, 0] = 1, 0, 0.5, 0, 1
    drawn = mosaic.of_channels(array, 3)
    assert (drawn.rows, drawn.columns, drawn.low, drawn.high, drawn.signed) == (2, 3, 0, 1, False)
    assert middles(drawn, 2, 3) == [[WHITE, BLACK, [128] * 3], [BLACK, WHITE, WHITE]]


def test_a_tile_is_enlarged_framed_and_apart_from_the_next():
    drawn = mosaic.of_channels(np.zeros((2, 2, 2)), 8)
    side, gap = 2 * 28 + 2, 5
    assert drawn.pixels.shape == (side, 2 * side + gap, 3)
    assert drawn.pixels[0, 0].tolist() == drawn.pixels[side - 1, side - 1].tolist() == FRAME
    assert drawn.pixels[1, 1].tolist() == drawn.pixels[side - 2, side - 2].tolist() == BLACK
    assert drawn.pixels[3, side].tolist() == drawn.pixels[3, side + gap - 1].tolist() == WHITE
    assert drawn.pixels[3, side + gap].tolist() == FRAME


def test_the_first_of_two_elements_lies_left_and_the_first_row_above():
    array = np.array([[[0.0], [1.0]], [[1.0], [1.0]]])
    drawn = mosaic.of_channels(array, 8)
    assert middles(drawn, 2, 2) == [[BLACK, WHITE], [WHITE, WHITE]]


def test_with_both_signs_zero_is_white_and_the_largest_of_either_sign_has_the_full_colour():
    drawn = mosaic.of_channels(np.array([[[-2.0, 0.0, 2.0]]]), 8)
    assert (drawn.signed, mosaic.limit(drawn)) == (True, 2)
    assert middles(drawn, 1, 3) == [[BLUE, WHITE, ORANGE]]


def test_a_quarter_of_the_largest_has_half_of_the_colour():
    drawn = mosaic.of_channels(np.array([[[-1.0, 0.25]]]), 8)
    half = [round((255 + part) / 2) for part in ORANGE]
    assert middles(drawn, 1, 2)[0][1] == pytest.approx(half, abs=1)


def test_gradients_without_a_negative_element_are_signed_too():
    drawn = mosaic.of_channels(np.array([[[4.0, 0.0]]]), 8, signed=True)
    assert middles(drawn, 1, 2) == [[ORANGE, WHITE]]
    assert mosaic.strip(drawn)[0, [0, -1]].tolist() == [BLUE, ORANGE]


def test_grey_begins_with_0_also_where_no_element_is_0():
    drawn = mosaic.of_channels(np.array([[[2.0, 4.0]]]), 8)
    assert middles(drawn, 1, 2) == [[[128] * 3, WHITE]]
    assert (drawn.low, drawn.high) == (0, 4)
    strip = mosaic.strip(drawn)
    assert (strip.shape, strip[0, [0, -1]].tolist()) == ((1, 64, 3), [BLACK, WHITE])


def test_a_file_of_a_small_image_has_each_of_its_pixels_enlarged():
    drawn = mosaic.of_image(np.array([[[0.0], [1.0], [0.5]]] * 2))
    with Image.open(io.BytesIO(mosaic.png(drawn))) as image:
        assert (image.format, image.size) == ("PNG", (3 * 85, 2 * 85))
        corners = [image.getpixel((x, 169)) for x in (0, 84, 85, 169, 170, 254)]
    grey = (128, 128, 128)
    assert corners == [*[(0, 0, 0)] * 2, *[(255, 255, 255)] * 2, *[grey] * 2]


def test_what_is_not_finite_is_vermilion_and_leaves_the_scale_alone():
    drawn = mosaic.of_channels(np.array([[[np.nan, 2.0, np.inf, 0.0]]]), 8)
    assert middles(drawn, 1, 4) == [[VERMILION, WHITE, VERMILION, BLACK]]
    assert drawn.high == 2


def test_a_kernel_has_a_row_for_what_goes_in_and_a_column_for_what_comes_out():
    array = np.array([[[[1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]]])
    drawn = mosaic.of_kernel(array)
    assert (drawn.rows, drawn.columns) == (2, 3)
    assert middles(drawn, 2, 3) == [[ORANGE, WHITE, BLUE], [BLUE, ORANGE, WHITE]]


def test_an_image_is_spread_from_its_least_to_its_largest_and_three_channels_are_colours():
    grey = mosaic.of_image(np.array([[[-1.0], [1.0]]]))
    assert (grey.pixels[0].tolist(), grey.low, grey.high) == ([BLACK, WHITE], -1, 1)
    colour = mosaic.of_image(np.array([[[0.0, 1.0, 0.5]]]))
    assert colour.pixels.tolist() == [[[0, 255, 128]]]


def test_what_is_0_everywhere_is_drawn():
    assert middles(mosaic.of_channels(np.zeros((1, 1, 1)), 8), 1, 1) == [[BLACK]]
    assert middles(mosaic.of_kernel(np.zeros((1, 1, 1, 1))), 1, 1) == [[WHITE]]
