"""Checkpoints: the folder of a new training, or of one to resume, and in it the weights and the
optimiser's variables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import models
from tflab.cli import output_paths
from tflab.errors import TflabError, UsageError
from tflab.exporters import tensorboard
from tflab.records.options import Program
from tflab.runtime import refusals, server
from tflab.train import history
from tflab.train.history import Settings

RATES = " The learning rate of every step depends on the number of epochs."
RESTORED = (
    "Restored: all variables and the order of the rows. Not restored: the state of random ops, "
    "such as dropout, which start again."
)
FOLDER = "checkpoints"  # in the logdir
PREFIX = "step"
KEPT = 3  # the newest ones


def begin_training(logdir: str | None, program: Program, settings: Settings) -> Path:
    """Create a folder with the graph and a history without steps. Raises UsageError."""
    folder = output_paths.choose_run_folder(logdir, f"{settings.model}-train")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        history.create(folder / history.NAME, settings)
    except OSError as error:
        raise output_paths.unwritable_folder(folder, error) from error
    tensorboard.write_graph(folder, program.graph)
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
    """The newest checkpoint, or None to start again; and what it restores."""
    start = newest(folder / FOLDER)
    done = start.step if start else 0
    note = f"Continuing in '{folder}': {done:,} of {settings.steps:,} steps are done."
    return start, f"{note} {RESTORED}" if 0 < done < settings.steps else note


# The files. `tf.compat.v1.train.Saver` writes both files of a checkpoint under temporary names and
# then renames them, the index last. It does the same with the file `checkpoint`, which names the
# newest one (seen in the system calls of TensorFlow 2.21). So if the process is killed meanwhile,
# the previous checkpoint is unchanged.


@dataclass(frozen=True)
class Checkpoint:
    step: int  # number of steps done before it
    path: Path  # without the suffixes of its files


def saver(graph: tf.Graph) -> tf1.train.Saver:
    """Add the ops that save and restore all variables of the graph, slots and counters included."""
    with graph.as_default():
        return tf1.train.Saver(max_to_keep=KEPT, save_relative_paths=True)


def save(saver: tf1.train.Saver, session: tf1.Session, folder: Path, step: int) -> None:
    """Write a checkpoint, then remove the oldest. Raises OSError or tf.errors.OpError."""
    folder.mkdir(exist_ok=True)
    with session.graph.as_default():  # outside of a graph the saver would run eagerly
        saver.save(session, str(folder / PREFIX), global_step=step, write_meta_graph=False)


def newest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint in a folder."""
    path = tf.train.latest_checkpoint(folder)
    return Checkpoint(int(path.rpartition("-")[2]), Path(path)) if path else None


def restore(saver: tf1.train.Saver, session: tf1.Session, start: Checkpoint) -> None:
    """Give all variables the values in the checkpoint. Raises TflabError if that is impossible."""
    try:
        check_shapes(session.graph, start)
        with session.graph.as_default():
            saver.restore(session, str(start.path))
    except server.AWAY:  # a task is gone: that is not a failure of the checkpoint
        raise
    except (tf.errors.OpError, ValueError, IndexError) as error:
        reason = refusals.sentence(getattr(error, "message", str(error)))
        raise TflabError(
            f"The checkpoint '{start.path}' cannot be restored: {reason}. To start again, omit "
            "--resume."
        ) from error
    # So that the saver removes the oldest later
    state = tf.train.get_checkpoint_state(start.path.parent)
    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)


def check_shapes(graph: tf.Graph, start: Checkpoint) -> None:
    """Raise ValueError for another network, whose values the runtime would assign nevertheless."""
    saved = tf.train.load_checkpoint(str(start.path)).get_variable_to_shape_map()
    for variable in graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
        name, shape = variable.op.name, variable.shape.as_list()
        if saved.get(name) != shape:
            has = saved.get(name, "nothing")
            raise ValueError(f"it has {has} for '{name}', and the network has {shape}")
