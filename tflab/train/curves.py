"""Curves: a training as TensorBoard's Scalars, Histograms and Images show it, while it runs.

There are two runs, `train` and `test`. What both know of an epoch has the same tag in both, so that
the two curves lie in one chart. The axis is always the number of steps that were done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorboard.plugins.histogram.summary import histogram_pb
from tensorflow.compat.v1 import Event, SessionLog, Summary

from tflab.records import Epoch, TrainingStep
from tflab.train import gallery


@dataclass(frozen=True)
class Curves:
    """The event files of both runs, open. An event file is a TFRecord file of Events."""

    train: tf.io.TFRecordWriter
    test: tf.io.TFRecordWriter
    mark: str = ""  # at the end of the tags of scalars and images

    def flush(self) -> None:
        """Hand all over to the system, where it outlives the process."""
        self.train.flush()
        self.test.flush()


@contextmanager
def opened(folder: Path, done: int, stand_in: str = "") -> Iterator[Curves]:
    """New event files for a training that has `done` steps behind it.

    `stand_in` names data that are not the ones that were asked for: every chart says so.

    What earlier files tell of later steps is not shown again. TensorBoard's reader drops it at
    the second `SessionLog.START` of a run (tensorboard/backend/event_processing/
    plugin_event_accumulator.py), its fast data server as soon as a tag comes back to a step that
    it had (tensorboard/data/server/reservoir.rs).
    """
    with ExitStack() as stack:
        runs = {}
        for name in ("train", "test"):
            (folder / name).mkdir(exist_ok=True)
            # TensorBoard reads them in the order of their names.
            file = folder / name / f"events.out.tfevents.{time.time_ns()}"
            runs[name] = tf.io.TFRecordWriter(str(file))
            stack.callback(close, runs[name])
            write(runs[name], Event(file_version="brain.Event:2"))
            start = SessionLog(status=SessionLog.START)
            write(runs[name], Event(step=done + 1, session_log=start))
        yield Curves(**runs, mark=f" ({stand_in})" if stand_in else "")


def close(run: tf.io.TFRecordWriter) -> None:
    with suppress(tf.errors.OpError):  # a full disk was told of when `flush` met it
        run.close()


def write(run: tf.io.TFRecordWriter, event: Event) -> None:
    event.wall_time = time.time()
    run.write(event.SerializeToString())


def add_step(curves: Curves, step: TrainingStep) -> None:
    tags = {
        "step/loss": step.loss,
        "step/accuracy": step.accuracy,
        "step/learning rate": step.rate,
    }
    add_scalars(curves.train, step.step, tags, curves.mark)


def add_epoch(curves: Curves, epoch: Epoch) -> None:
    train = {
        "epoch/loss": epoch.train_loss,
        "epoch/accuracy": epoch.train_accuracy,
        "epoch/images per second": epoch.images_per_second,
    }
    test = {"epoch/loss": epoch.test_loss, "epoch/accuracy": epoch.test_accuracy}
    add_scalars(curves.train, epoch.step, train, curves.mark)
    add_scalars(curves.test, epoch.step, test, curves.mark)


def add_scalars(run: tf.io.TFRecordWriter, step: int, tags: Mapping[str, float], mark: str) -> None:
    """One event for all; what is not known (nan) is left out."""
    known = {f"{tag}{mark}": value for tag, value in tags.items() if value == value}
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in known.items()]
    write(run, Event(step=step, summary=Summary(value=values)))


def add_weights(curves: Curves, step: int, weights: Mapping[str, np.ndarray]) -> None:
    """A histogram of each variable, tagged with its name."""
    for name, values in weights.items():
        summary = Summary.FromString(histogram_pb(name, values).SerializeToString())
        write(curves.train, Event(step=step, summary=summary))


def add_image(curves: Curves, step: int, tag: str, picture: gallery.Picture) -> None:
    image = Summary.Image(
        width=picture.width, height=picture.height, colorspace=3, encoded_image_string=picture.png
    )
    value = Summary.Value(tag=f"{tag}{curves.mark}", image=image)
    write(curves.test, Event(step=step, summary=Summary(value=[value])))
