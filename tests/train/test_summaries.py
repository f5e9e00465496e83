"""Summaries: what TensorBoard's own reader finds in the event files, and the images in them, whose
frames show which predictions are wrong."""

import io
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageColor, ImageDraw, ImageFont
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from tests.examples import training
from tests.examples.training import trained
from tflab.datasets import Dataset
from tflab.records.measured import Epoch, TrainingStep
from tflab.train import summaries

pytestmark = pytest.mark.tensorflow

STEPS = [TrainingStep(n, loss=1 / n, accuracy=n / 8, rate=0.5**n, seconds=1.0) for n in range(1, 5)]
EPOCH = Epoch(1, 4, 1.5, 0.5, 1.25, 0.75, 2.0, 30.0)
DATA = Dataset("MNIST", "train", {"x": np.zeros(1)})
DIGITS = replace(DATA, name="digits, not MNIST", stands_in_for="MNIST")


def shown(folder, run):
    """(step, value) of every point, by tag, as TensorBoard would show them."""
    reader = EventAccumulator(str(folder / run)).Reload()
    return {
        tag: [(event.step, tf.make_ndarray(event.tensor_proto)) for event in reader.Tensors(tag)]
        for tag in reader.Tags()["tensors"]
    }


def test_steps_and_epochs_are_points_on_curves_and_both_runs_share_tags(tmp_path):
    with summaries.opened(tmp_path, 0, DATA) as files:
        for step in STEPS:
            summaries.add_step(files, step)
        summaries.add_epoch(files, EPOCH)
    assert shown(tmp_path, "train") == {
        "step/loss": [(1, 1.0), (2, 0.5), (3, np.float32(1 / 3)), (4, 0.25)],
        "step/accuracy": [(1, 0.125), (2, 0.25), (3, 0.375), (4, 0.5)],
        "step/learning rate": [(1, 0.5), (2, 0.25), (3, 0.125), (4, 0.0625)],
        "epoch/loss": [(4, 1.5)],
        "epoch/accuracy": [(4, 0.5)],
        "epoch/images per second": [(4, 30.0)],
    }
    assert shown(tmp_path, "test") == {"epoch/loss": [(4, 1.25)], "epoch/accuracy": [(4, 0.75)]}


def test_a_value_that_a_model_does_not_have_has_no_curve(tmp_path):
    with summaries.opened(tmp_path, 0, DATA) as files:
        summaries.add_step(files, replace(STEPS[0], accuracy=math.nan, rate=math.nan))
    assert shown(tmp_path, "train").keys() == {"step/loss"}


def test_data_that_stand_in_for_others_are_named_in_every_chart(tmp_path):
    with summaries.opened(tmp_path, 0, DIGITS) as files:
        summaries.add_step(files, STEPS[0])
        summaries.add_epoch(files, EPOCH)
        summaries.add_image(files, 4, "predictions/first", Image.new("RGB", (1, 1)))
    tags = [*shown(tmp_path, "train"), *shown(tmp_path, "test")]
    assert len(tags) == 9
    assert all(tag.endswith(" (digits, not MNIST)") for tag in tags)


def test_steps_that_never_came_again_are_not_shown_after_a_restart(tmp_path):
    with summaries.opened(tmp_path, 0, DATA) as files:
        for step in STEPS:
            summaries.add_step(files, step)
        summaries.add_epoch(files, EPOCH)
    with summaries.opened(tmp_path, 2, DATA) as files:
        summaries.add_step(files, replace(STEPS[2], loss=9.0))
    with summaries.opened(tmp_path, 10, DATA) as files:  # within the same second
        summaries.add_step(files, replace(STEPS[2], step=11, loss=8.0))
    losses = [(1, 1.0), (2, 0.5), (3, 9.0), (11, 8.0)]
    assert shown(tmp_path, "train")["step/loss"] == losses
    assert not shown(tmp_path, "train")["epoch/loss"]
    assert not shown(tmp_path, "test")["epoch/loss"]


def test_an_epoch_can_be_read_while_the_training_goes_on(tmp_path):
    records = trained(tmp_path)
    for _ in range(6):
        next(records)
    train = shown(tmp_path, "train")
    assert [step for step, _ in train["step/loss"]] == [1, 2, 3, 4, 5]
    assert [step for step, _ in train["weights/weights"]] == [5]  # the last to be written
    assert [step for step, _ in shown(tmp_path, "test")["epoch/loss"]] == [5]
    records.close()


def test_a_histogram_counts_every_weight(tmp_path):
    weights = np.random.default_rng(1).normal(size=(30, 40)).astype(np.float32)
    with summaries.opened(tmp_path, 0, DATA) as files:
        summaries.add_weights(files, 4, {"dense/kernel": weights})
    ((step, bins),) = shown(tmp_path, "train")["weights/dense/kernel"]
    left, right, count = bins.T
    expected, _ = np.histogram(weights, bins=len(count))
    assert step == 4
    assert list(count) == list(expected)
    assert [left[0], right[-1]] == pytest.approx([weights.min(), weights.max()])


def test_a_picture_is_shown_as_it_was_drawn(tmp_path):
    list(trained(tmp_path, training.build, epochs=1))
    picture = np.random.default_rng(1).integers(0, 255, (20, 30, 3), np.uint8)
    with summaries.opened(tmp_path / "one", 0, DATA) as files:
        summaries.add_image(files, 4, "predictions/first", Image.fromarray(picture))
    ((step, (width, height, png)),) = shown(tmp_path / "one", "test")["predictions/first"]
    assert (step, int(width), int(height)) == (4, 30, 20)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png))), picture)
    assert shown(tmp_path, "test").keys() >= {"predictions/first", "predictions/mistakes"}


# Images in rows

# Bluish green and vermilion as Okabe and Ito have them
RIGHT, WRONG = map(ImageColor.getrgb, ("#009E73", "#D55E00"))
WIDTH, HEIGHT = 4 + 70 + 4 + 9, 4 + 70 + 4 + 44  # of an image, its frame, and the space after it


def drawn(images, predicted, labels) -> np.ndarray:
    """The tiles of a picture, in their order."""
    sheet = np.asarray(summaries.draw(images, np.array(predicted), np.array(labels)))
    rows = sheet.reshape(sheet.shape[0] // HEIGHT, HEIGHT, -1, WIDTH, 3)
    return rows.transpose(0, 2, 1, 3, 4).reshape(-1, HEIGHT, WIDTH, 3)


def caption(words) -> np.ndarray:
    """What the strip below an image looks like that says this."""
    strip = Image.new("RGB", (WIDTH, 44), "white")
    font = ImageFont.load_default(15)
    ImageDraw.Draw(strip).text((39, 1), words, "black", font, "ma", spacing=2, align="center")
    return np.asarray(strip)


def test_every_image_has_its_own_frame_and_caption_in_its_own_place():
    """Ten images, each brighter than the one before it, of which the last two are wrong."""
    images = np.stack([np.full((8, 8, 1), shade / 9) for shade in range(10)])
    tiles = drawn(images, [*range(8), 3, 8], [*range(8), 4, 7])
    shades = [255 * shade // 9 for shade in range(10)]
    assert [int(tile[39, 39, 0]) for tile in tiles] == [*shades, 255, 255]  # white after the last
    assert [tuple(tile[2, 2]) for tile in tiles[:10]] == 8 * [RIGHT] + 2 * [WRONG]
    said = [f"predicted {digit}\nright" for digit in range(8)]
    said += ["predicted 3\nbut is 4", "predicted 8\nbut is 7"]
    for tile, words in zip(tiles, said, strict=False):
        assert (tile[-44:] == caption(words)).all(), words
        assert (tile[-44:, -3:] == 255).all()  # between two captions


def test_an_image_stands_upright_and_colours_and_extremes_stay():
    image = np.full((1, 2, 2, 3), -2.5)
    image[0, 0, 1, 1] = 3  # the upper right corner is green
    (tile,) = drawn(image, [0], [0])
    corners = [tuple(tile[y, x]) for y in (4, 73) for x in (4, 73)]
    assert corners == [(0, 0, 0), (0, 255, 0), (0, 0, 0), (0, 0, 0)]
    (flat,) = drawn(np.full((1, 8, 8, 1), 3.0), [0], [0])
    assert tuple(flat[39, 39]) == (0, 0, 0)


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
