"""Prediction images: images in rows, whose frames show which predictions are wrong."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, ImageColor, ImageDraw, ImageFont

from tflab.datasets import Dataset
from tflab.train import summaries

pytestmark = pytest.mark.tensorflow

# Bluish green and vermilion as Okabe and Ito have them
RIGHT, WRONG = map(ImageColor.getrgb, ("#009E73", "#D55E00"))
WIDTH, HEIGHT = 4 + 64 + 4 + 6, 4 + 64 + 4 + 26  # of an image, its frame, and the space after it


def drawn(images, predicted, labels) -> np.ndarray:
    """The tiles of a picture, in their order."""
    sheet = np.asarray(summaries.draw(images, np.array(predicted), np.array(labels)))
    rows = sheet.reshape(sheet.shape[0] // HEIGHT, HEIGHT, -1, WIDTH, 3)
    return rows.transpose(0, 2, 1, 3, 4).reshape(-1, HEIGHT, WIDTH, 3)


def caption(words) -> np.ndarray:
    """What the strip below an image looks like that says this."""
    strip = Image.new("RGB", (WIDTH, 26), "white")
    font = ImageFont.load_default(18)
    ImageDraw.Draw(strip).text((36, 13), words, fill="black", anchor="mm", font=font)
    return np.asarray(strip)


def test_every_image_has_its_own_frame_and_caption_in_its_own_place():
    """Twelve images, each brighter than the one before it, of which the last two are wrong."""
    images = np.stack([np.full((8, 8, 1), shade / 11) for shade in range(12)])
    tiles = drawn(images, [*range(10), 3, 8], [*range(10), 4, 7])
    assert [int(tile[36, 36, 0]) for tile in tiles] == [
        *(0, 23, 46, 69, 92, 115, 139, 162, 185, 208, 231, 255),
        *[255] * 3,  # the sheet after the last image
    ]
    assert [tuple(tile[2, 2]) for tile in tiles[:12]] == 10 * [RIGHT] + 2 * [WRONG]
    said = [*"0123456789", "3, is 4", "8, is 7"]
    for tile, words in zip(tiles, said, strict=False):
        assert (tile[-26:] == caption(words)).all(), words


def test_an_image_stands_upright_and_colours_and_extremes_stay():
    image = np.full((1, 2, 2, 3), -2.5)
    image[0, 0, 1, 1] = 3  # the upper right corner is green
    (tile,) = drawn(image, [0], [0])
    corners = [tuple(tile[y, x]) for y in (4, 67) for x in (4, 67)]
    assert corners == [(0, 0, 0), (0, 255, 0), (0, 0, 0), (0, 0, 0)]
    (flat,) = drawn(np.full((1, 8, 8, 1), 3.0), [0], [0])
    assert tuple(flat[36, 36]) == (0, 0, 0)


# Which images


def program(images, labels):
    data = Dataset("shades", "test", {"images": images, "labels": labels})
    feeds = {"labels:0": "labels", "images:0": "images"}
    return SimpleNamespace(dataset={"test": data}.get, model=SimpleNamespace(feeds=feeds))


def test_pictures_are_of_the_first_images_and_of_the_first_mistakes(monkeypatch):
    images, labels = np.random.default_rng(0).random((7, 4, 4, 1)), np.arange(7)
    predicted = np.array([0, 1, 9, 3, 9, 9, 6])
    monkeypatch.setattr(summaries, "SHOWN", 3)
    monkeypatch.setattr(summaries, "draw", lambda *columns: columns)
    shown = dict(summaries.pictures(program(images, labels), predicted))
    assert shown.keys() == {"predictions/first", "predictions/mistakes"}
    for tag, rows in (("first", [0, 1, 2]), ("mistakes", [2, 4, 5])):
        for column, whole in zip(
            shown[f"predictions/{tag}"], (images, predicted, labels), strict=True
        ):
            assert np.array_equal(column, whole[rows])
    assert [*dict(summaries.pictures(program(images, labels), labels))] == ["predictions/first"]
