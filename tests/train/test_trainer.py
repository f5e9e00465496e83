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
from tests.examples.training import build, judged, rate
from tflab import models
from tflab.records.options import Model, Options, Recipe
from tflab.runtime import session
from tflab.train import trainer

pytestmark = pytest.mark.tensorflow


def two_heads() -> Model:
    """Training sees scores of the opposite sign."""
    model = build()
    labels = next(feed for feed, column in model.feeds.items() if column == "labels")
    scores = tf.negative(model.output, name="training/logits")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    return replace(model, loss=tf.reduce_mean(losses), test_loss=model.loss)


def prepare(function):
    return trainer.prepare("mine", function, Options())


def columns(ready, split="train"):
    return list(session.feed_columns(ready.program, split).values())


def first_step(ready):
    """How many of all rows were right with the first weights, and these."""
    with opened(ready.program.graph) as live:
        (weights,) = live.run(ready.weights)
        _, right = ready.train.callable(live)(*columns(ready), np.float32(0.5))
    return right, weights


def test_where_training_has_a_head_of_its_own_its_scores_count():
    ready = prepare(two_heads)
    right, weights = first_step(ready)
    images, labels = columns(ready)
    _, share, _ = judged(-weights, images.reshape(-1, 64), labels)
    assert right == pytest.approx(share * len(labels))
    with opened(ready.program.graph) as live:  # the test asks the other head
        loss, read = ready.test.callable(live)(*columns(ready, "test"))
    images, labels = columns(ready, "test")
    assert list(read) == list((images.reshape(-1, 64) @ weights).argmax(axis=1))
    assert loss == pytest.approx(judged(weights, images.reshape(-1, 64), labels)[0], rel=1e-5)


def test_without_a_softmax_of_its_own_the_output_is_scored():
    def squared() -> Model:
        model = build()
        return replace(model, loss=tf.reduce_mean(model.output**2))

    ready = prepare(squared)
    right, weights = first_step(ready)
    images, labels = columns(ready)
    _, share, _ = judged(weights, images.reshape(-1, 64), labels)
    assert right == pytest.approx(share * len(labels))


@pytest.mark.thorough
@pytest.mark.parametrize("name", models.MODELS)
def test_every_registered_model_can_be_trained(name):
    ready = trainer.prepare(name, models.find(name), Options())
    assert len(ready.weights) > 1
    assert len(ready.train.targets) == 1


def test_the_first_weights_follow_from_the_seed(monkeypatch):
    def first_weights(seed):
        monkeypatch.setattr(trainer, "SEED", seed)
        ready = prepare(build)
        with opened(ready.program.graph) as live:
            return live.run(ready.weights)[0]

    assert np.array_equal(first_weights(1), first_weights(1))
    assert not np.array_equal(first_weights(1), first_weights(2))


def test_updates_run_with_every_step():
    def counting() -> Model:
        seen = tf1.get_variable("seen", initializer=0, trainable=False, use_resource=True)
        return replace(build(), updates=(seen.assign_add(1),))

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
    recipe = Recipe(3, 16, None, rate)
    changes += [{"recipe": replace(recipe, optimizer=maker)} for maker in makers]
    said = [
        refused(prepare, lambda change=change: replace(build(), **change)) for change in changes
    ]
    approve("not-trained.txt", re.sub(r" \(\S+py:\d+\)", "", "\n".join(said)))
