"""Prediction images: images in rows, whose frames show which predictions are wrong."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageDraw

from tflab.datasets import Dataset
from tflab.train import prediction_images

# Bluish green and vermilion as Okabe and Ito have them, on white
RIGHT, WRONG, PAPER = map(ImageColor.getrgb, ("#009E73", "#D55E00", "#FFFFFF"))


def drawn(images, predicted, labels) -> np.ndarray:
    return np.asarray(prediction_images.draw(images, np.array(predicted), np.array(labels)))


def tile(pixels, index):
    """The frame of an image with all within, and the strip below it."""
    row, column = divmod(index, 10)
    top, left = 10 + row * (76 + 20 + 10), 10 + column * (76 + 10)
    return pixels[top : top + 76, left : left + 76], pixels[top + 76 : top + 96, left : left + 76]


def caption(words) -> np.ndarray:
    """What a strip below an image looks like that says this."""
    strip = Image.new("RGB", (76, 20), "#FFFFFF")
    font = prediction_images.font()
    ImageDraw.Draw(strip).text((38, 10), words, fill="#222222", anchor="mm", font=font)
    return np.asarray(strip)


def test_every_image_has_its_own_frame_and_caption_in_its_own_place():
    """Twelve images, each brighter than the one before it, of which the last two are wrong."""
    images = np.stack([np.full((8, 8, 1), shade / 11) for shade in range(12)])
    predicted, labels = [*range(10), 3, 8], [*range(10), 4, 7]
    pixels = drawn(images, predicted, labels)
    assert pixels.shape == (10 + 2 * 106, 10 + 10 * 86, 3)
    tiles = [tile(pixels, index) for index in range(12)]
    shades = [int(framed[38, 38, 0]) for framed, _ in tiles]
    assert shades == [0, 23, 46, 69, 92, 115, 139, 162, 185, 208, 231, 255]
    widths = [[(framed[38] == colour).all(axis=1).sum() for framed, _ in tiles]
              for colour in (RIGHT, WRONG)]  # fmt: skip
    assert widths == [10 * [4] + [0, 0], 10 * [0] + [8, 8]]
    said = [*"0123456789", "3, is 4", "8, is 7"]
    for (_, below), words in zip(tiles, said, strict=True):
        assert (below == caption(words)).all(), words
    assert tuple(pixels[10 + 106 + 38, 10 + 2 * 86 + 38]) == PAPER  # after the last
    assert drawn(images[:2], [0, 0], [0, 0]).shape[1] == 10 + 2 * 86


def test_an_image_stands_upright_with_paper_between_it_and_its_frame():
    image = np.zeros((1, 2, 2, 1))
    image[0, 0, 1] = 1  # the upper right corner is bright
    framed, _ = tile(drawn(image, [0], [0]), 0)
    corners = [tuple(framed[y, x]) for y in (6, 69) for x in (6, 69)]
    assert corners == [(0, 0, 0), (255, 255, 255), (0, 0, 0), (0, 0, 0)]
    edge = [tuple(framed[38, x]) for x in (1, 2, 5, 70, 73, 74)]
    assert edge == [RIGHT, PAPER, PAPER, PAPER, PAPER, RIGHT]


@pytest.mark.parametrize("low, high", [((-2.5,), (3,)), ((0,), (255,)), ((0, 0, 0), (0, 1, 0))])
def test_black_is_the_least_value_white_the_greatest_and_colours_stay(low, high):
    images = np.stack([np.full((8, 8, len(low)), low), np.full((8, 8, len(low)), high)])
    first, second = (tile(drawn(images, [0, 0], [0, 0]), n)[0][38, 38] for n in (0, 1))
    assert tuple(first) == (0, 0, 0)
    assert tuple(second) == ((0, 255, 0) if len(low) == 3 else (255, 255, 255))


def test_images_of_one_shade_are_drawn():
    assert tuple(tile(drawn(np.full((1, 8, 8, 1), 3.0), [0], [0]), 0)[0][38, 38]) == (0, 0, 0)


# Which images


def program(images, labels):
    data = Dataset("shades", "test", {"images": images, "labels": labels})
    feeds = {"labels:0": "labels", "images:0": "images"}
    return SimpleNamespace(dataset={"test": data}.get, model=SimpleNamespace(feeds=feeds))


def test_pictures_are_of_the_first_images_and_of_the_first_mistakes(monkeypatch):
    images, labels = np.random.default_rng(0).random((7, 4, 4, 1)), np.arange(7)
    predicted = np.array([0, 1, 9, 3, 9, 9, 6])
    monkeypatch.setattr(prediction_images, "SHOWN", 3)
    monkeypatch.setattr(prediction_images, "draw", lambda *columns: columns)
    shown = dict(prediction_images.pictures(program(images, labels), predicted))
    assert shown.keys() == {"predictions/first", "predictions/mistakes"}
    for tag, rows in (("first", [0, 1, 2]), ("mistakes", [2, 4, 5])):
        drawn = shown[f"predictions/{tag}"]
        for column, whole in zip(drawn, (images, predicted, labels), strict=True):
            assert np.array_equal(column, whole[rows])
    assert [*dict(prediction_images.pictures(program(images, labels), labels))] == [
        "predictions/first"
    ]


@pytest.mark.parametrize("shape", [(7, 4, 4), (7, 4, 4, 2), (7, 2, 4, 4, 1)])
def test_a_column_that_holds_no_images_is_not_drawn(shape):
    labels = np.zeros(7, np.int32)
    assert list(prediction_images.pictures(program(np.zeros(shape), labels), labels)) == []
    whole = program(np.zeros((7, 4, 4, 1)), labels)
    assert list(prediction_images.pictures(whole, np.zeros((7, 2)))) == []
