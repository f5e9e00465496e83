"""Gallery: images in rows, and a glance tells which were read wrong."""

import io

import numpy as np
import pytest
from PIL import Image, ImageColor

from tflab.train import gallery

STEP = gallery.SIDE + gallery.GAP
RIGHT, WRONG, PAPER = map(ImageColor.getrgb, (gallery.RIGHT, gallery.WRONG, gallery.PAPER))


def drawn(images, read, labels) -> np.ndarray:
    picture = gallery.draw(images, np.array(read), np.array(labels))
    pixels = np.asarray(Image.open(io.BytesIO(picture.png)))
    assert pixels.shape == (picture.height, picture.width, 3)
    return pixels


def frame(pixels, index):
    """A pixel of the frame of an image in the first row."""
    return tuple(pixels[gallery.GAP + 1, gallery.GAP + index * STEP + STEP // 2])


def middle(pixels, index):
    row, column = divmod(index, gallery.COLUMNS)
    top = gallery.GAP + row * (STEP + gallery.CAPTION)
    return tuple(pixels[top + gallery.SIDE // 2, gallery.GAP + column * STEP + gallery.SIDE // 2])


def test_right_and_wrong_differ_by_colour_width_and_caption():
    pixels = drawn(np.zeros((3, 8, 8, 1)), [1, 5, 1], [1, 1, 1])
    assert [frame(pixels, index) for index in range(3)] == [RIGHT, WRONG, RIGHT]
    inside = [
        sum(
            tuple(pixels[gallery.GAP + row, gallery.GAP + index * STEP + STEP // 2]) == colour
            for row in range(gallery.SIDE)
        )
        for index, colour in enumerate((RIGHT, WRONG, RIGHT))
    ]
    assert inside == [2 * gallery.THIN, 2 * gallery.THICK, 2 * gallery.THIN]
    captions = pixels[gallery.GAP + gallery.SIDE :]
    ink = [(captions[:, gallery.GAP + i * STEP :][:, :STEP] < 128).sum() for i in range(3)]
    assert ink[0] == ink[2] < ink[1]


def test_rows_are_filled_one_after_the_other():
    images = np.zeros((gallery.COLUMNS + 2, 8, 8, 1))
    images[-1] = 1
    pixels = drawn(images, [0] * len(images), [0] * len(images))
    assert [middle(pixels, i) for i in (0, len(images) - 1)] == [(0, 0, 0), (255, 255, 255)]
    assert middle(pixels, len(images)) == PAPER


def test_a_few_images_make_a_narrow_picture():
    assert drawn(np.zeros((2, 8, 8, 1)), [0, 0], [0, 0]).shape[1] == gallery.GAP + 2 * STEP


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
