"""Prediction images: images in rows, whose frames show which predictions are wrong."""

import io

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageDraw

from tflab.train import prediction_images

STEP = prediction_images.SIDE + prediction_images.GAP
# Bluish green and vermilion as Okabe and Ito have them, on white
RIGHT, WRONG, PAPER = map(ImageColor.getrgb, ("#009E73", "#D55E00", "#FFFFFF"))


def drawn(images, read, labels) -> np.ndarray:
    picture = prediction_images.draw(images, np.array(read), np.array(labels))
    pixels = np.asarray(Image.open(io.BytesIO(picture.png)))
    assert pixels.shape == (picture.height, picture.width, 3)
    return pixels


def frame(pixels, index):
    """A pixel of the frame of an image in the first row."""
    return tuple(
        pixels[prediction_images.GAP + 1, prediction_images.GAP + index * STEP + STEP // 2]
    )


def middle(pixels, index):
    row, column = divmod(index, prediction_images.COLUMNS)
    top = prediction_images.GAP + row * (STEP + prediction_images.CAPTION)
    return tuple(
        pixels[
            top + prediction_images.SIDE // 2,
            prediction_images.GAP + column * STEP + prediction_images.SIDE // 2,
        ]
    )


def test_right_and_wrong_differ_by_colour_width_and_caption():
    pixels = drawn(np.zeros((3, 8, 8, 1)), [1, 5, 1], [1, 1, 1])
    assert [frame(pixels, index) for index in range(3)] == [RIGHT, WRONG, RIGHT]
    inside = [
        sum(
            tuple(
                pixels[
                    prediction_images.GAP + row, prediction_images.GAP + index * STEP + STEP // 2
                ]
            )
            == colour
            for row in range(prediction_images.SIDE)
        )
        for index, colour in enumerate((RIGHT, WRONG, RIGHT))
    ]
    assert inside == [
        2 * prediction_images.THIN,
        2 * prediction_images.THICK,
        2 * prediction_images.THIN,
    ]
    captions = pixels[prediction_images.GAP + prediction_images.SIDE :]
    ink = [
        (captions[:, prediction_images.GAP + i * STEP :][:, :STEP] < 128).sum() for i in range(3)
    ]
    assert ink[0] == ink[2] < ink[1]


def test_rows_are_filled_one_after_the_other():
    images = np.zeros((prediction_images.COLUMNS + 2, 8, 8, 1))
    images[-1] = 1
    pixels = drawn(images, [0] * len(images), [0] * len(images))
    assert [middle(pixels, i) for i in (0, len(images) - 1)] == [(0, 0, 0), (255, 255, 255)]
    assert middle(pixels, len(images)) == PAPER


def test_a_few_images_make_a_narrow_picture():
    assert (
        drawn(np.zeros((2, 8, 8, 1)), [0, 0], [0, 0]).shape[1] == prediction_images.GAP + 2 * STEP
    )


@pytest.mark.parametrize("low, high", [(0, 1), (-2.5, 3), (0, 255)])
def test_black_is_the_least_value_and_white_the_greatest(low, high):
    images = np.full((2, 8, 8, 1), low, np.float32)
    images[1] = high
    pixels = drawn(images, [0, 0], [0, 0])
    assert [middle(pixels, index) for index in (0, 1)] == [(0, 0, 0), (255, 255, 255)]


def test_coloured_images_keep_their_colours():
    images = np.zeros((2, 8, 8, 3), np.float32)
    images[0, ..., 1] = 1
    assert middle(drawn(images, [0, 0], [0, 0]), 0) == (0, 255, 0)


def test_images_of_one_shade_are_drawn():
    assert middle(drawn(np.full((1, 8, 8, 1), 3.0), [0], [0]), 0) == (0, 0, 0)


def tile(pixels, index):
    """The frame of an image with all within, and the strip below it."""
    row, column = divmod(index, 10)
    top, left = 10 + row * (76 + 20 + 10), 10 + column * (76 + 10)
    return pixels[top : top + 76, left : left + 76], pixels[top + 76 : top + 96, left : left + 76]


def caption(words) -> np.ndarray:
    """What a strip below an image looks like that says this."""
    strip = Image.new("RGB", (76, 20), prediction_images.PAPER)
    brush = ImageDraw.Draw(strip)
    brush.text(
        (38, 10), words, fill=prediction_images.INK, anchor="mm", font=prediction_images.font()
    )
    return np.asarray(strip)


def test_every_image_has_its_own_frame_and_caption_in_its_own_place():
    """Twelve images, each brighter than the one before it, of which the last two are wrong."""
    images = np.stack([np.full((8, 8, 1), shade / 11) for shade in range(12)])
    read, labels = [*range(10), 3, 8], [*range(10), 4, 7]
    pixels = drawn(images, read, labels)
    assert pixels.shape == (10 + 2 * 106, 10 + 10 * 86, 3)
    tiles = [tile(pixels, index) for index in range(12)]
    shades = [int(framed[38, 38, 0]) for framed, _ in tiles]
    assert shades == [0, 23, 46, 69, 92, 115, 139, 162, 185, 208, 231, 255]
    frames = [tuple(framed[0, 0]) for framed, _ in tiles]
    assert frames == 10 * [RIGHT] + 2 * [WRONG]
    said = [*"0123456789", "3, is 4", "8, is 7"]
    for (_, below), words in zip(tiles, said, strict=True):
        assert (below == caption(words)).all(), words


def test_an_image_stands_upright_with_paper_between_it_and_its_frame():
    image = np.zeros((1, 2, 2, 1))
    image[0, 0, 1] = 1  # the upper right corner is bright
    framed, _ = tile(drawn(image, [0], [0]), 0)
    corners = [tuple(framed[y, x]) for y in (6, 69) for x in (6, 69)]
    assert corners == [(0, 0, 0), (255, 255, 255), (0, 0, 0), (0, 0, 0)]
    assert [tuple(framed[38, x]) for x in (1, 2, 5, 70, 73, 74)] == [
        *(RIGHT, PAPER, PAPER),
        *(PAPER, PAPER, RIGHT),
    ]
