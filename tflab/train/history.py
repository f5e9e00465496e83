"""History: what a training wrote down, a line of JSON for every step and epoch. No TensorFlow.

The first line says what was trained, on what, and how; after it, lines are only ever added.
Whatever ends the process costs at most half of the last line, which readers leave out. A training
that goes on from a checkpoint first cuts off what came after it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from tflab.errors import TflabError
from tflab.records import Epoch, History
from tflab.train.epochs import Settings, TimedStep

NAME = "history.jsonl"  # in the logdir


Record = TypeVar("Record", bound=Settings | TimedStep | Epoch)
TYPES: dict[Any, Any] = {"str": str, "int": int, "bool": bool, "float": (float, int, type(None))}


def create(path: Path, settings: Settings) -> None:
    """Begin a history. Raises FileExistsError where there is one."""
    with open(path, "xb") as file:
        file.write(line(settings))


@contextmanager
def opened(path: Path) -> Iterator[FileIO]:
    """The file to `add` to, for this process alone; TflabError while another one has it."""
    with open(path, "ab", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it ends with the process
        except BlockingIOError as error:
            raise TflabError(
                f"The training in '{path.parent}' is still running in another process; "
                "wait for it, or stop it there."
            ) from error
        yield file


def add(file: FileIO, record: TimedStep | Epoch) -> None:
    """Write a record down at once: what is left in a buffer would not outlive the process."""
    content = line(record)
    if file.write(content) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def line(record: Settings | TimedStep | Epoch) -> bytes:
    """JSON has no word for nan, which stands for what a model does not tell: it becomes null."""
    values = {key: known(value) for key, value in asdict(record).items()}
    return json.dumps(values, allow_nan=False).encode() + b"\n"


def known(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cut(path: Path, step: int) -> list[TimedStep]:
    """Cut off what came after a step; the steps until then of the epoch that it is in.

    Raises TflabError when the history does not reach that far.
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
    """What was trained, on what, and how. Raises TflabError where this is not a history."""
    try:
        first = next(whole_lines(path), b"")
    except OSError as error:
        raise TflabError(f"'{path}' cannot be read: {error.strerror}.") from error
    return parsed(path, 1, first, Settings)


def read(path: Path) -> History:
    """The whole history. Half a last line, as a killed process may leave it, is left out.

    Raises TflabError where this is not a history, or a line of it cannot be read.
    """
    seen = settings(path)
    found = [record for _, record in records(path)]
    epochs = tuple(record for record in found if isinstance(record, Epoch))
    return History(
        model=seen.model,
        data=seen.data,
        batch_size=seen.batch_size,
        seed=seen.seed,
        steps=tuple(record for record in found if isinstance(record, TimedStep)),
        epochs=epochs,
        interrupted=len(epochs) < seen.epochs,
    )


def header_bytes(path: Path) -> int:
    return len(next(whole_lines(path)))


def records(path: Path) -> Iterator[tuple[int, TimedStep | Epoch]]:
    """Every record, with the place in the file at which its line ends."""
    end = 0
    for number, content in enumerate(whole_lines(path), 1):
        end += len(content)
        if number > 1:
            kind: type[TimedStep] | type[Epoch] = Epoch if b'"epoch"' in content else TimedStep
            yield end, parsed(path, number, content, kind)


def whole_lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        for content in file:
            if content.endswith(b"\n"):
                yield content


def parsed(path: Path, number: int, content: bytes, kind: type[Record]) -> Record:
    try:
        found = json.loads(content)
        values = {item.name: found[item.name] for item in fields(kind)}
        fits = all(isinstance(values[item.name], TYPES[item.type]) for item in fields(kind))
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        raise TflabError(
            f"Line {number} of '{path}' is not as a training writes it: it should hold "
            f"{', '.join(item.name for item in fields(kind))}."
        )
    unknown: dict[str, Any] = {key: math.nan for key, value in values.items() if value is None}
    return kind(**{**values, **unknown})
