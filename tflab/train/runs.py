"""Runs: the folder of a training: a new one, or that of a training to go on with."""

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
from tflab.train.epochs import Settings
from tflab.train.trainer import Trainer, drawing

RATES = " The learning rate of every step depends on the number of epochs."
SHOWN = 5  # differences between variables; one layer more is one thing to say


def begin(logdir: str | None, trainer: Trainer, settings: Settings) -> Path:
    """A new folder, with the graph and a history without steps. Raises UsageError."""
    folder = logdirs.choose(logdir, f"{settings.model}-train")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        history.create(folder / history.NAME, settings)
    except OSError as error:
        raise logdirs.unwritable(folder, error) from error
    tensorboard.write_graph(folder, trainer.program)
    return folder


def find(root: Path, model: str) -> Path:
    """The training to go on with: the folder itself, else the newest of this model in it."""
    if (root / history.NAME).exists():
        return root
    histories = root.glob(f"*/{history.NAME}")
    for path in sorted(histories, key=lambda path: path.stat().st_mtime, reverse=True):
        with suppress(TflabError):
            if history.settings(path).model == model:
                return path.parent
    raise UsageError(
        f"There is no training of '{model}' in '{root}' to go on with; "
        "leave out --resume to begin one."
    )


def check_own(folder: Path, seen: Settings) -> None:
    """Raise UsageError for a model that is not tflab's: a file does not decide what is imported."""
    if seen.model not in models.MODELS:
        raise UsageError(
            f"The training in '{folder}' is of '{seen.model}', which is not one of tflab's own "
            f"models; give --model '{seen.model}' as well."
        )


def check_same(folder: Path, seen: Settings, now: Settings) -> None:
    """Raise UsageError with every setting that is another one than before."""
    differences = [
        f"{item.name.replace('_', ' ')}: seen {getattr(seen, item.name)}, "
        f"now given {getattr(now, item.name)}"
        for item in fields(seen)
        if getattr(seen, item.name) != getattr(now, item.name)
    ]
    if differences:
        why = RATES if seen.epochs != now.epochs else ""
        raise UsageError(
            f"The training in '{folder}' goes on as it began, or not at all: "
            f"{'; '.join(differences)}.{why} Begin anew without --resume."
        )


def start_of(
    folder: Path, trainer: Trainer, settings: Settings
) -> tuple[Checkpoint | None, list[str]]:
    """The newest whole checkpoint, or None to begin anew; and what there is to say about it."""
    start, notes = checkpoints.newest(folder / checkpoints.FOLDER)
    if start:
        differences = checkpoints.differences(start, trainer.program.graph)
        if differences:
            raise UsageError(
                f"The variables in '{folder}' are those of another network: "
                f"{'; '.join(differences[:SHOWN])}{'; ...' if differences[SHOWN:] else ''}."
            )
    done = start.step if start else 0
    notes.append(f"Going on in '{folder}': {done:,} of {settings.steps:,} steps are done.")
    nodes = drawing(trainer)
    if done and nodes:
        notes.append(
            f"The numbers that '{nodes[0]}' draws begin anew, because the runtime does not say "
            "how far they had come: the training goes on as well, but not to the same bits."
        )
    return start, notes
