"""Finder: the origin of the NaN or Inf of a training.

While a training runs, all of its variables are copied from time to time. If a loss or a weight is
not finite, the steps since the last copy are repeated, on the same batches, and the first step that
makes a non-finite value is recorded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.lifecycle import graph_copies, not_finite
from tflab.train.trainer import Trainer
from tflab.units import plural
from tflab.views import values as view

PAUSES = 50  # the time until the next copy, as a multiple of the time that copying takes
SHOWN = 3  # origins

Arrays = dict[str, np.ndarray]
Batch = Callable[[int], Sequence[Any]]  # number of the step, from 0 -> its feeds


@dataclass
class Kept:
    """The newest copy of the variables, all of them finite."""

    trainer: Trainer
    live: tf1.Session
    step: int = 0  # number of steps before it
    variables: Arrays = field(default_factory=dict)
    next_s: float = 0.0  # on the clock of `time.perf_counter`, when to copy again

    def copy(self, step: int) -> str | None:
        """Copy the variables; returns the name of one that is not finite, if there is one."""
        start = time.perf_counter()
        now = read(self.trainer, self.live)
        if name := next((name for name, value in now.items() if not finite(value)), None):
            return name
        self.step, self.variables = step, now
        end = time.perf_counter()
        self.next_s = end + PAUSES * (end - start)
        return None


def read(trainer: Trainer, live: tf1.Session) -> Arrays:
    """All variables, including those of the optimiser."""
    variables = trainer.program.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    return {name: np.array(v) for name, v in live.run({v.op.name: v for v in variables}).items()}


def finite(value: np.ndarray) -> bool:
    return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())


def find(kept: Kept, batch: Batch, until: int) -> str:
    """Repeat the steps since the copy up to this number of steps, and say from what the first of
    them that makes a non-finite value made it."""
    trainer = kept.trainer
    try:
        number, start = first_bad(kept, batch, until)
        if number is None:
            return (
                f"When the last {plural(until - kept.step, 'step')} were repeated, all values "
                "stayed finite: the order of additions or the random numbers differ from run to "
                "run."
            )
        origins = not_finite.of_step(
            trainer.program, trainer.train, batch(number), start, trainer.options
        )
    except TflabError as error:
        return f"Its origin was not found: {error}"
    if not origins:
        return f"Step {number + 1:,}, recorded from the weights before it, stayed finite."
    more = f" Other origins: {len(origins) - SHOWN:,}." if len(origins) > SHOWN else ""
    return f"In step {number + 1:,}: {' '.join(map(view.origin, origins[:SHOWN]))}{more}"


def first_bad(kept: Kept, batch: Batch, until: int) -> tuple[int | None, Arrays]:
    """The first of these steps whose loss, or a variable after it, is not finite; and the
    variables before it."""
    variables = kept.trainer.program.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    setters = {
        variable.initializer.name: kept.variables[variable.op.name] for variable in variables
    }
    graph_copies.assign(kept.live, setters)
    step_once = kept.trainer.train.callable(kept.live)
    start = kept.variables
    for number in range(kept.step, until):
        loss, *_ = step_once(*batch(number))
        after = read(kept.trainer, kept.live)
        if not math.isfinite(loss) or not all(map(finite, after.values())):
            return number, start
        start = after
    return None, start
