"""Summaries: what TensorBoard shows of a training while it runs.

There are two runs, `train` and `test`. A value of an epoch that both have gets the same tag in
both, so that the two curves are drawn in one chart. The x axis is the number of steps done.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tensorflow.compat.v1 as tf1
from tensorboard.plugins.histogram.summary import histogram_pb
from tensorflow.compat.v1 import SessionLog, Summary

from tflab.cli import environment
from tflab.datasets import Dataset
from tflab.records.measured import Epoch, TrainingStep
from tflab.records.options import Program

if TYPE_CHECKING:
    from PIL.Image import Image

DISK_ERRORS = (RuntimeError, IndexError)  # what FileWriter raises (TensorFlow 2.21)


@dataclass(frozen=True)
class EventFiles:
    """The open event files of both runs."""

    train: tf1.summary.FileWriter
    test: tf1.summary.FileWriter
    suffix: str = ""  # of the tags of scalars and images


@contextmanager
def opened(folder: Path, done: int, data: Dataset) -> Iterator[EventFiles]:
    """Open new event files for a training that has done `done` steps. If the data are not the
    model's own, the tags of all charts have a mark.

    TensorBoard no longer shows later steps from earlier files: it drops them at the second
    `SessionLog.START` of a run (tensorboard/backend/event_processing/plugin_event_accumulator.py).
    """
    # TensorBoard reads the files of a run in the order of their names, which have seconds.
    name_suffix = f".{done:09}"
    hook = threading.excepthook
    # The thread of a writer raises an error of the disk, and `flush` raises it again.
    threading.excepthook = lambda failed: failed.exc_type in DISK_ERRORS or hook(failed)
    with tf1.Graph().as_default():  # a writer refuses to be made in eager mode
        train, test = (
            tf1.summary.FileWriter(str(folder / run), filename_suffix=name_suffix)
            for run in ("train", "test")
        )
    try:
        for writer in (train, test):
            writer.add_session_log(SessionLog(status=SessionLog.START), done + 1)
        yield EventFiles(train, test, f" ({data.name})" if data.stands_in_for else "")
    finally:
        for writer in (train, test):
            with suppress(*DISK_ERRORS):  # reported by `flush`
                writer.close()
        threading.excepthook = hook


def add_step(files: EventFiles, step: TrainingStep) -> None:
    tags = {"step/loss": step.loss, "step/accuracy": step.accuracy, "step/learning rate": step.rate}
    add_scalars(files.train, step.step, tags, files.suffix)


def add_epoch(files: EventFiles, epoch: Epoch) -> None:
    train = {"epoch/loss": epoch.train_loss, "epoch/accuracy": epoch.train_accuracy}
    rate = {"epoch/images per second": epoch.images_per_second}
    test = {"epoch/loss": epoch.test_loss, "epoch/accuracy": epoch.test_accuracy}
    add_scalars(files.train, epoch.step, train | rate, files.suffix)
    add_scalars(files.test, epoch.step, test, files.suffix)


def add_scalars(
    writer: tf1.summary.FileWriter, step: int, tags: Mapping[str, float], suffix: str
) -> None:
    """Write one event with all scalars; unknown ones (nan) are omitted."""
    finite = {f"{tag}{suffix}": value for tag, value in tags.items() if value == value}
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in finite.items()]
    writer.add_summary(Summary(value=values), step)


def add_weights(files: EventFiles, step: int, weights: Mapping[str, np.ndarray]) -> None:
    """Write a histogram of each variable. The prefix of the tags puts them behind the scalars."""
    for name, values in weights.items():
        histogram = histogram_pb(f"weights/{name}", values)
        files.train.add_summary(histogram.SerializeToString(), step)


def add_image(files: EventFiles, step: int, tag: str, picture: Image) -> None:
    picture.save(png := io.BytesIO(), "PNG")
    width, height = picture.size
    image = Summary.Image(width=width, height=height, encoded_image_string=png.getvalue())
    value = Summary.Value(tag=f"{tag}{files.suffix}", image=image)
    files.test.add_summary(Summary(value=[value]), step)


# Images with the model's predictions

# A picture is as wide as TensorBoard shows it, so that its letters keep their size
SHOWN, COLUMNS = 20, 4  # images in a picture, and in a row
SIDE, FRAME, GAP, CAPTION = 70, 4, 9, 44  # pixels: an image, its frame, between two, below one
RIGHT, WRONG = "#009E73", "#D55E00"
LETTERS = 15  # pixels, the height of letters


def pictures(program: Program, predicted: np.ndarray) -> Iterator[tuple[str, Image]]:
    """Yield pictures of the first test images and of the first mistakes, if Pillow is installed and
    the model classifies images [n, height, width, 1 or 3]."""
    columns = program.dataset("test").columns
    fed = [columns[name] for name in program.model.feeds.values()]
    arrays = (column for column in fed if isinstance(column, np.ndarray) and column.ndim == 4)
    images = next((array for array in arrays if array.shape[-1] in (1, 3)), None)
    if images is None or predicted.ndim > 1 or environment.missing("PIL"):
        return
    labels = columns["labels"]
    mistakes = np.flatnonzero(predicted != labels)
    for tag, rows in (("first", np.arange(len(predicted))[:SHOWN]), ("mistakes", mistakes[:SHOWN])):
        if len(rows):
            yield f"predictions/{tag}", draw(images[rows], predicted[rows], labels[rows])


def draw(images: np.ndarray, predicted: np.ndarray, labels: np.ndarray) -> Image:
    """Draw images [n, height, width, 1 or 3] of any range. Below a wrong one stands
    `predicted 9` and `but is 7`. The least value is black, the greatest white."""
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    least, most = float(images.min()), float(images.max())
    scaled = ((images - least) * (255 / ((most - least) or 1))).astype(np.uint8)
    width, height = SIDE + 2 * FRAME + GAP, SIDE + 2 * FRAME + CAPTION
    rows = -(-len(images) // COLUMNS)
    sheet = Image.new("RGB", (min(COLUMNS, len(images)) * width, rows * height), "white")
    brush, font = ImageDraw.Draw(sheet), ImageFont.load_default(LETTERS)
    for index, image in enumerate(np.broadcast_to(scaled, (*images.shape[:3], 3))):
        row, column = divmod(index, COLUMNS)
        found, label = int(predicted[index]), int(labels[index])
        colour, truth = (RIGHT, "right") if found == label else (WRONG, f"but is {label}")
        picture = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
        sheet.paste(ImageOps.expand(picture, FRAME, colour), (column * width, row * height))
        top = (column * width + FRAME + SIDE // 2, (row + 1) * height - CAPTION + 1)
        words = f"predicted {found}\n{truth}"
        brush.multiline_text(top, words, "black", font, "ma", spacing=2, align="center")
    return sheet
