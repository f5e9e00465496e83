"""Training loop: the same step repeatedly, each time on other rows.

An epoch is every row of the training data once, in an order that follows from the seed. At its end
the test data are evaluated and a checkpoint is saved, from which a training can be resumed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.errors import TflabError
from tflab.records.trained import Epoch, Settings, TrainingStep
from tflab.runtime import refusals, session
from tflab.train import checkpoints, summaries
from tflab.train.checkpoints import Checkpoint
from tflab.train.trainer import Trainer

TEST_ROWS = 500  # in a step on test data


def train(
    trainer: Trainer, settings: Settings, folder: Path, start: Checkpoint | None = None
) -> Generator[TrainingStep | Epoch, None, None]:
    """Train from a checkpoint, or from the initial weights; yield every step and epoch.

    Raises TflabError if the checkpoint cannot be restored, if the loss or a weight is no longer
    finite, or if nothing can be written. Earlier checkpoints are kept.
    """
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
            shuffled = order(settings, epoch)
            ended = time.perf_counter()
            for index in range(settings.epoch_steps):
                rows = shuffled[index * settings.batch_size :][: settings.batch_size]
                before = epoch * settings.epoch_steps + index  # steps, of the whole training
                rate = float(recipe.rate(before, settings.epoch_steps, settings.steps))
                loss, *right = step_once(*(column[rows] for column in columns), np.float32(rate))
                if not math.isfinite(loss):
                    what = f"the loss of step {before + 1:,}, in epoch {epoch + 1}, is {loss}"
                    raise divergence(settings, folder, what)
                now = time.perf_counter()
                step = TrainingStep(
                    step=before + 1,
                    loss=float(loss),
                    accuracy=int(right[0]) / len(rows) if right else math.nan,
                    rate=rate,
                    seconds=now - ended,
                )
                ended = now
                with writing(folder, step.step):
                    summaries.add_step(files, step)
                steps.append(step)
                yield step
            weights = live.run({weight.op.name: weight for weight in trainer.weights})
            for name, values in weights.items():
                if not np.isfinite(values).all():
                    what = f"after step {before + 1:,} '{name}' has values that are not finite"
                    raise divergence(settings, folder, what)
            *test, predicted = evaluate(trainer, live)
            record = epoch_of(settings, steps, *test)
            with writing(folder, record.step):
                summaries.add_epoch(files, record)
                summaries.add_weights(files, record.step, weights)
                if predicted is not None:
                    for tag, picture in summaries.pictures(program, predicted):
                        summaries.add_image(files, record.step, tag, picture)
                files.flush()  # before the checkpoint: later, these steps do not run again
                checkpoints.save(trainer.saver, live, folder, record.step)
            yield record


def order(settings: Settings, epoch: int) -> np.ndarray:
    """Return the order of the rows of the training data in an epoch; epochs count from 0."""
    return np.random.default_rng((settings.seed, epoch)).permutation(settings.train_rows)


def divergence(settings: Settings, folder: Path, what: str) -> TflabError:
    """Return the error of a training with values that are not finite."""
    return TflabError(
        f"The training diverged: {what}. The earlier checkpoints are kept in "
        f"'{folder / checkpoints.FOLDER}'. `python -m tflab.lifecycle --model {settings.model}` "
        "shows the values of the first step."
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
    last = settings.train_rows - (settings.epoch_steps - 1) * settings.batch_size
    rows = [settings.batch_size] * (settings.epoch_steps - 1) + [last]
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
    """Turn an error of the disk into a TflabError with a sentence."""
    try:
        yield
    except (OSError, tf.errors.OpError, *summaries.DISK_ERRORS) as error:
        message = str(getattr(error, "strerror", None) or getattr(error, "message", error))
        reason = refusals.sentence(message).rpartition("; ")[2]
        raise TflabError(
            f"Step {step:,} cannot be written to '{folder}': {reason}. The data saved before are "
            "complete; --resume continues from them."
        ) from error
