"""Folders: the folder of a new training, or of one to resume."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from tflab import models
from tflab.cli import logdirs
from tflab.errors import TflabError, UsageError
from tflab.exporters import tensorboard
from tflab.train import checkpoints, history
from tflab.train.checkpoints import Checkpoint
from tflab.train.history import Settings
from tflab.train.trainer import Trainer

RATES = " The learning rate of every step depends on the number of epochs."
RESTORED = (
    "Restored: all variables and the order of the rows. Not restored: the state of random ops, "
    "such as dropout, which start again."
)


def begin_training(logdir: str | None, trainer: Trainer, settings: Settings) -> Path:
    """Create a folder with the graph and a history without steps. Raises UsageError."""
    folder = logdirs.choose(logdir, f"{settings.model}-train")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        history.create(folder / history.NAME, settings)
    except OSError as error:
        raise logdirs.unwritable(folder, error) from error
    tensorboard.write_graph(folder, trainer.program)
    return folder


def find_training(root: Path, model: str) -> Path:
    """The folder to resume: `root` itself, else the newest training of this model in it."""
    if (root / history.NAME).exists():
        return root
    histories = root.glob(f"*/{history.NAME}")
    for path in sorted(histories, key=lambda path: path.stat().st_mtime, reverse=True):
        with suppress(TflabError):
            if history.settings(path).model == model:
                return path.parent
    raise UsageError(
        f"There is no training of '{model}' in '{root}' to continue. Omit --resume to start one."
    )


def check_own_model(folder: Path, saved: Settings) -> None:
    """Raise UsageError for a model that is not tflab's: a file must not decide what is imported."""
    if saved.model not in models.MODELS:
        raise UsageError(
            f"The training in '{folder}' is of '{saved.model}', which is not a built-in model. "
            f"Give --model '{saved.model}' as well."
        )


def check_same_settings(folder: Path, saved: Settings, given: Settings) -> None:
    """Raise UsageError that lists every setting that differs from the saved one."""
    differences = [
        f"{item.name.replace('_', ' ')}: {getattr(saved, item.name)} before, "
        f"{getattr(given, item.name)} now"
        for item in fields(saved)
        if getattr(saved, item.name) != getattr(given, item.name)
    ]
    if differences:
        why = RATES if saved.epochs != given.epochs else ""
        raise UsageError(
            f"The training in '{folder}' can continue only with the same settings: "
            f"{'; '.join(differences)}.{why} To start again, omit --resume."
        )


def checkpoint_to_resume(folder: Path, settings: Settings) -> tuple[Checkpoint | None, str]:
    """The newest checkpoint, or None to begin anew; and what it restores."""
    start = checkpoints.newest(folder / checkpoints.FOLDER)
    done = start.step if start else 0
    note = f"Continuing in '{folder}': {done:,} of {settings.steps:,} steps are done."
    return start, f"{note} {RESTORED}" if 0 < done < settings.steps else note
