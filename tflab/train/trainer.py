"""Trainer: a model's graph with the nodes that training adds to it.

Besides gradients and updates these are a learning rate that is fed with every step, counters of
steps and of right predictions, and the ops that save and restore the variables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.cli import interrupts
from tflab.errors import TflabError, UsageError
from tflab.lifecycle import backward, frontend, placement
from tflab.records.measured import Epoch, Settings, TrainingStep
from tflab.records.options import Model, Options, Program, Recipe
from tflab.records.stages import Stage
from tflab.runtime import nodes, session
from tflab.train import checkpoints, summaries
from tflab.train.checkpoints import Checkpoint

SEED = 1  # of the initial weights and of the order of the rows
USUAL_EPOCHS = 2  # unless more are asked for, or the recipe has fewer
EPOCHS, BATCH_SIZE = 5, 64  # for a model that has an optimizer and no recipe


@dataclass(frozen=True)
class Trainer:
    program: Program
    recipe: Recipe
    optimizer: str  # its type
    train: session.Step  # feeds: columns, learning rate; fetches: loss, number of right predictions
    test: session.Step  # feeds: columns; fetches: loss, the predicted class of each row
    weights: tuple[tf.Variable, ...]  # the trainable ones
    saver: tf1.train.Saver
    options: Options  # of its session

    def settings(
        self, epochs: int | None = None, batch_size: int | None = None, rows: int | None = None
    ) -> Settings:
        """Return the settings of a training, by default on all rows, with the recipe's batch size
        and few epochs. Raises UsageError if a batch needs more rows."""
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
            seed=SEED,
        )


def prepare(name: str, function: Callable[[], Model], options: Options) -> Trainer:
    """Build a model whose initial weights follow from the seed, and add the nodes that train it.

    If no placeholder is fed from a column `labels`, nothing is classified. Raises TflabError if
    the model cannot be trained."""

    def seeded() -> Model:
        tf1.set_random_seed(SEED)
        return function()

    program = frontend.build((name, seeded), options).live
    graph, model = program.graph, program.model
    recipe = recipe_of(name, model)
    labels = next((t for t, column in model.feeds.items() if column == "labels"), None)
    with graph.as_default():
        rate = tf1.placeholder(tf.float32, [], name="learning_rate")
        count = tf1.train.get_or_create_global_step().assign_add(1, read_value=False)
        with tf1.name_scope("accuracy"):
            predicted = classes(training_scores(program), labels)
            right = [tf.reduce_sum(tf.cast(tf.equal(own, labels), tf.int32)) for own in predicted]
            test_classes = classes(model.output, labels)
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
            f"`python -m tflab.lifecycle --model {name} --stage backward` shows why."
        )
    saver = checkpoints.saver(graph)
    graph.finalize()
    test_loss = model.loss if model.test_loss is None else model.test_loss
    train = session.step_of(program, [tensor.name for tensor in (model.loss, *right)])
    return Trainer(
        program=program,
        recipe=recipe,
        optimizer=type(optimizer).__name__,
        train=replace(train, feeds=(*train.feeds, rate.name), targets=(train_op,)),
        test=session.step_of(program, [tensor.name for tensor in (test_loss, *test_classes)]),
        weights=tuple(graph.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)),
        saver=saver,
        options=options,
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


def recipe_of(name: str, model: Model) -> Recipe:
    """Return a model's recipe, or a usual one. Raises UsageError if it cannot be trained."""
    trainable = model.loss is not None and (model.recipe or model.optimizer is not None)
    if model.not_trained or not trainable:
        why = model.not_trained or "Its Model needs a `loss`, and a `recipe` or an `optimizer`."
        raise UsageError(f"The model '{name}' cannot be trained. {why}")
    usual = Recipe(EPOCHS, BATCH_SIZE, lambda rate: model.optimizer, lambda *steps: math.nan)
    return model.recipe or usual


def classes(scores: tf.Tensor | None, labels: tf.Tensor | None) -> list[tf.Tensor]:
    """Return the class with the highest score of each row, as a list; [] without classes."""
    if scores is None or labels is None or not labels.dtype.is_integer:
        return []
    if scores.shape.rank is None or scores.shape[:-1].rank != labels.shape.rank:
        return []
    return [tf.cast(tf.argmax(scores, axis=-1), labels.dtype)]


def training_scores(program: Program) -> tf.Tensor | None:
    """Return the scores of the head that is trained: the input of the loss's only softmax,
    otherwise the model's output; None if the loss does not depend on it."""
    model = program.model
    behind = nodes.needed(program.graph, [program.loss.op.name])
    ops = [op for op in program.graph.get_operations() if op.name in behind]
    logits = [op.inputs[0] for op in ops if op.type.endswith("SoftmaxCrossEntropyWithLogits")]
    if len(logits) == 1:
        return logits[0]
    return model.output if model.output.op in ops else None


# The loop
#
# An epoch is every row of the training data once, in an order that follows from the seed. At its
# end the test data are evaluated and a checkpoint is saved, from which a training can be resumed.

TEST_ROWS = 500  # in a step on test data


def train(
    trainer: Trainer, settings: Settings, folder: Path, start: Checkpoint | None = None
) -> Generator[TrainingStep | Epoch, None, None]:
    """Train from a checkpoint, or from the initial weights; yield every step and epoch. Raises
    TflabError if loss or weights are not finite, or something cannot be restored or written."""
    program, recipe, done = trainer.program, trainer.recipe, start.step if start else 0
    columns = list(session.feed_columns(program, "train").values())
    with ExitStack() as stack:
        with writing(folder, done):
            files = stack.enter_context(summaries.opened(folder, done, program.dataset("train")))
        live = stack.enter_context(session.fresh(program.graph, trainer.options))
        session.begin(live, session.start_of(program))
        if start:
            checkpoints.restore(trainer.saver, live, start)
        step_once = trainer.train.callable(live)
        for epoch in range(done // settings.epoch_steps, settings.epochs):
            steps: list[TrainingStep] = []
            shuffled = np.random.default_rng((SEED, epoch)).permutation(settings.train_rows)
            ended = time.perf_counter()
            for index in range(settings.epoch_steps):
                rows = shuffled[index * settings.batch_size :][: settings.batch_size]
                before = epoch * settings.epoch_steps + index  # steps, of the whole training
                rate = float(recipe.rate(before, settings.epoch_steps, settings.steps))
                loss, *right = step_once(*(column[rows] for column in columns), np.float32(rate))
                check_finite(settings, folder, before + 1, {"loss": loss})
                began, ended = ended, time.perf_counter()
                accuracy = int(right[0]) / len(rows) if right else math.nan
                step = TrainingStep(before + 1, float(loss), accuracy, rate, ended - began)
                with writing(folder, step.step):
                    summaries.add_step(files, step)
                steps.append(step)
                yield step
            weights = live.run({weight.op.name: weight for weight in trainer.weights})
            check_finite(settings, folder, before + 1, weights)
            *test, predicted = evaluate(trainer, live)
            record = epoch_of(settings, steps, *test)
            with writing(folder, record.step):
                summaries.add_epoch(files, record)
                summaries.add_weights(files, record.step, weights)
                if predicted is not None:
                    for tag, picture in summaries.pictures(program, predicted):
                        summaries.add_image(files, record.step, tag, picture)
                files.train.flush()  # before the checkpoint: later, these steps do not run again
                files.test.flush()
                checkpoints.save(trainer.saver, live, folder, record.step)
            yield record


def check_finite(
    settings: Settings, folder: Path, step: int, values: Mapping[str, np.ndarray]
) -> None:
    """Raise TflabError if one of these values of a step is not finite."""
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise TflabError(
                f"The training diverged: at step {step:,} '{name}' is not finite. The earlier "
                f"checkpoints are kept in '{folder / checkpoints.FOLDER}'. `python -m "
                f"tflab.lifecycle --model {settings.model}` shows the values of the first step."
            )


def evaluate(trainer: Trainer, live: tf1.Session) -> tuple[float, float, np.ndarray | None]:
    """Run all test data once. Return the mean loss of a row, the share of correct predictions, and
    the predicted class of each row; nan and None if nothing is classified."""
    dataset = trainer.program.dataset("test")
    columns = list(session.feed_columns(trainer.program, "test").values())
    step = trainer.test.callable(live)
    batches = [step(*values) for values in datasets.slices(columns, 0, dataset.size, TEST_ROWS)]
    sizes = [min(TEST_ROWS, dataset.size - start) for start in range(0, dataset.size, TEST_ROWS)]
    loss = float(np.average([loss for loss, *_ in batches], weights=sizes))
    if len(batches[0]) == 1:
        return loss, math.nan, None
    predicted = np.concatenate([classes for _, classes in batches])
    return loss, float(np.mean(predicted == dataset.columns["labels"])), predicted


def epoch_of(
    settings: Settings, steps: Sequence[TrainingStep], test_loss: float, test_accuracy: float
) -> Epoch:
    """Return the record of an epoch, in which each step is weighted by its number of rows."""
    before = [number * settings.batch_size for number in range(settings.epoch_steps)]
    rows = np.diff([*before, settings.train_rows])
    seconds = sum(step.seconds for step in steps)
    return Epoch(
        epoch=steps[-1].step // settings.epoch_steps,
        step=steps[-1].step,
        train_loss=float(np.average([step.loss for step in steps], weights=rows)),
        train_accuracy=float(np.average([step.accuracy for step in steps], weights=rows)),
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        seconds=seconds,
        images_per_second=settings.train_rows / seconds,
    )


@contextmanager
def writing(folder: Path, step: int) -> Iterator[None]:
    """Let signals wait while this is open, because an interrupted event file may lose the wake-up
    of its thread and never be closed. An error of the disk becomes a TflabError."""
    try:
        with interrupts.held():
            yield
    except (OSError, tf.errors.OpError, *summaries.DISK_ERRORS) as error:
        message = str(getattr(error, "strerror", None) or getattr(error, "message", error))
        reason = session.plain(message).rpartition("; ")[2]
        raise TflabError(
            f"Step {step:,} cannot be written to '{folder}': {reason}. The data saved before are "
            "complete; --resume continues from them."
        ) from error
