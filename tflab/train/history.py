"""History: the log of a training, a line of JSON for every step and epoch.

The first line has the settings; later, lines are only added. A training that is resumed from a
checkpoint writes the steps after it once more: readers use the later lines. If the process was
killed, a line may be incomplete, and readers omit it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import fields
from io import FileIO
from pathlib import Path
from typing import TypeVar

from tflab import untrusted
from tflab.errors import TflabError
from tflab.measurements.decoding import decoded, encoded
from tflab.records.trained import Epoch, History
from tflab.train.epochs import Settings, TimedStep

NAME = "history.jsonl"  # in the logdir


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
