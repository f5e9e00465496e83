"""History: how a training is divided into epochs and steps, their totals, and the log of them.

An epoch is every row of the training data once, in an order that follows from the seed. If the rows
do not divide evenly into batches, the last batch is smaller, so the totals of an epoch are exact.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from io import FileIO
from pathlib import Path
from typing import TypeVar

import numpy as np

from tflab import untrusted
from tflab.errors import TflabError, UsageError
from tflab.records.codec import decoded, encoded
from tflab.records.trained import Epoch, History, TrainingStep

NAME = "history.jsonl"  # in the logdir


@dataclass(frozen=True)
class Settings:
    """What determines a training."""

    model: str
    data: str  # the name of the data set
    train_rows: int
    test_rows: int
    batch_size: int
    epochs: int
    seed: int  # of the initial weights and of the order

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.train_rows:
            raise UsageError(
                f"A batch of {self.batch_size:,} cannot be taken from the {self.train_rows:,} "
                f"training rows of {self.data}; choose a batch size from 1 to {self.train_rows:,}."
            )

    @property
    def epoch_steps(self) -> int:
        return math.ceil(self.train_rows / self.batch_size)

    @property
    def steps(self) -> int:
        return self.epoch_steps * self.epochs


@dataclass(frozen=True)
class TimedStep(TrainingStep):
    seconds: float  # since the end of the previous step, or the start of the epoch


def order(settings: Settings, epoch: int) -> np.ndarray:
    """The order of the rows of the training data in an epoch; epochs count from 0."""
    return np.random.default_rng((settings.seed, epoch)).permutation(settings.train_rows)


def epoch_of(
    settings: Settings, steps: Sequence[TimedStep], test_loss: float, test_accuracy: float
) -> Epoch:
    """The record of an epoch, from its steps. Each step is weighted by its number of rows.

    Traced steps take longer: the rate is that of the others.
    """
    pairs = [(step, rows_in(settings, step.step)) for step in steps]
    rows = sum(count for _, count in pairs)
    timed = [pair for pair in pairs if not pair[0].traced] or pairs
    return Epoch(
        epoch=steps[-1].step // settings.epoch_steps,
        step=steps[-1].step,
        train_loss=sum(step.loss * count for step, count in pairs) / rows,
        train_accuracy=sum(step.accuracy * count for step, count in pairs) / rows,
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        seconds=sum(step.seconds for step in steps),
        images_per_second=sum(count for _, count in timed) / sum(s.seconds for s, _ in timed),
    )


def rows_in(settings: Settings, step: int) -> int:
    """The number of rows in a step, counted from 1: the last of an epoch may have fewer."""
    before = (step - 1) % settings.epoch_steps * settings.batch_size
    return min(settings.batch_size, settings.train_rows - before)


# The log has a line of JSON for every step and epoch. The first line has the settings; later, lines
# are only added. A training that is resumed from a checkpoint writes the steps after it once more:
# readers use the later lines. If the process was killed, a line may be incomplete, and readers omit
# it.

Record = TypeVar("Record", bound=Settings | TimedStep | Epoch)


def create(path: Path, settings: Settings) -> None:
    """Start a history. Raises FileExistsError if there is one."""
    with open(path, "xb") as file:
        file.write(json_line(settings))


def opened(path: Path) -> FileIO:
    """The file to `add` to; an incomplete last line of a killed process is ended there."""
    file = FileIO(path, "a+")
    file.seek(-1, os.SEEK_END)
    if file.read() != b"\n":
        file.write(b"\n")
    return file


def add(file: FileIO, record: TimedStep | Epoch) -> None:
    """Write a record immediately, because a buffer would be lost with the process."""
    content = json_line(record)
    if file.write(content) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def json_line(record: Settings | TimedStep | Epoch) -> bytes:
    """A record as a line of JSON, which has no nan: missing values are null."""
    return json.dumps(encoded(record), allow_nan=False).encode() + b"\n"


def settings(path: Path) -> Settings:
    """The settings of the training. Raises TflabError if this is not a history."""
    try:
        first = next(whole_lines(path), b"")
    except OSError as error:
        raise TflabError(f"'{path}' cannot be read: {error.strerror}.") from error
    return parsed(path, 1, first, Settings)


def read(path: Path) -> History:
    """The whole history, without an incomplete line.

    Raises TflabError if this is not a history, or a line of it cannot be read.
    """
    header = settings(path)
    steps: list[TimedStep] = []
    epochs: list[Epoch] = []
    for record in records(path):
        drop_from(epochs, record.step)
        if isinstance(record, TimedStep):
            drop_from(steps, record.step)
            steps.append(record)
        else:
            epochs.append(record)
    return History(
        model=header.model,
        data=header.data,
        batch_size=header.batch_size,
        seed=header.seed,
        steps=tuple(steps),
        epochs=tuple(epochs),
        interrupted=len(epochs) < header.epochs,
    )


def drop_from(records: list[TimedStep] | list[Epoch], step: int) -> None:
    """Remove the records from this step on, which a resumed training repeated."""
    while records and records[-1].step >= step:
        records.pop()


def records(path: Path) -> Iterator[TimedStep | Epoch]:
    """Every record of a step or an epoch, in the order in which they were written."""
    for number, content in enumerate(whole_lines(path), 1):
        if number > 1:
            kind: type[TimedStep] | type[Epoch] = Epoch if b'"epoch"' in content else TimedStep
            yield parsed(path, number, content, kind)


def whole_lines(path: Path) -> Iterator[bytes]:
    """The lines that are complete: a record's begins and ends with a brace."""
    with untrusted.opened(path) as file:
        for content in file:
            if content.endswith(b"}\n"):
                yield content


def parsed(path: Path, number: int, content: bytes, kind: type[Record]) -> Record:
    try:
        record: Record = decoded(kind, json.loads(content))
    except (ValueError, RecursionError) as error:
        raise TflabError(
            f"Line {number} of '{path}' is not in the format of a training log: it should contain "
            f"{', '.join(item.name for item in fields(kind))}."
        ) from error
    return record
