"""Checkpoints: the weights and the optimiser's variables, on disk, to outlive the process.

`tf.compat.v1.train.Saver` writes both files of a checkpoint under temporary names and then renames
them, the index last. It does the same with the file `checkpoint`, which names the newest one (seen
in the system calls of TensorFlow 2.21). So a process that is killed meanwhile leaves the checkpoint
before as it was. Damage on the disk is detected by reading the whole checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1

FOLDER = "checkpoints"  # in the logdir
PREFIX = "step"
KEPT = 3  # the newest ones
INDEX = re.compile(rf"{PREFIX}-(\d+)\.index")


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


def restore(saver: tf1.train.Saver, session: tf1.Session, start: Checkpoint) -> None:
    """Give all variables the values in the checkpoint."""
    with session.graph.as_default():
        saver.restore(session, str(start.path))
    paths = [str(checkpoint.path) for checkpoint in checkpoints_in(start.path.parent)]
    saver.recover_last_checkpoints(paths[::-1])  # so that the saver removes old ones later


def newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that can be read completely, and why newer ones cannot."""
    damaged: list[str] = []
    for checkpoint in checkpoints_in(folder):
        reason = damage_of(checkpoint)
        if reason is None:
            return checkpoint, damaged
        damaged.append(f"The checkpoint of step {checkpoint.step:,} is damaged: {reason}.")
    return None, damaged


def checkpoints_in(folder: Path) -> Iterator[Checkpoint]:
    """All checkpoints in a folder, the newest first."""
    names = (INDEX.fullmatch(file.name) for file in folder.glob("*.index"))
    steps = sorted((int(name[1]) for name in names if name), reverse=True)
    return (Checkpoint(step, folder / f"{PREFIX}-{step}") for step in steps)


def damage_of(checkpoint: Checkpoint) -> str | None:
    """What is wrong with a checkpoint, or None. The runtime verifies checksums as it reads."""
    try:
        reader = tf.train.load_checkpoint(str(checkpoint.path))
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except tf.errors.OpError as error:
        return error.message
    except IndexError as error:  # raised for a file that ends too early
        return str(error)
    return None


def differences(checkpoint: Checkpoint, graph: tf.Graph) -> list[str]:
    """The variables that differ between a checkpoint and the graph, a line for each."""
    reader = tf.train.load_checkpoint(str(checkpoint.path))
    types = reader.get_variable_to_dtype_map()
    saved = {
        name: described(types[name], shape)
        for name, shape in reader.get_variable_to_shape_map().items()
    }
    variables = graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    in_graph = {
        variable.op.name: described(variable.dtype.base_dtype, variable.shape)
        for variable in variables
    }
    return [
        f"{name}: seen {saved.get(name, 'nothing')}, now {in_graph.get(name, 'nothing')}"
        for name in sorted(saved.keys() | in_graph.keys())
        if saved.get(name) != in_graph.get(name)
    ]


def described(dtype: tf.DType, shape: tf.TensorShape | list[int]) -> str:
    return f"{dtype.name} {list(shape)}"


def clear(folder: Path, step: int) -> None:
    """Remove checkpoints that are newer than this step, and files that are half-written."""
    kept_names = {
        checkpoint.path.name for checkpoint in checkpoints_in(folder) if checkpoint.step <= step
    }
    for file in [*folder.glob(f"{PREFIX}-*"), *folder.glob("checkpoint.tmp*")]:
        if file.name.partition(".")[0] not in kept_names or ".tempstate" in file.name:
            file.unlink()
