"""Checkpoints: the folder of a training, its settings, and all variables after each epoch.

`tf.compat.v1.train.Saver` writes both files of a checkpoint under temporary names and renames them,
the index last, and then the file `checkpoint`, which names the newest one (seen in the system calls
of TensorFlow 2.21). So if the process is killed meanwhile, the previous checkpoint is unchanged.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import models, untrusted
from tflab.cli import output_paths
from tflab.errors import TflabError, UsageError
from tflab.exporters import tensorboard
from tflab.records.codec import decoded, encoded
from tflab.records.options import Program
from tflab.records.trained import Settings
from tflab.runtime import refusals

SETTINGS = "settings.json"  # in the logdir
FOLDER = "checkpoints"  # in the logdir
STATE = "checkpoint"  # in the folder: names the newest checkpoint
KEPT = 3  # the newest ones
LARGEST = 2**16  # bytes of the settings
RATES = " The learning rate of every step depends on the number of epochs."
RESTORED = (
    "Restored: all variables and the order of the rows. Not restored: the state of random ops, "
    "such as dropout, which start again."
)


@dataclass(frozen=True)
class Checkpoint:
    step: int  # number of steps done before it
    path: str  # without the suffixes of its files


def begin_training(logdir: str | None, program: Program, settings: Settings) -> Path:
    """Create a folder with the settings and the graph. Raises UsageError."""
    folder = output_paths.choose_run_folder(logdir, f"{settings.model}-train")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / SETTINGS).open("x") as file:
            json.dump(encoded(settings), file, indent=1)
    except OSError as error:
        raise output_paths.unwritable(folder, "logdir", error) from error
    tensorboard.write_graph(folder, program.graph)
    return folder


def find_training(root: Path, model: str) -> tuple[Path, Settings]:
    """Return the folder to resume and its settings: `root` itself, else the newest training of this
    model in it."""
    if (root / SETTINGS).exists():
        return root, read_settings(root)
    paths = root.glob(f"*/{SETTINGS}")
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
        with suppress(TflabError):
            settings = read_settings(path.parent)
            if settings.model == model:
                return path.parent, settings
    raise UsageError(
        f"There is no training of '{model}' in '{root}' to continue. Omit --resume to start one."
    )


def read_settings(folder: Path) -> Settings:
    """Return the settings of the training in a folder. Raises TflabError if it has none."""
    path = folder / SETTINGS
    try:
        settings: Settings = decoded(Settings, json.loads(untrusted.content(path, LARGEST)))
    except OSError as error:
        raise TflabError(f"'{path}' cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise TflabError(
            f"'{path}' does not hold the settings of a training: it should be an object with "
            f"{', '.join(item.name for item in fields(Settings))}."
        ) from error
    return settings


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


def newest(folder: Path, settings: Settings) -> Checkpoint | None:
    """Return the newest checkpoint of a training, or None before the end of its first epoch.

    Raises TflabError if the folder of the checkpoints is damaged, or another program's.
    """
    checkpoints = folder / FOLDER
    if not (checkpoints / STATE).exists():
        return None
    path = None
    with suppress(ValueError):  # the file holds something else
        path = tf.train.latest_checkpoint(str(checkpoints))
    if path is None:
        raise unusable(checkpoints, f"the file '{STATE}' in it names no complete checkpoint")
    number = path.rpartition("-")[2]
    if not number.isdecimal() or int(number) % settings.epoch_steps or int(number) > settings.steps:
        raise unusable(path, "its number is not that of the last step of an epoch")
    return Checkpoint(int(number), path)


def progress(folder: Path, settings: Settings, start: Checkpoint | None) -> str:
    """Say how much of a training is done, and what its checkpoint restores."""
    done = start.step if start else 0
    note = f"Continuing in '{folder}': {done:,} of {settings.steps:,} steps are done."
    return f"{note} {RESTORED}" if 0 < done < settings.steps else note


def saver(graph: tf.Graph) -> tf1.train.Saver:
    """Add the ops that save and restore all variables of the graph, slots and counters included."""
    with graph.as_default():
        return tf1.train.Saver(max_to_keep=KEPT, save_relative_paths=True)


def save(saver: tf1.train.Saver, session: tf1.Session, folder: Path, step: int) -> None:
    """Write a checkpoint, then remove the oldest. Raises OSError or tf.errors.OpError."""
    (folder / FOLDER).mkdir(exist_ok=True)
    prefix = str(folder / FOLDER / "step")
    with session.graph.as_default():  # outside of a graph the saver would run eagerly
        saver.save(session, prefix, global_step=step, write_meta_graph=False)


def restore(saver: tf1.train.Saver, session: tf1.Session, start: Checkpoint) -> None:
    """Give all variables the values in the checkpoint. Raises TflabError if that is impossible."""
    try:
        check_shapes(session.graph, start)
        with session.graph.as_default():
            saver.restore(session, start.path)
    except (tf.errors.OpError, ValueError, IndexError) as error:
        reason = refusals.sentence(getattr(error, "message", str(error)))
        raise unusable(start.path, reason) from error
    # So that the saver removes the oldest later
    state = tf.train.get_checkpoint_state(str(Path(start.path).parent))
    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)


def check_shapes(graph: tf.Graph, start: Checkpoint) -> None:
    """Raise ValueError for another network, whose values the runtime would assign nevertheless."""
    saved = tf.train.load_checkpoint(start.path).get_variable_to_shape_map()
    for variable in graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
        name, shape = variable.op.name, variable.shape.as_list()
        if saved.get(name) != shape:
            has = saved.get(name, "nothing")
            raise ValueError(f"it has {has} for '{name}', and the network has {shape}")


def unusable(path: str | Path, reason: str) -> TflabError:
    return TflabError(
        f"The checkpoint '{path}' cannot be restored: {reason}. To start again, omit --resume."
    )
