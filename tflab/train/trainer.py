"""Trainer: a model's graph with the nodes that training adds to it.

Besides gradients and updates these are a learning rate that is fed with every step, counters of
steps and of right predictions, and the ops that save and restore the variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError, UsageError
from tflab.lifecycle import backward, frontend, placement
from tflab.records.options import Model, Options, Program, Recipe
from tflab.records.stages import Stage
from tflab.records.trained import Settings
from tflab.runtime import nodes, session
from tflab.train import checkpoints

SEED = 1  # of the initial weights and of the order of the rows
USUAL_EPOCHS = 2  # unless more are asked for, or the recipe has fewer
EPOCHS, BATCH_SIZE = 5, 64  # for a model that has an optimizer and no recipe


@dataclass(frozen=True)
class Trainer:
    program: Program
    recipe: Recipe
    train: session.Step  # feeds: columns, learning rate; fetches: loss, number of right predictions
    test: session.Step  # feeds: columns; fetches: loss, the predicted class of each row
    weights: tuple[tf.Variable, ...]  # the trainable ones
    saver: tf1.train.Saver
    options: Options  # of its session
    seed: int  # of its initial weights

    def settings(
        self, epochs: int | None = None, batch_size: int | None = None, rows: int | None = None
    ) -> Settings:
        """Return the settings of a training, by default of few epochs with the batch size of the
        recipe on all rows. Raises UsageError."""
        train, test = map(self.program.dataset, ("train", "test"))
        rows = min(rows or train.size, train.size)
        batch = self.recipe.batch_size if batch_size is None else batch_size
        if not 1 <= batch <= rows:
            raise UsageError(
                f"A batch of {batch:,} cannot be taken from the {rows:,} training rows of "
                f"{train.name}; choose a batch size from 1 to {rows:,}."
            )
        return Settings(
            model=self.program.name,
            data=train.name + (f", the first {rows:,} training rows" if rows < train.size else ""),
            train_rows=rows,
            test_rows=test.size,
            batch_size=batch,
            epochs=epochs or min(self.recipe.epochs, USUAL_EPOCHS),
            seed=self.seed,
        )


def prepare(
    name: str, function: Callable[[], Model], seed: int = SEED, options: Options | None = None
) -> Trainer:
    """Build a model whose initial weights follow from the seed, and add the nodes that train it.

    If no placeholder is fed from a column `labels`, nothing is classified, and both steps fetch
    only the loss. Raises UsageError if a model has no loss or no way to train it, and TflabError if
    it fails or its loss cannot be differentiated.
    """

    def seeded() -> Model:
        tf1.set_random_seed(seed)
        return function()

    options = options or Options()
    built = frontend.build((name, seeded), options)
    program = built.live
    graph, model = program.graph, program.model
    recipe = recipe_of(name, model)
    labels = next((t for t, column in model.feeds.items() if column == "labels"), None)
    with graph.as_default():
        rate = tf1.placeholder(tf.float32, [], name="learning_rate")
        count = tf1.train.get_or_create_global_step().assign_add(1, read_value=False)
        right_counts, test_classes = accuracy(program, labels)
        try:
            optimizer = recipe.optimizer(rate)
        except Exception as error:
            raise frontend.failure(name, "made its optimizer", error) from error
    training = replace(model, optimizer=optimizer, updates=(*model.updates, count))
    frontend.check(name, training, graph)
    *_, train_op = backward.derive(replace(program, model=training), together=False)
    if train_op is None:
        raise TflabError(
            f"The model '{name}' cannot be trained: no variable has a gradient. "
            f"`python -m tflab.lifecycle --model {name} --stage backward` shows where they stop."
        )
    saver = checkpoints.saver(graph)
    graph.finalize()
    test_loss = model.loss if model.test_loss is None else model.test_loss
    train = session.step_of(program, [tensor.name for tensor in (model.loss, *right_counts)])
    return Trainer(
        program=program,
        recipe=recipe,
        train=replace(train, feeds=(*train.feeds, rate.name), targets=(train_op,)),
        test=session.step_of(program, [tensor.name for tensor in (test_loss, *test_classes)]),
        weights=tuple(graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)),
        saver=saver,
        options=options,
        seed=seed,
    )


def stages(
    function: Callable[[], Model], settings: Settings, options: Options
) -> tuple[Stage, ...]:
    """Return the stages of the model up to its placement, with the optimizer of its recipe at the
    first learning rate."""

    def trained() -> Model:
        model = function()
        recipe = recipe_of(settings.model, model)
        rate = recipe.rate(0, settings.epoch_steps, settings.steps)
        return replace(model, optimizer=recipe.optimizer(rate))

    built = frontend.build((settings.model, trained), options)
    derived = backward.differentiate(built, options)
    return built, derived, placement.place(derived, options)


def accuracy(program: Program, labels: tf.Tensor | None) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """Add nodes that count correct classifications in training, and that classify in a test; none
    without labels."""
    with tf1.name_scope("accuracy"):
        predicted = classes(training_scores(program), labels)
        right = [tf.reduce_sum(tf.cast(tf.equal(found, labels), tf.int32)) for found in predicted]
        return right, classes(program.model.output, labels)


def recipe_of(name: str, model: Model) -> Recipe:
    """Return how to train a model. If it only has an optimizer, its learning rate is unknown
    (nan)."""
    why = model.not_trained
    if not why and model.loss is None:
        why = "Its Model has no `loss`."
    if not why and model.recipe is None and model.optimizer is None:
        why = "Its Model needs a `recipe`, or at least an `optimizer`."
    if why:
        raise UsageError(f"The model '{name}' cannot be trained. {why}")
    usual = Recipe(EPOCHS, BATCH_SIZE, lambda rate: model.optimizer, lambda *steps: math.nan)
    return model.recipe or usual


def classes(scores: tf.Tensor | None, labels: tf.Tensor | None) -> list[tf.Tensor]:
    """Return the class with the highest score of each row; empty without classes."""
    if scores is None or labels is None or not labels.dtype.is_integer:
        return []
    if scores.shape.rank is None or scores.shape[:-1].rank != labels.shape.rank:
        return []
    return [tf.cast(tf.argmax(scores, axis=-1), labels.dtype)]


def training_scores(program: Program) -> tf.Tensor | None:
    """Return the scores of the head that is trained, computed in the same step as its loss.

    They are the input of the loss's softmax or, unless it has exactly one softmax, the model's
    output. None if the loss does not depend on that output either.
    """
    model = program.model
    behind = nodes.needed(program.graph, [program.loss.op.name])
    ops = [op for op in program.graph.get_operations() if op.name in behind]
    logits = [op.inputs[0] for op in ops if op.type.endswith("SoftmaxCrossEntropyWithLogits")]
    if len(logits) == 1:
        return logits[0]
    return model.output if model.output.op in ops else None
