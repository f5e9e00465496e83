"""History: the record of a training, a line of JSON for every step and epoch. No TensorFlow.

The first line holds the settings; after it, lines are only ever added. If the process is killed, at
most the last line is incomplete, and readers leave it out. A training that is resumed from a
checkpoint first removes the lines that came after that.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, fields
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from tflab import doors
from tflab.errors import TflabError
from tflab.records import Epoch, History
from tflab.train.epochs import Settings, TimedStep

NAME = "history.jsonl"  # in the logdir


Record = TypeVar("Record", bound=Settings | TimedStep | Epoch)
TYPES: dict[Any, Any] = {"str": str, "int": int, "bool": bool, "float": (float, int, type(None))}


def create(path: Path, settings: Settings) -> None:
    """Begin a history. Raises FileExistsError where there is one."""
    with open(path, "xb") as file:
        file.write(json_line(settings))


@contextmanager
def opened(path: Path) -> Iterator[FileIO]:
    """The file to `add` to, locked for this process; TflabError while another process has it.

    Windows has no such locks: there nobody is refused.
    """
    with open(path, "ab", buffering=0) as file:
        try:
            with suppress(ImportError):
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends
        except BlockingIOError as error:
            raise TflabError(
                f"The training in '{path.parent}' is still running in another process; "
                "wait for it, or stop it there."
            ) from error
        yield file


def add(file: FileIO, record: TimedStep | Epoch) -> None:
    """Write a record at once, because a buffer would not outlive the process."""
    content = json_line(record)
    if file.write(content) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def json_line(record: Settings | TimedStep | Epoch) -> bytes:
    """A record as a line of JSON, which has no nan: a value that a model does not have is null."""
    values = {key: finite_or_none(value) for key, value in asdict(record).items()}
    return json.dumps(values, allow_nan=False).encode() + b"\n"


def finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cut_after(path: Path, step: int) -> list[TimedStep]:
    """Remove all records after a step; the steps done in the unfinished epoch are returned.

    Raises TflabError when the history ends before that step.
    """
    keep, steps = header_bytes(path), []
    for end, record in records(path):
        if record.step > step:
            break
        keep = end
        if isinstance(record, TimedStep):
            steps.append(record)
    if len(steps) < step:
        raise TflabError(
            f"'{path}' ends at step {len(steps):,}, before the checkpoint of step {step:,}. Lines "
            "of it were lost, so this training cannot go on; begin another."
        )
    os.truncate(path, keep)
    per_epoch = settings(path).epoch_steps
    return steps[step // per_epoch * per_epoch :]


def settings(path: Path) -> Settings:
    """The settings of the training. Raises TflabError where this is not a history."""
    try:
        first = next(whole_lines(path), b"")
    except OSError as error:
        raise TflabError(f"'{path}' cannot be read: {error.strerror}.") from error
    return parsed(path, 1, first, Settings)


def read(path: Path) -> History:
    """The whole history. An incomplete last line, as a killed process leaves it, is left out.

    Raises TflabError where this is not a history, or a line of it cannot be read.
    """
    header = settings(path)
    after_header = [record for _, record in records(path)]
    epochs = tuple(record for record in after_header if isinstance(record, Epoch))
    return History(
        model=header.model,
        data=header.data,
        batch_size=header.batch_size,
        seed=header.seed,
        steps=tuple(record for record in after_header if isinstance(record, TimedStep)),
        epochs=epochs,
        interrupted=len(epochs) < header.epochs,
    )


def header_bytes(path: Path) -> int:
    return len(next(whole_lines(path)))


def records(path: Path) -> Iterator[tuple[int, TimedStep | Epoch]]:
    """Every record of a step or an epoch, with the offset in the file at which its line ends."""
    end = 0
    for number, content in enumerate(whole_lines(path), 1):
        end += len(content)
        if number > 1:
            kind: type[TimedStep] | type[Epoch] = Epoch if b'"epoch"' in content else TimedStep
            yield end, parsed(path, number, content, kind)


def whole_lines(path: Path) -> Iterator[bytes]:
    with doors.opened(path) as file:
        for content in file:
            if content.endswith(b"\n"):
                yield content


def parsed(path: Path, number: int, content: bytes, kind: type[Record]) -> Record:
    try:
        content_values = json.loads(content)
        values = {
            item.name: content_values[item.name]
            for item in fields(kind)
            if item.name in content_values or item.default is MISSING
        }
        fits = all(
            isinstance(values[item.name], TYPES[item.type])
            for item in fields(kind)
            if item.name in values
        )
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        raise TflabError(
            f"Line {number} of '{path}' is not as a training writes it: it should hold "
            f"{', '.join(item.name for item in fields(kind))}."
        )
    unknown: dict[str, Any] = {key: math.nan for key, value in values.items() if value is None}
    return kind(**{**values, **unknown})
