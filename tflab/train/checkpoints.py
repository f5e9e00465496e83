"""Checkpoints: the folder of a training, its settings, and all variables after each epoch.

`tf.compat.v1.train.Saver` writes both files of a checkpoint under temporary names and renames them,
the index last, and then the file `checkpoint`, which names the newest one (seen in the system calls
of TensorFlow 2.21). So if the process is killed meanwhile, the previous checkpoint is unchanged.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.cli import output_paths
from tflab.errors import TflabError, UsageError
from tflab.exporters import tensorboard
from tflab.records import codec
from tflab.records.measured import Settings
from tflab.records.options import Program
from tflab.runtime.session import plain

SETTINGS = "settings.json"  # in the logdir
FOLDER = "checkpoints"  # in the logdir
STATE = "checkpoint"  # in the folder: names the newest checkpoint
KEPT = 3  # the newest ones


@dataclass(frozen=True)
class Checkpoint:
    step: int  # number of steps done before it
    path: str  # without the suffixes of its files


def begin_training(logdir: str | None, program: Program, settings: Settings) -> Path:
    """Create a folder with the settings and the graph. Raises UsageError if that fails."""
    folder = output_paths.choose_run_folder(logdir, f"{settings.model}-train")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / SETTINGS).open("x") as file:
            json.dump(asdict(settings), file, indent=1)
    except OSError as error:
        raise output_paths.unwritable(folder, "logdir", error) from error
    tensorboard.write_graph(folder, program.graph)
    return folder


def read_settings(folder: Path) -> Settings:
    """Return the settings of the training in a folder. Raises UsageError if it has none."""
    path = str(folder / SETTINGS)
    content = codec.read_object(path, "give the logdir of a training")
    return codec.decode_file(Settings, content, path)


def check_same_settings(folder: Path, saved: Settings, given: Settings) -> None:
    """Raise UsageError that lists every setting that differs from the saved one."""
    before, now = asdict(saved).items(), asdict(given)
    changed = [(name.replace("_", " "), old, now[name]) for name, old in before if old != now[name]]
    if differences := [f"{name}: {old} before, {new} now" for name, old, new in changed]:
        raise UsageError(
            f"The training in '{folder}' can continue only with the same settings, which determine "
            f"every step: {'; '.join(differences)}. To start again, omit --resume."
        )


def newest(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint or None. Raises TflabError if the folder is damaged."""
    checkpoints = folder / FOLDER
    if not (checkpoints / STATE).exists():
        return None
    with suppress(ValueError):  # the file holds something else
        if path := tf.train.latest_checkpoint(str(checkpoints)):
            return Checkpoint(int(path.rpartition("-")[2]), path)
    raise unusable(checkpoints, f"the file '{STATE}' in it names no complete checkpoint")


def progress(folder: Path, settings: Settings, start: Checkpoint | None) -> str:
    """Say how much of a training is done. Raises TflabError if its checkpoint ends no epoch."""
    if start and start.step not in range(0, settings.steps + 1, settings.epoch_steps):
        raise unusable(start.path, f"step {start.step:,} is not the end of an epoch")
    done = start.step if start else 0
    note = f"Continuing in '{folder}': {done:,} of {settings.steps:,} steps are done."
    if not 0 < done < settings.steps:
        return note
    return (
        f"{note} Restored: all variables and the order of the rows. Not restored: the state of "
        "random ops, such as dropout, which start again."
    )


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
        # The runtime would assign the values of another network
        saved = tf.train.load_checkpoint(start.path).get_variable_to_shape_map()
        for variable in session.graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES):
            name, shape = variable.op.name, variable.shape.as_list()
            if saved.get(name) != shape:
                has = saved.get(name, "nothing")
                raise ValueError(f"it has {has} for '{name}', and the network has {shape}")
        with session.graph.as_default():
            saver.restore(session, start.path)
    except (tf.errors.OpError, ValueError, IndexError) as error:
        reason = plain(getattr(error, "message", str(error)))
        raise unusable(start.path, reason) from error
    # So that the saver removes the oldest later
    state = tf.train.get_checkpoint_state(str(Path(start.path).parent))
    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)


def unusable(path: str | Path, reason: str) -> TflabError:
    return TflabError(
        f"The checkpoint '{path}' cannot be restored: {reason}. To start again, omit --resume."
    )
