"""Requests of the page, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tflab.errors import UsageError
from tflab.records.options import SWITCHES, Options

NO_OPTIMISER = "none: gradients only"
OPTIMISERS = ("gradient descent", "momentum", "Adam", NO_OPTIMISER)
LARGEST_TEXT = 100_000  # characters of a program
MOST_ROWS = 1024
MOST_DEVICES = 4
STEPS, WARMUP = 5, 2  # enough for a median within a second of an edit


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
    optimiser: str = OPTIMISERS[0]
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
    """Return the record for an object of JSON. Raises UsageError for anything that the page does
    not send."""
    known = {field.name for field in fields(ProgramRequest)}
    if not isinstance(given, Mapping) or "text" not in given or not {*given} <= known:
        raise UsageError("A request must be an object with the program and its switches.")
    without = given.get("without", [])
    if not isinstance(without, list) or not {*map(str, without)} <= {*SWITCHES}:
        raise UsageError(f"There is no such graph pass: {str(without)[:80]}.")
    request = ProgramRequest(**{**given, "without": tuple(without)})
    if not isinstance(request.text, str):
        raise UsageError("The program has to be text.")
    size = len(request.text)
    for right, sentence in (
        (
            size <= LARGEST_TEXT,
            f"The program has {size:,} characters; it may have at most {LARGEST_TEXT:,}.",
        ),
        (request.optimiser in OPTIMISERS, f"There is no optimiser '{request.optimiser}'."),
        (is_count(request.batch_size, MOST_ROWS), f"A batch must have 1 to {MOST_ROWS} rows."),
        (
            is_count(request.devices, MOST_DEVICES),
            f"The number of devices must be from 1 to {MOST_DEVICES}.",
        ),
        (isinstance(request.xla, bool), "XLA must be on or off."),
        (isinstance(request.predict, bool), "Predict first must be on or off."),
    ):
        if not right:
            raise UsageError(sentence)
    return request


def is_count(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
