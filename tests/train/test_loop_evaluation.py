"""Evaluation: every test row counts once and the same."""

import math
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import models
from tflab.datasets import Dataset
from tflab.records.options import Model, Options
from tflab.runtime import session
from tflab.train import loop, trainer

pytestmark = pytest.mark.tensorflow

CLASSES = 3


def images(split, data_dir, rows=7):
    """Each is as bright as its label, but for the last two, which are mislabelled."""
    labels = np.arange(rows, dtype=np.int32) % CLASSES
    pixels = np.tile(labels.reshape(-1, 1, 1, 1), (1, 4, 4, 1)).astype(np.float32)
    labels[-2:] = (labels[-2:] + 1) % CLASSES
    return Dataset("shades", split, {"images": pixels, "labels": labels})


def build() -> Model:
    """Reads the brightness; what it loses is the label, so that the mean is known."""
    pixels = tf1.placeholder(tf.float32, [None, 4, 4, 1], name="images")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    scale = tf1.get_variable("scale", initializer=1.0, use_resource=True)
    brightness = scale * tf.reduce_mean(pixels, axis=[1, 2])
    scores = -tf.abs(brightness - tf.range(CLASSES, dtype=tf.float32))
    return Model(
        output=scores,
        feeds={pixels: "images", labels: "labels"},
        data=images,
        loss=tf.reduce_mean(tf.cast(labels, tf.float32)) * scale,
        optimizer=tf1.train.GradientDescentOptimizer(0.1),
    )


def evaluated(function):
    ready = trainer.prepare("mine", function, 1, Options())
    with session.opened(ready.program.graph, Options()) as live:
        return ready, loop.evaluate(ready, live)


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
def test_a_short_last_batch_weighs_what_it_holds(monkeypatch, rows):
    monkeypatch.setattr(loop, "TEST_ROWS", rows)
    _, result = evaluated(build)
    labels = images("test", None).columns["labels"]
    assert result.loss == pytest.approx(labels.mean())
    assert result.accuracy == 5 / 7
    assert list(result.predicted) == [0, 1, 2, 0, 1, 2, 0]


def test_without_labels_there_is_a_loss_and_no_accuracy():
    _, result = evaluated(models.find("toy"))
    assert result.loss == pytest.approx(np.mean(toy_errors() ** 2), rel=1e-6)
    assert math.isnan(result.accuracy)
    assert result.predicted is None


def toy_errors():
    from tflab.models import toy

    columns = toy.line("test").columns
    return 2 * columns["x"] + 1 - columns["targets"]  # y and z start as 2 and 1


def test_pictures_are_of_the_first_images_and_the_first_mistakes(monkeypatch):
    drawn = []
    monkeypatch.setattr(loop.prediction_images, "draw", lambda *args: drawn.append(args))
    ready, result = evaluated(build)
    tags = [tag for tag, _ in loop.pictures(ready.program, result.predicted)]
    assert tags == ["predictions/first", "predictions/mistakes"]
    (first, read, labels), (wrong, *_) = drawn
    columns = images("test", None).columns
    assert np.array_equal(first, columns["images"])
    assert np.array_equal(wrong, columns["images"][-2:])
    assert (list(read), list(labels)) == (list(result.predicted), list(columns["labels"]))


def test_a_picture_has_so_many_images_and_no_more(monkeypatch):
    monkeypatch.setattr(loop, "SHOWN", 3)
    ready, result = evaluated(build)
    sizes = [picture.width for _, picture in loop.pictures(ready.program, result.predicted)]
    step = loop.prediction_images.SIDE + loop.prediction_images.GAP
    assert [width // step for width in sizes] == [3, 2]


def test_without_mistakes_there_is_no_picture_of_them():
    ready, _ = evaluated(build)
    labels = images("test", None).columns["labels"]
    assert [tag for tag, _ in loop.pictures(ready.program, labels)] == ["predictions/first"]


def test_what_is_no_image_is_not_drawn():
    def points(split, data_dir):
        shades = images(split, data_dir)
        return replace(
            shades, columns={**shades.columns, "images": shades.columns["images"][..., 0]}
        )

    def flat() -> Model:
        points_in = tf1.placeholder(tf.float32, [None, 4, 4], name="points")
        model = build()
        labels = next(feed for feed, column in model.feeds.items() if column == "labels")
        output = tf.reduce_mean(points_in, axis=1)
        return replace(
            model, output=output, feeds={points_in: "images", labels: "labels"}, data=points
        )

    ready = trainer.prepare("mine", flat, 1, Options())
    read = np.zeros(7, np.int32)
    assert list(loop.pictures(ready.program, read)) == []
