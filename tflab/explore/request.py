"""Requests of the page, checked before anything runs, and the program with which it opens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from tflab.errors import UsageError
from tflab.records.options import SWITCHES, Options

LARGEST_TEXT = 100_000  # characters of a program
MOST_ROWS = 1024
MOST_DEVICES = 4
STEPS, WARMUP = 5, 2  # enough for a median within a second of an edit
NONSENSE = "A request must be an object with the program and its switches."
# The first program of the page, if no file is given
TOY = """\
# Change a line, and see what moves.
x = tf1.placeholder(tf.float32, [None], name="x")
y = tf1.get_variable("y", initializer=2.0)
z = tf1.get_variable("z", initializer=1.0)
output = x * y + z
targets = tf1.placeholder(tf.float32, [None], name="targets")
error = tf.math.squared_difference(output, targets)
loss = tf.reduce_mean(error)
rows = np.linspace(-1, 1, 64)
feeds = {x: rows, targets: 3 * rows + 2}
"""

Message = dict[str, Any]  # an object of JSON: what page, server and worker tell each other


@dataclass(frozen=True)
class Source:
    """Where a program comes from."""

    file: str  # its name
    folder: str = ""  # that of the file, if the program is one
    function: str = ""  # of the program, that returns a model; otherwise its lines are one


@dataclass(frozen=True)
class ProgramRequest:
    """A program with its switches."""

    text: str
    batch_size: int = 16
    devices: int = 1
    xla: bool = False
    without: tuple[str, ...] = ()  # graph passes that are switched off
    predict: bool = False  # whether questions are wanted

    @property
    def options(self) -> Options:
        return Options(
            batch_size=self.batch_size,
            steps=STEPS,
            warmup=WARMUP,
            devices=self.devices,
            xla=self.xla,
            without=self.without,
            first_run=False,
            values=False,  # they follow as a separate stage
        )


def read(given: object) -> ProgramRequest:
    """Return the record of a request. Raises UsageError for anything that the page cannot send."""
    known = {field.name for field in fields(ProgramRequest)}
    if not isinstance(given, Mapping) or "text" not in given or not {*given} <= known:
        raise UsageError(NONSENSE)
    request = ProgramRequest(**given)
    if [*map(type, (request.text, request.xla, request.predict))] != [str, bool, bool]:
        raise UsageError(NONSENSE)
    without = request.without
    if not isinstance(without, (list, tuple)) or not {*map(str, without)} <= {*SWITCHES}:
        raise UsageError(f"There is no such graph pass: {str(without)[:80]}.")
    if (size := len(request.text)) > LARGEST_TEXT:
        raise UsageError(
            f"The program has {size:,} characters; it may have at most {LARGEST_TEXT:,}."
        )
    if type(request.batch_size) is not int or not 1 <= request.batch_size <= MOST_ROWS:
        raise UsageError(f"A batch must have 1 to {MOST_ROWS} rows.")
    if type(request.devices) is not int or not 1 <= request.devices <= MOST_DEVICES:
        raise UsageError(f"The number of devices must be from 1 to {MOST_DEVICES}.")
    return replace(request, without=tuple(without))


def text_of(path: Path) -> str:
    """Return the text of a program. Raises UsageError if there is none that the page can show."""
    try:
        if path.stat().st_size > LARGEST_TEXT:
            raise UsageError(
                f"'{path}' is too large for the page, which takes {LARGEST_TEXT:,} characters."
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is not UTF-8 text.") from error


def mark(text: str) -> str:
    """Return a short hash that distinguishes texts."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
