"""Summaries: what TensorBoard shows of a training while it runs.

There are two runs, `train` and `test`. A value of an epoch that both have gets the same tag in
both, so that the two curves are drawn in one chart. The x axis is the number of steps done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorboard.plugins.histogram.summary import histogram_pb
from tensorflow.compat.v1 import Event, SessionLog, Summary

from tflab.exporters import tensorboard, xspace
from tflab.lifecycle import captures
from tflab.records.options import Program
from tflab.records.timed import StepTime
from tflab.records.trained import Epoch, TrainingStep
from tflab.runtime import measure, session
from tflab.train import prediction_images
from tflab.train.trainer import Trainer


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
    finite = {f"{tag}{suffix}": value for tag, value in tags.items() if value == value}
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in finite.items()]
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


# Graphs and Profile: some of the first steps of a training are traced. Tracing does not change what
# they compute.

WARM = measure.WARMUP_STEPS
TRACED = range(WARM, WARM + captures.STEPS)  # of a training, counted from 0


@dataclass(frozen=True)
class TracedSteps:
    program: Program
    folder: Path  # of the training
    batch_size: int
    step: Any  # a callable of `Step`
    taken: list[tuple[StepTime, Any]] = field(default_factory=list)


def begin_tracing(
    trainer: Trainer, live: tf1.Session, folder: Path, batch_size: int
) -> TracedSteps:
    step = trainer.train.callable(
        live, trace_level=session.trace_level(), output_partition_graphs=True
    )
    return TracedSteps(trainer.program, folder, batch_size, step)


def run_traced(tracing: TracedSteps, number: int, values: Sequence[Any]) -> list[Any]:
    """Run a step with tracing; return what it fetched."""
    fetched: list[Any] = []

    def run(*fed: Any, **options: Any) -> None:
        fetched.extend(tracing.step(*fed, **options))

    timed, recorded = session.timed_step(run, values, number)
    tracing.taken.append((timed, recorded.parsed()))
    return fetched


def write_traces(tracing: TracedSteps) -> None:
    """Write the graph that ran, coloured by its last step, and all steps as a profile; then release
    the traces.

    A training with no more steps than those of the warm-up has none.
    """
    if not tracing.taken:
        return
    program, batch_size = tracing.program, tracing.batch_size
    metadata = tracing.taken[-1][1]
    types = {node.name: node.op for graph in metadata.partition_graphs for node in graph.node}
    traces = [(tensorboard.tag(program, batch_size), batch_size, metadata)]
    tensorboard.write_executed(tracing.folder, metadata.partition_graphs, traces)
    name = captures.capture_name(program, batch_size)
    xspace.write(tracing.folder, [captures.captured_of(name, tracing.taken, types)])
    tracing.taken.clear()
