"""Summaries: a training as TensorBoard's Scalars, Histograms and Images show it, while it runs.

There are two runs, `train` and `test`. A value of an epoch that both have gets the same tag in
both, so that the two curves are drawn in one chart. The x axis is the number of steps done.
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
from tflab.train import prediction_images


@dataclass(frozen=True)
class EventFiles:
    """The open event files of both runs. An event file is a TFRecord file of Events."""

    train: tf.io.TFRecordWriter
    test: tf.io.TFRecordWriter
    suffix: str = ""  # of the tags of scalars and images

    def flush(self) -> None:
        """Write what is buffered, so that it is not lost with the process."""
        self.train.flush()
        self.test.flush()


@contextmanager
def opened(folder: Path, done: int, stand_in: str = "") -> Iterator[EventFiles]:
    """New event files for a training that has done `done` steps.

    `stand_in` names a data set that stands in for the model's own: every chart's tag says so.

    Values of later steps in earlier files are not shown any more. TensorBoard's reader drops them
    at the second `SessionLog.START` of a run (tensorboard/backend/event_processing/
    plugin_event_accumulator.py), its fast data server as soon as a tag returns to a step that it
    had (tensorboard/data/server/reservoir.rs).
    """
    with ExitStack() as stack:
        runs = {}
        for name in ("train", "test"):
            (folder / name).mkdir(exist_ok=True)
            # TensorBoard reads event files in the order of their names.
            file = folder / name / f"events.out.tfevents.{time.time_ns()}"
            runs[name] = tf.io.TFRecordWriter(str(file))
            stack.callback(close, runs[name])
            write(runs[name], Event(file_version="brain.Event:2"))
            start = SessionLog(status=SessionLog.START)
            write(runs[name], Event(step=done + 1, session_log=start))
        yield EventFiles(**runs, suffix=f" ({stand_in})" if stand_in else "")


def close(run: tf.io.TFRecordWriter) -> None:
    with suppress(tf.errors.OpError):  # `flush` has already reported a full disk
        run.close()


def write(run: tf.io.TFRecordWriter, event: Event) -> None:
    event.wall_time = time.time()
    run.write(event.SerializeToString())


def add_step(files: EventFiles, step: TrainingStep) -> None:
    tags = {
        "step/loss": step.loss,
        "step/accuracy": step.accuracy,
        "step/learning rate": step.rate,
    }
    add_scalars(files.train, step.step, tags, files.suffix)


def add_epoch(files: EventFiles, epoch: Epoch) -> None:
    train = {
        "epoch/loss": epoch.train_loss,
        "epoch/accuracy": epoch.train_accuracy,
        "epoch/images per second": epoch.images_per_second,
    }
    test = {"epoch/loss": epoch.test_loss, "epoch/accuracy": epoch.test_accuracy}
    add_scalars(files.train, epoch.step, train, files.suffix)
    add_scalars(files.test, epoch.step, test, files.suffix)


def add_scalars(
    run: tf.io.TFRecordWriter, step: int, tags: Mapping[str, float], suffix: str
) -> None:
    """Write one event with all scalars; unknown ones (nan) are omitted."""
    known = {f"{tag}{suffix}": value for tag, value in tags.items() if value == value}
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in known.items()]
    write(run, Event(step=step, summary=Summary(value=values)))


def add_weights(files: EventFiles, step: int, weights: Mapping[str, np.ndarray]) -> None:
    """A histogram of each variable, tagged with its name."""
    for name, values in weights.items():
        summary = Summary.FromString(histogram_pb(name, values).SerializeToString())
        write(files.train, Event(step=step, summary=summary))


def add_image(files: EventFiles, step: int, tag: str, picture: prediction_images.PngImage) -> None:
    image = Summary.Image(
        width=picture.width, height=picture.height, colorspace=3, encoded_image_string=picture.png
    )
    value = Summary.Value(tag=f"{tag}{files.suffix}", image=image)
    write(files.test, Event(step=step, summary=Summary(value=[value])))
