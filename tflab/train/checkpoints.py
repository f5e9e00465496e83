"""Checkpoints: the weights and all that the optimiser remembers, on disk, to outlive the process.

`tf.compat.v1.train.Saver` writes both files of a checkpoint under other names and then renames
them, the index last; so does it with the file `checkpoint`, which names the newest one (seen in the
system calls of TensorFlow 2.21). A process that is killed meanwhile leaves the checkpoint before as
it was. What a disk did to a file since then is found by reading all of it.
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
    step: int  # so many had been done
    path: Path  # without the suffixes of its files


def saver(graph: tf.Graph) -> tf1.train.Saver:
    """Add the ops that save and restore all variables of the graph, slots and counters included."""
    with graph.as_default():
        return tf1.train.Saver(max_to_keep=KEPT, save_relative_paths=True)


def save(saver: tf1.train.Saver, session: tf1.Session, folder: Path, step: int) -> None:
    """Write a checkpoint, then remove the oldest. Raises OSError or tf.errors.OpError."""
    folder.mkdir(exist_ok=True)
    with session.graph.as_default():  # elsewhere a saver takes itself for an eager one
        saver.save(session, str(folder / PREFIX), global_step=step, write_meta_graph=False)


def restore(saver: tf1.train.Saver, session: tf1.Session, start: Checkpoint) -> None:
    """Give all variables the values of then."""
    with session.graph.as_default():
        saver.restore(session, str(start.path))
    known = [str(found.path) for found in all_of(start.path.parent)]
    saver.recover_last_checkpoints(known[::-1])  # so that these are removed in their turn


def newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that can be read to its last byte, and why newer ones cannot."""
    damaged: list[str] = []
    for found in all_of(folder):
        reason = damage(found)
        if reason is None:
            return found, damaged
        damaged.append(f"The checkpoint of step {found.step:,} is damaged: {reason}.")
    return None, damaged


def all_of(folder: Path) -> Iterator[Checkpoint]:
    """The newest first."""
    names = (INDEX.fullmatch(file.name) for file in folder.glob("*.index"))
    steps = sorted((int(name[1]) for name in names if name), reverse=True)
    return (Checkpoint(step, folder / f"{PREFIX}-{step}") for step in steps)


def damage(found: Checkpoint) -> str | None:
    """What is wrong with a checkpoint. The runtime holds all that it reads against checksums."""
    try:
        reader = tf.train.load_checkpoint(str(found.path))
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except tf.errors.OpError as error:
        return error.message
    except IndexError as error:  # what the reader makes of a file that ends too early
        return str(error)
    return None


def differences(found: Checkpoint, graph: tf.Graph) -> list[str]:
    """Where the variables of a checkpoint are not those of the graph, a line for each."""
    reader = tf.train.load_checkpoint(str(found.path))
    types = reader.get_variable_to_dtype_map()
    seen = {
        name: described(types[name], shape)
        for name, shape in reader.get_variable_to_shape_map().items()
    }
    variables = graph.get_collection(tf1.GraphKeys.GLOBAL_VARIABLES)
    now = {each.op.name: described(each.dtype.base_dtype, each.shape) for each in variables}
    return [
        f"{name}: seen {seen.get(name, 'nothing')}, now {now.get(name, 'nothing')}"
        for name in sorted(seen.keys() | now.keys())
        if seen.get(name) != now.get(name)
    ]


def described(dtype: tf.DType, shape: tf.TensorShape | list[int]) -> str:
    return f"{dtype.name} {list(shape)}"


def clear(folder: Path, step: int) -> None:
    """Remove newer checkpoints than of this step, and what was left half-written."""
    kept = {found.path.name for found in all_of(folder) if found.step <= step}
    for file in [*folder.glob(f"{PREFIX}-*"), *folder.glob("checkpoint.tmp*")]:
        if file.name.partition(".")[0] not in kept or ".tempstate" in file.name:
            file.unlink()
