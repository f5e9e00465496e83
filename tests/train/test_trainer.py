"""Trainer: which head is scored, what a recipe falls back to, and what nobody can train."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.approval import approve, refused
from tests.examples.models import opened
from tflab import models
from tflab.datasets import Dataset
from tflab.records.options import Model, Options, Recipe
from tflab.runtime import session
from tflab.train import trainer

pytestmark = pytest.mark.tensorflow

ROWS = 12
RECIPE = Recipe(2, 4, tf1.train.GradientDescentOptimizer, lambda step, epoch, steps: 0.5)


def data(split, data_dir):
    rng = np.random.default_rng(len(split))
    columns = {
        "points": rng.normal(size=(ROWS, 3)).astype(np.float32),
        "labels": rng.integers(0, 2, ROWS).astype(np.int32),
    }
    return Dataset("points", split, columns)


def one_head() -> Model:
    points = tf1.placeholder(tf.float32, [None, 3], name="points")
    labels = tf1.placeholder(tf.int32, [None], name="labels")
    weights = tf1.get_variable("weights", [3, 2], use_resource=True)
    logits = tf.matmul(points, weights, name="logits")
    return Model(
        output=logits,
        feeds={points: "points", labels: "labels"},
        data=data,
        loss=cross_entropy(labels, logits),
        recipe=RECIPE,
    )


def two_heads() -> Model:
    """Training sees the scores of the other class."""
    model = one_head()
    labels = next(feed for feed, column in model.feeds.items() if column == "labels")
    loss = cross_entropy(labels, tf.negative(model.output, name="training/logits"))
    return replace(model, loss=loss, test_loss=model.loss)


def cross_entropy(labels, logits):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)


def prepare(function, seed=1):
    return trainer.prepare("mine", function, seed, Options())


def columns(ready, split="train"):
    return list(session.feed_columns(ready.program, split).values())


def first_step(ready):
    """(loss, how many were right) of all rows with the first weights, and the weights' change."""
    with opened(ready.program.graph) as live:
        before = live.run(ready.weights)
        fetched = ready.train.callable(live)(*columns(ready), np.float32(0.5))
        after, counted = live.run(ready.weights), live.run("global_step/Read/ReadVariableOp:0")
    return fetched, before, after, counted


def test_where_training_has_a_head_of_its_own_its_scores_count():
    ready = prepare(two_heads)
    (_, right), (before,), *_ = first_step(ready)
    labels, points = columns(ready)
    assert right == ((-points @ before).argmax(axis=1) == labels).sum()
    with opened(ready.program.graph) as live:  # the test asks the other head
        (weights,) = live.run(ready.weights)
        loss, read = ready.test.callable(live)(*columns(ready, "test"))
    labels, points = columns(ready, "test")
    logits = points @ weights
    odds = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert list(read) == list(logits.argmax(axis=1))
    assert loss == pytest.approx(-np.log(odds[np.arange(ROWS), labels]).mean(), rel=1e-5)


def test_without_a_softmax_of_its_own_the_output_is_scored():
    def squared() -> Model:
        model = one_head()
        return replace(model, loss=tf.reduce_mean(model.output**2))

    ready = prepare(squared)
    (_, right), (before,), *_ = first_step(ready)
    labels, points = columns(ready)
    assert right == ((points @ before).argmax(axis=1) == labels).sum()


@pytest.mark.thorough
@pytest.mark.parametrize("name", models.MODELS)
def test_every_registered_model_can_be_trained(name):
    ready = trainer.prepare(name, models.find(name), 1, Options())
    assert len(ready.weights) > 1
    assert len(ready.train.targets) == 1


def test_the_first_weights_follow_from_the_seed():
    def first_weights(seed):
        ready = prepare(one_head, seed)
        with opened(ready.program.graph) as live:
            return live.run(ready.weights)[0]

    assert np.array_equal(first_weights(1), first_weights(1))
    assert not np.array_equal(first_weights(1), first_weights(2))


def test_updates_run_with_every_step():
    def counting() -> Model:
        seen = tf1.get_variable("seen", initializer=0, trainable=False, use_resource=True)
        return replace(one_head(), updates=(seen.assign_add(1),))

    ready = prepare(counting)
    with opened(ready.program.graph) as live:
        step = ready.train.callable(live)
        for _ in range(3):
            step(*columns(ready), np.float32(0.5))
        assert live.run("seen/Read/ReadVariableOp:0") == 3


# Recipes


def test_an_optimizer_alone_is_a_recipe_with_a_rate_of_its_own():
    ready = prepare(models.find("toy"))
    assert (ready.recipe.epochs, ready.recipe.batch_size) == (5, 64)
    assert (ready.settings().epochs, ready.settings(7).epochs) == (2, 7)
    assert math.isnan(ready.recipe.rate(0, 16, 80))


def test_a_model_that_cannot_be_trained_is_told_what_it_needs():
    changes = [{"loss": None}, {"recipe": None}]
    makers = (lambda rate: 1 / 0, lambda rate: "sgd")
    changes += [{"recipe": replace(RECIPE, optimizer=maker)} for maker in makers]
    said = [
        refused(prepare, lambda change=change: replace(one_head(), **change)) for change in changes
    ]
    approve("not-trained.txt", re.sub(r" \(\S+py:\d+\)", "", "\n".join(said)))
