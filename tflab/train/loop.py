"""Training: the same step again and again, on other images each time, until the weights fit.

All is written down as it happens, and checkpoints are taken on the way. A training that ended
anywhere can go on from there, and becomes the one that it would have been.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.records import Epoch, Options
from tflab.runtime import session
from tflab.train import checkpoints, curves, epochs, evaluation, history, tracing
from tflab.train.checkpoints import Checkpoint
from tflab.train.epochs import Settings, TimedStep
from tflab.train.trainer import Trainer

PAUSE_S = 10.0  # between checkpoints within an epoch: the work that a kill may cost


@dataclass(frozen=True)
class Run:
    """A training that is going on."""

    trainer: Trainer
    settings: Settings
    folder: Path
    live: tf1.Session
    written: FileIO
    drawn: curves.Curves
    interrupted: threading.Event
    traced: tracing.Tracing | None  # in a training that goes on, nothing is traced again


def train(
    trainer: Trainer, settings: Settings, folder: Path, start: Checkpoint | None
) -> Generator[TimedStep | Epoch, None, None]:
    """Train on from a checkpoint, or from the first weights; give every step and epoch once it is
    written down.

    The folder has the history of a training with these settings. The first Ctrl-C saves before
    it raises KeyboardInterrupt, the second does not wait. Raises TflabError when another process
    is at this training, when the loss or a weight is no finite number any more, and when nothing
    can be written. The checkpoints until then stay.
    """
    done = start.step if start else 0
    path = folder / history.NAME
    with ExitStack() as stack:
        with writing(folder, done):
            written = stack.enter_context(history.opened(path))
            steps = history.cut(path, done)
            checkpoints.clear(folder / checkpoints.FOLDER, done)
            data = trainer.program.dataset("train")
            stand_in = data.name if data.stands_in_for else ""
            drawn = stack.enter_context(curves.opened(folder, done, stand_in))
        graph = trainer.program.graph
        live = stack.enter_context(session.fresh(graph, config(settings)))
        interrupted = stack.enter_context(interrupt_held())
        traced = None if start else tracing.of(trainer, live, folder, settings.batch_size)
        run = Run(trainer, settings, folder, live, written, drawn, interrupted, traced)
        if start:
            checkpoints.restore(trainer.saver, live, start)
        else:
            session.begin(live, session.start_of(trainer.program))
        for epoch in range(done // settings.epoch_steps, settings.epochs):
            for step in epoch_steps(run, epoch, len(steps)):
                steps.append(step)
                yield step
            yield finished(run, steps)
            steps = []


def config(settings: Settings) -> tf1.ConfigProto:
    found = session.config_of(Options())
    if settings.one_thread:
        found.inter_op_parallelism_threads = found.intra_op_parallelism_threads = 1
    return found


def epoch_steps(run: Run, epoch: int, done: int) -> Iterator[TimedStep]:
    """The steps of an epoch without the first `done`."""
    settings, trainer = run.settings, run.trainer
    step_once = trainer.train.callable(run.live)
    columns = list(session.feed_columns(trainer.program, "train").values())
    order = epochs.order(settings, epoch)
    saved = ended = time.perf_counter()
    for index in range(done, settings.epoch_steps):
        before = epoch * settings.epoch_steps + index  # steps, of the whole training
        if run.interrupted.is_set():
            save(run, before)
            raise KeyboardInterrupt
        if ended - saved > PAUSE_S:
            save(run, before)
            saved = time.perf_counter()
        rate = trainer.recipe.rate(before, settings.epoch_steps, settings.steps)
        rows = order[index * settings.batch_size :][: settings.batch_size]
        values: list[Any] = [*(column[rows] for column in columns), np.float32(rate)]
        if run.traced and before in tracing.STEPS:
            loss, *right = tracing.take(run.traced, before + 1, values)
        else:
            loss, *right = step_once(*values)
        if not math.isfinite(loss):
            raise diverged(run, f"the loss of step {before + 1:,}, in epoch {epoch + 1}, is {loss}")
        now = time.perf_counter()
        step = TimedStep(
            step=before + 1,
            loss=float(loss),
            accuracy=int(right[0]) / len(rows) if right else math.nan,
            rate=float(rate),
            seconds=now - ended,
        )
        ended = now
        with writing(run.folder, step.step):
            history.add(run.written, step)
            curves.add_step(run.drawn, step)
            if run.traced and step.step == min(tracing.STEPS.stop, settings.steps):
                tracing.write(run.traced)
        yield step


def finished(run: Run, steps: Sequence[TimedStep]) -> Epoch:
    """Test what an epoch has taught, draw it, and save it."""
    weights = finite_weights(run, steps[-1].step)
    found = evaluation.evaluate(run.trainer, run.live)
    epoch = epochs.fold(run.settings, steps, found.loss, found.accuracy)
    with writing(run.folder, epoch.step):
        history.add(run.written, epoch)
        curves.add_epoch(run.drawn, epoch)
        curves.add_weights(run.drawn, epoch.step, weights)
        if found.read is not None:
            for tag, picture in evaluation.pictures(run.trainer.program, found.read):
                curves.add_image(run.drawn, epoch.step, tag, picture)
    save(run, epoch.step)
    return epoch


def save(run: Run, step: int) -> None:
    """A checkpoint, once all that was drawn until then is safe."""
    finite_weights(run, step)
    with writing(run.folder, step):
        run.drawn.flush()
        checkpoints.save(run.trainer.saver, run.live, run.folder / checkpoints.FOLDER, step)


def finite_weights(run: Run, step: int) -> dict[str, np.ndarray]:
    """All weights by name. Raises TflabError where there is nothing worth keeping in them."""
    weights = run.live.run({weight.op.name: weight for weight in run.trainer.weights})
    for name, values in weights.items():
        if not np.isfinite(values).all():
            raise diverged(run, f"after step {step:,} not all of '{name}' are finite numbers")
    return weights


def diverged(run: Run, what: str) -> TflabError:
    return TflabError(
        f"The training diverged: {what}. A smaller learning rate would be right. The checkpoints "
        f"from before are kept in '{run.folder / checkpoints.FOLDER}'."
    )


@contextmanager
def writing(folder: Path, step: int) -> Iterator[None]:
    """What the disk refuses becomes a sentence."""
    try:
        yield
    except OSError as error:
        raise unwritten(folder, step, str(error.strerror)) from error
    except tf.errors.OpError as error:
        raise unwritten(folder, step, session.sentence(error.message)) from error


def unwritten(folder: Path, step: int, reason: str) -> TflabError:
    return TflabError(
        f"Step {step:,} cannot be written to '{folder}': {reason.rpartition('; ')[2]}. "
        "What was saved before is whole, and --resume goes on from there."
    )


@contextmanager
def interrupt_held() -> Iterator[threading.Event]:
    """The first Ctrl-C sets the event; the next raises KeyboardInterrupt, as it always does."""
    event, usual = threading.Event(), signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not usual:  # somebody else takes care of it
        yield event
        return

    def hold(*_: Any) -> None:
        signal.signal(signal.SIGINT, usual)
        event.set()

    signal.signal(signal.SIGINT, hold)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, usual)
