"""Training loop: the same step repeatedly, each time on other rows.

Every step is recorded immediately, and checkpoints are saved on the way, from which an interrupted
training can be resumed.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.cli import interrupts
from tflab.errors import TflabError
from tflab.records.options import Program
from tflab.records.trained import Epoch
from tflab.runtime import refusals, server, session
from tflab.train import checkpoints, history, prediction_images, summaries
from tflab.train.checkpoints import Checkpoint
from tflab.train.history import Settings, TimedStep
from tflab.train.trainer import Trainer

PAUSE_S = 10.0  # between checkpoints within an epoch: the most work that a kill may lose


@dataclass(frozen=True)
class RunningTraining:
    trainer: Trainer
    settings: Settings
    folder: Path
    live: tf1.Session
    history_file: FileIO
    event_files: summaries.EventFiles
    # None in a resumed training, which was traced before, and over several tasks
    traced: summaries.TracedSteps | None


def train(
    trainer: Trainer, settings: Settings, folder: Path, start: Checkpoint | None
) -> Generator[TimedStep | Epoch, None, None]:
    """Train from a checkpoint, or from the initial weights; yield every step and epoch once it is
    recorded.

    The folder has the history of a training with these settings. The first Ctrl-C saves before it
    raises KeyboardInterrupt, the second does not wait. Raises TflabError if the checkpoint cannot
    be restored, if the loss or a weight is no longer finite, or if nothing can be written. Earlier
    checkpoints are kept.
    """
    done = start.step if start else 0
    steps = steps_before(folder / history.NAME, settings, done)
    with ExitStack() as stack:
        with writing(folder, done):
            history_file = stack.enter_context(history.opened(folder / history.NAME))
            data = trainer.program.dataset("train")
            stand_in = data.name if data.stands_in_for else ""
            event_files = stack.enter_context(summaries.opened(folder, done, stand_in))
        graph = trainer.program.graph
        config = session.config_of(trainer.options)
        live = stack.enter_context(session.fresh(graph, trainer.options, config))
        stack.enter_context(interrupts.held())
        batch_size = settings.batch_size
        traced = None if start else summaries.begin_tracing(trainer, live, folder, batch_size)
        run = RunningTraining(trainer, settings, folder, live, history_file, event_files, traced)
        if start:
            checkpoints.restore(trainer.saver, live, start)
        else:
            session.begin(live, session.start_of(trainer.program))
        for epoch in range(done // settings.epoch_steps, settings.epochs):
            for step in epoch_steps(run, epoch, done):
                steps.append(step)
                yield step
            yield finish_epoch(run, steps)
            steps = []
        interrupts.take()  # there is nothing left to interrupt


def steps_before(path: Path, settings: Settings, done: int) -> list[TimedStep]:
    """The steps of the epoch in which the training continues, from the history."""
    begin = done // settings.epoch_steps * settings.epoch_steps
    return [
        step
        for step in history.read(path).steps
        if isinstance(step, TimedStep) and begin < step.step <= done
    ]


def epoch_steps(run: RunningTraining, epoch: int, done: int) -> Iterator[TimedStep]:
    """Run the steps of an epoch, except those among the first `done` steps of the training."""
    settings, trainer = run.settings, run.trainer
    step_once = trainer.train.callable(run.live)
    batch = batches(run)
    saved = ended = time.perf_counter()
    for index in range(max(0, done - epoch * settings.epoch_steps), settings.epoch_steps):
        before = epoch * settings.epoch_steps + index  # steps, of the whole training
        if interrupts.take():
            save(run, before)
            raise KeyboardInterrupt
        if ended - saved > PAUSE_S:
            save(run, before)
            saved = time.perf_counter()
        values = batch(before)
        rows = min(settings.batch_size, settings.train_rows - index * settings.batch_size)
        traced = run.traced if before in summaries.TRACED else None
        if traced:
            loss, *right = summaries.run_traced(traced, before + 1, values)
        else:
            loss, *right = step_once(*values)
        if not math.isfinite(loss):
            what = f"the loss of step {before + 1:,}, in epoch {epoch + 1}, is {loss}"
            raise divergence(run, what)
        now = time.perf_counter()
        step = TimedStep(
            step=before + 1,
            loss=float(loss),
            accuracy=int(right[0]) / rows if right else math.nan,
            rate=rate_of(run, before),
            seconds=now - ended,
            traced=traced is not None,
        )
        ended = now
        with writing(run.folder, step.step):
            history.add(run.history_file, step)
            summaries.add_step(run.event_files, step)
            if run.traced and step.step == min(summaries.TRACED.stop, settings.steps):
                summaries.write_traces(run.traced)
                ended = time.perf_counter()  # writing is not part of a step's time
        yield step


def batches(run: RunningTraining) -> Callable[[int], list[Any]]:
    """The feeds of each step, by its number in the whole training, from 0."""
    settings = run.settings
    columns = list(session.feed_columns(run.trainer.program, "train").values())
    order = functools.lru_cache(maxsize=1)(functools.partial(history.order, settings))

    def batch(before: int) -> list[Any]:
        epoch, index = divmod(before, settings.epoch_steps)
        rows = order(epoch)[index * settings.batch_size :][: settings.batch_size]
        return [*(column[rows] for column in columns), np.float32(rate_of(run, before))]

    return batch


def rate_of(run: RunningTraining, before: int) -> float:
    """The learning rate of a step."""
    settings = run.settings
    return float(run.trainer.recipe.rate(before, settings.epoch_steps, settings.steps))


def finish_epoch(run: RunningTraining, steps: Sequence[TimedStep]) -> Epoch:
    """Evaluate on the test data, record the epoch, and save a checkpoint."""
    weights = finite_weights(run, steps[-1].step)
    result = evaluate(run.trainer, run.live)
    epoch = history.epoch_of(run.settings, steps, result.loss, result.accuracy)
    with writing(run.folder, epoch.step):
        history.add(run.history_file, epoch)
        summaries.add_epoch(run.event_files, epoch)
        summaries.add_weights(run.event_files, epoch.step, weights)
        if result.predicted is not None:
            for tag, picture in pictures(run.trainer.program, result.predicted):
                summaries.add_image(run.event_files, epoch.step, tag, picture)
    save(run, epoch.step)
    return epoch


def save(run: RunningTraining, step: int) -> None:
    """Save a checkpoint, after flushing the event files up to this step."""
    finite_weights(run, step)
    with writing(run.folder, step):
        run.event_files.flush()
        checkpoints.save(run.trainer.saver, run.live, run.folder / checkpoints.FOLDER, step)


def finite_weights(run: RunningTraining, step: int) -> dict[str, np.ndarray]:
    """All weights by name. Raises TflabError if one of them is not finite."""
    weights = run.live.run({weight.op.name: weight for weight in run.trainer.weights})
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise no_number(run, name, step)
    return weights


def no_number(run: RunningTraining, name: str, step: int) -> TflabError:
    return divergence(run, f"after step {step:,} '{name}' has values that are not finite")


def divergence(run: RunningTraining, what: str) -> TflabError:
    """Return the error of a training with values that are not finite."""
    return TflabError(
        f"The training diverged: {what}. The earlier checkpoints are kept in "
        f"'{run.folder / checkpoints.FOLDER}'. `python -m tflab.lifecycle --model "
        f"{run.settings.model}` shows the values of the first step."
    )


@contextmanager
def writing(folder: Path, step: int) -> Iterator[None]:
    """Turn an error of the disk into a TflabError with a sentence."""
    try:
        yield
    except OSError as error:
        raise write_failure(folder, step, str(error.strerror)) from error
    except server.AWAY:  # a task is gone: that is not a failure of the checkpoint
        raise
    except tf.errors.OpError as error:
        raise write_failure(folder, step, refusals.sentence(error.message)) from error


def write_failure(folder: Path, step: int, reason: str) -> TflabError:
    return TflabError(
        f"Step {step:,} cannot be written to '{folder}': {reason.rpartition('; ')[2]}. The data "
        "saved before are complete; --resume continues from them."
    )


TEST_ROWS = 500  # in a step on test data
SHOWN = 40  # images in a picture


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


def pictures(
    program: Program, predicted: np.ndarray
) -> Iterator[tuple[str, prediction_images.PngImage]]:
    """Pictures of the first test images and the first mistakes, if images are classified."""
    labels = program.dataset("test").columns["labels"]
    images = next(filter(holds_images, session.feed_columns(program, "test").values()), None)
    if images is None or predicted.ndim > 1:
        return
    for tag, rows in (
        ("first", np.arange(len(predicted))),
        ("mistakes", np.flatnonzero(predicted != labels)),
    ):
        shown = rows[:SHOWN]
        if len(shown):
            picture = prediction_images.draw(images[shown], predicted[shown], labels[shown])
            yield f"predictions/{tag}", picture


def holds_images(column: datasets.Column) -> bool:
    """Whether a column holds grey or coloured images: [n, height, width, 1 or 3]."""
    return isinstance(column, np.ndarray) and column.ndim == 4 and column.shape[-1] in (1, 3)
