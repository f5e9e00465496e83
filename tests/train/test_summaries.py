"""Summaries: what TensorBoard's own reader finds in the event files."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from tflab.records.trained import Epoch, TrainingStep
from tflab.train import prediction_images, summaries

pytestmark = pytest.mark.tensorflow

STEPS = [TrainingStep(n, loss=1 / n, accuracy=n / 8, rate=0.5**n) for n in range(1, 5)]
EPOCH = Epoch(1, 4, 1.5, 0.5, 1.25, 0.75, 2.0, 30.0)


def shown(folder, run):
    """(step, value) of every point, by tag, as TensorBoard would show them."""
    reader = EventAccumulator(str(folder / run)).Reload()
    return {
        tag: [(event.step, tf.make_ndarray(event.tensor_proto)) for event in reader.Tensors(tag)]
        for tag in reader.Tags()["tensors"]
    }


def test_a_step_is_a_point_on_three_curves(tmp_path):
    with summaries.opened(tmp_path, 0) as drawn:
        for step in STEPS:
            summaries.add_step(drawn, step)
    points_of_tag = shown(tmp_path, "train")
    assert points_of_tag.keys() == {"step/loss", "step/accuracy", "step/learning rate"}
    for tag, name in (("loss", "loss"), ("accuracy", "accuracy"), ("learning rate", "rate")):
        points = [(step.step, np.float32(getattr(step, name))) for step in STEPS]
        assert points_of_tag[f"step/{tag}"] == points


def test_training_and_test_share_the_tags_of_an_epoch(tmp_path):
    with summaries.opened(tmp_path, 0) as drawn:
        summaries.add_epoch(drawn, EPOCH)
    assert shown(tmp_path, "train") == {
        "epoch/loss": [(4, 1.5)],
        "epoch/accuracy": [(4, 0.5)],
        "epoch/images per second": [(4, 30.0)],
    }
    assert shown(tmp_path, "test") == {"epoch/loss": [(4, 1.25)], "epoch/accuracy": [(4, 0.75)]}


def test_what_a_model_does_not_tell_has_no_curve(tmp_path):
    with summaries.opened(tmp_path, 0) as drawn:
        summaries.add_step(drawn, replace(STEPS[0], accuracy=math.nan, rate=math.nan))
    assert shown(tmp_path, "train").keys() == {"step/loss"}


def test_data_that_stand_in_for_others_are_named_in_every_chart(tmp_path):
    with summaries.opened(tmp_path, 0, "digits, not MNIST") as drawn:
        summaries.add_step(drawn, STEPS[0])
        summaries.add_epoch(drawn, EPOCH)
        summaries.add_image(drawn, 4, "predictions/first", prediction_images.PngImage(b"", 1, 1))
    tags = [*shown(tmp_path, "train"), *shown(tmp_path, "test")]
    assert len(tags) == 9
    assert all(tag.endswith(" (digits, not MNIST)") for tag in tags)


def test_after_a_restart_no_step_is_shown_twice_nor_what_never_came_again(tmp_path):
    with summaries.opened(tmp_path, 0) as drawn:
        for step in STEPS:
            summaries.add_step(drawn, step)
        summaries.add_epoch(drawn, EPOCH)
    with summaries.opened(tmp_path, 2) as drawn:
        summaries.add_step(drawn, replace(STEPS[2], loss=9.0))
    assert shown(tmp_path, "train")["step/loss"] == [(1, 1.0), (2, 0.5), (3, 9.0)]
    assert not shown(tmp_path, "train")["epoch/loss"]
    assert not shown(tmp_path, "test")["epoch/loss"]


def test_what_was_flushed_can_be_read_while_the_file_is_open(tmp_path):
    with summaries.opened(tmp_path, 0) as drawn:
        summaries.add_step(drawn, STEPS[0])
        drawn.flush()
        assert shown(tmp_path, "train")["step/loss"] == [(1, 1.0)]


def test_a_histogram_counts_every_weight(tmp_path):
    weights = np.random.default_rng(1).normal(size=(30, 40)).astype(np.float32)
    with summaries.opened(tmp_path, 0) as drawn:
        summaries.add_weights(drawn, 4, {"dense/kernel": weights})
    ((step, bins),) = shown(tmp_path, "train")["dense/kernel"]
    left, right, count = bins.T
    expected, _ = np.histogram(weights, bins=len(count))
    assert step == 4
    assert list(count) == list(expected)
    assert [left[0], right[-1]] == pytest.approx([weights.min(), weights.max()])


def test_a_picture_is_shown_as_it_was_drawn(tmp_path):
    picture = prediction_images.draw(
        np.zeros((3, 8, 8, 1)), np.array([1, 2, 3]), np.array([1, 2, 2])
    )
    with summaries.opened(tmp_path, 0) as drawn:
        summaries.add_image(drawn, 4, "predictions/first", picture)
    ((step, (width, height, png)),) = shown(tmp_path, "test")["predictions/first"]
    assert (step, int(width), int(height)) == (4, picture.width, picture.height)
    assert Image.open(io.BytesIO(png)).size == (picture.width, picture.height)
