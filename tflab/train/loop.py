"""Training loop: the same step repeatedly, each time on other rows.

An epoch is every row of the training data once, in an order that follows from the seed. At its end
the test data are evaluated and a checkpoint is saved, from which a training can be resumed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.errors import TflabError
from tflab.records.trained import Epoch, Settings, TimedStep
from tflab.runtime import refusals, session
from tflab.train import checkpoints, prediction_images, summaries
from tflab.train.checkpoints import Checkpoint
from tflab.train.trainer import Trainer

TEST_ROWS = 500  # in a step on test data


def train(
    trainer: Trainer, settings: Settings, folder: Path, start: Checkpoint | None = None
) -> Generator[TimedStep | Epoch, None, None]:
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
        # A resumed training was traced before
        tracing = None if start else summaries.begin_tracing(trainer.train, live)
        for epoch in range(done // settings.epoch_steps, settings.epochs):
            steps: list[TimedStep] = []
            shuffled = order(settings, epoch)
            ended = time.perf_counter()
            for index in range(settings.epoch_steps):
                rows = shuffled[index * settings.batch_size :][: settings.batch_size]
                before = epoch * settings.epoch_steps + index  # steps, of the whole training
                rate = float(recipe.rate(before, settings.epoch_steps, settings.steps))
                values = [*(column[rows] for column in columns), np.float32(rate)]
                traced = tracing if before in summaries.TRACED else None
                if traced:
                    loss, *right = summaries.run_traced(traced, before + 1, values)
                else:
                    loss, *right = step_once(*values)
                if not math.isfinite(loss):
                    what = f"the loss of step {before + 1:,}, in epoch {epoch + 1}, is {loss}"
                    raise divergence(settings, folder, what)
                now = time.perf_counter()
                step = TimedStep(
                    step=before + 1,
                    loss=float(loss),
                    accuracy=int(right[0]) / len(rows) if right else math.nan,
                    rate=rate,
                    seconds=now - ended,
                    traced=traced is not None,
                )
                ended = now
                with writing(folder, step.step):
                    summaries.add_step(files, step)
                    if tracing and step.step == min(summaries.TRACED.stop, settings.steps):
                        summaries.write_traces(tracing, program, folder, settings.batch_size)
                        ended = time.perf_counter()  # writing is not part of a step's time
                steps.append(step)
                yield step
            weights = finite_weights(trainer, live, settings, folder, steps[-1].step)
            result = evaluate(trainer, live)
            record = epoch_of(settings, steps, result)
            with writing(folder, record.step):
                summaries.add_epoch(files, record)
                summaries.add_weights(files, record.step, weights)
                if result.predicted is not None:
                    for tag, picture in prediction_images.pictures(program, result.predicted):
                        summaries.add_image(files, record.step, tag, picture)
                files.flush()  # before the checkpoint: later, these steps do not run again
                checkpoints.save(trainer.saver, live, folder, record.step)
            yield record


def order(settings: Settings, epoch: int) -> np.ndarray:
    """Return the order of the rows of the training data in an epoch; epochs count from 0."""
    return np.random.default_rng((settings.seed, epoch)).permutation(settings.train_rows)


def finite_weights(
    trainer: Trainer, live: tf1.Session, settings: Settings, folder: Path, step: int
) -> dict[str, np.ndarray]:
    """Return all weights by name. Raises TflabError if one of them is not finite."""
    weights = live.run({weight.op.name: weight for weight in trainer.weights})
    for name, values in weights.items():
        if not np.isfinite(values).all():
            what = f"after step {step:,} '{name}' has values that are not finite"
            raise divergence(settings, folder, what)
    return weights


def divergence(settings: Settings, folder: Path, what: str) -> TflabError:
    """Return the error of a training with values that are not finite."""
    return TflabError(
        f"The training diverged: {what}. The earlier checkpoints are kept in "
        f"'{folder / checkpoints.FOLDER}'. `python -m tflab.lifecycle --model {settings.model}` "
        "shows the values of the first step."
    )


@dataclass(frozen=True)
class Evaluation:
    loss: float  # mean over all test rows
    accuracy: float  # share of correct predictions; nan if nothing is classified
    predicted: np.ndarray | None  # the class of each row


def evaluate(trainer: Trainer, live: tf1.Session) -> Evaluation:
    """Classify every row of the test data once. Each row counts the same, also in a short batch."""
    program = trainer.program
    dataset = program.dataset("test")
    columns = list(session.feed_columns(program, "test").values())
    step = trainer.test.callable(live)
    loss_sum, batches = 0.0, []
    starts = range(0, dataset.size, TEST_ROWS)
    for start, values in zip(
        starts, datasets.slices(columns, 0, dataset.size, TEST_ROWS), strict=True
    ):
        loss, *classes = step(*values)
        loss_sum += float(loss) * min(TEST_ROWS, dataset.size - start)
        batches += classes
    if not batches:
        return Evaluation(loss_sum / dataset.size, math.nan, None)
    predicted = np.concatenate(batches)
    accuracy = float(np.mean(predicted == dataset.columns["labels"]))
    return Evaluation(loss_sum / dataset.size, accuracy, predicted)


def epoch_of(settings: Settings, steps: Sequence[TimedStep], test: Evaluation) -> Epoch:
    """Return the record of an epoch, in which each step is weighted by its number of rows.

    Traced steps take longer: the rate is that of the others.
    """
    last = settings.train_rows - (settings.epoch_steps - 1) * settings.batch_size
    rows = [settings.batch_size] * (settings.epoch_steps - 1) + [last]
    pairs = list(zip(steps, rows, strict=True))
    timed = [pair for pair in pairs if not pair[0].traced] or pairs
    return Epoch(
        epoch=steps[-1].step // settings.epoch_steps,
        step=steps[-1].step,
        train_loss=sum(step.loss * count for step, count in pairs) / settings.train_rows,
        train_accuracy=sum(step.accuracy * count for step, count in pairs) / settings.train_rows,
        test_loss=test.loss,
        test_accuracy=test.accuracy,
        seconds=sum(step.seconds for step in steps),
        images_per_second=sum(count for _, count in timed) / sum(s.seconds for s, _ in timed),
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
