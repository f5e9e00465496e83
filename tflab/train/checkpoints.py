"""Checkpoints: the weights and the optimiser's variables, in files.

`tf.compat.v1.train.Saver` writes both files of a checkpoint under temporary names and then renames
them, the index last. It does the same with the file `checkpoint`, which names the newest one (seen
in the system calls of TensorFlow 2.21). So if the process is killed meanwhile, the previous
checkpoint is unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.runtime import refusals, server

FOLDER = "checkpoints"  # in the logdir
PREFIX = "step"
KEPT = 3  # the newest ones


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
