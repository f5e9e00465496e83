"""Inputs: existing files for a report, checked before anything is measured."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tflab.errors import TflabError, UsageError
from tflab.records.measurements import Measurement
from tflab.records.options import BATCH_SIZES
from tflab.records.trained import History


def measurements(paths: Sequence[str], model: str) -> Mapping[str, Measurement]:
    """The measurements to compare with. Raises UsageError, before anything is measured, for
    files that cannot be compared."""
    from tflab.compare import kept

    found = kept.read_all(paths)
    for name, measurement in found.items():
        of = measurement.comparison
        if of.model != Path(model).name and of.model != model:
            raise UsageError(f"'{name}' is a measurement of '{of.model}', not of '{model}'.")
        if (of.phase, of.by) != ("inference", "op") or not {*BATCH_SIZES} & {*of.batch_sizes}:
            raise UsageError(
                f"'{name}' cannot be compared with a report: a report measures inference by op at "
                f"batch sizes {', '.join(map(str, BATCH_SIZES))}, and this is {of.phase} by "
                f"{of.by} at {', '.join(map(str, of.batch_sizes))}."
            )
    return found


def training(logdir: str, model: str) -> History:
    """The history of an existing training. Raises UsageError if it cannot be used."""
    from tflab.train import history

    path = Path(logdir) / history.NAME
    if not path.is_file():
        raise UsageError(
            f"The logdir '{logdir}' is not from a training: it has no {history.NAME}. Give one "
            "that `python -m tflab.train` wrote."
        )
    try:
        trained = history.read(path)
    except TflabError as error:
        raise UsageError(str(error)) from error
    if trained.model != model:
        raise UsageError(
            f"The training in '{logdir}' is of '{trained.model}', not of '{model}'; give "
            f"--model {trained.model}, or another logdir."
        )
    if not trained.epochs:
        raise UsageError(
            f"The training in '{logdir}' has not finished an epoch. Continue it with `python -m "
            f"tflab.train --resume --logdir {shlex.quote(logdir)}`."
        )
    return trained
