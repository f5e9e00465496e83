"""Checkpoints: all variables come back, and whatever broke one leaves the one before."""

import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.train import checkpoints
from tflab.train.checkpoints import Checkpoint

pytestmark = pytest.mark.tensorflow


def graph_of(shape=(3, 4), optimizer=tf1.train.AdamOptimizer) -> tf.Graph:
    """A graph with a trained variable, what the optimiser keeps of it, and a counter."""
    with tf.Graph().as_default() as graph:
        weights = tf1.get_variable("weights", shape, use_resource=True)
        count = tf1.train.get_or_create_global_step()
        optimizer(0.1).minimize(tf.reduce_sum(weights**2), count, name="train")
    return graph


@pytest.fixture
def folder(tmp_path) -> Path:
    """Checkpoints of steps 1, 2 and 3."""
    place = tmp_path / "checkpoints"
    trained(graph_of(), place)
    return place


def trained(graph: tf.Graph, folder: Path, start=None, steps=3) -> list[dict[str, np.ndarray]]:
    """Train, saving after every step; the values of all variables after each."""
    saver = checkpoints.saver(graph)
    variables = {variable.op.name: variable for variable in graph.get_collection("variables")}
    values = []
    with tf1.Session(graph=graph) as session:
        if start:
            checkpoints.restore(saver, session, start)
        else:
            session.run([variable.initializer for variable in variables.values()])
        for _ in range(steps):
            session.run("train")
            values.append(session.run(variables))
            checkpoints.save(saver, session, folder, values[-1]["global_step"])
    return values


def steps_in(folder) -> list[int]:
    return [checkpoint.step for checkpoint in checkpoints.checkpoints_in(folder)]


def test_every_variable_comes_back_bit_for_bit(tmp_path):
    straight = trained(graph_of(), tmp_path / "one", steps=4)
    start, damaged = checkpoints.newest(tmp_path / "one")
    assert (start, damaged) == (Checkpoint(4, tmp_path / "one/step-4"), [])
    other = Checkpoint(2, tmp_path / "one/step-2")
    again = trained(graph_of(), tmp_path / "two", start=other, steps=2)
    assert again[-1].keys() == straight[-1].keys() > {"weights", "weights/Adam", "global_step"}
    for name, values in straight[-1].items():
        assert np.array_equal(again[-1][name], values), name


def test_the_last_few_are_kept_also_over_a_restart(folder):
    assert steps_in(folder) == [3, 2, 1]
    trained(graph_of(), folder, start=checkpoints.newest(folder)[0], steps=2)
    assert steps_in(folder) == [5, 4, 3]
    stems = {path.name.partition(".")[0] for path in folder.iterdir()}
    assert stems == {"checkpoint", "step-3", "step-4", "step-5"}


def test_other_programs_find_the_newest_where_tensorflow_says(folder):
    assert tf.train.latest_checkpoint(folder) == str(folder / "step-3")


def test_a_moved_folder_is_as_good_as_before(folder, tmp_path):
    folder.rename(tmp_path / "elsewhere")
    assert tf.train.latest_checkpoint(tmp_path / "elsewhere") == str(tmp_path / "elsewhere/step-3")


def test_a_folder_without_checkpoints_has_no_newest(tmp_path):
    assert checkpoints.newest(tmp_path / "none") == (None, [])


# Damage


def shortened(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [shortened, emptied, flipped, Path.unlink])
@pytest.mark.parametrize("file", ["step-3.index", "step-3.data-00000-of-00001"])
def test_a_damaged_checkpoint_is_passed_over_and_told(folder, file, harm):
    harm(folder / file)
    checkpoint, damaged = checkpoints.newest(folder)
    assert checkpoint == Checkpoint(2, folder / "step-2")
    if (file, harm) == ("step-3.index", Path.unlink):
        assert damaged == []  # it never was one: the index comes last
    else:
        (sentence,) = damaged
        assert sentence.startswith("The checkpoint of step 3 is damaged: ")


def test_an_index_cut_anywhere_is_told_from_a_whole_one(folder):
    index = folder / "step-3.index"
    content = index.read_bytes()
    for end in range(0, len(content), 7):
        index.write_bytes(content[:end])
        assert checkpoints.newest(folder)[0].step == 2


def test_where_all_are_damaged_there_is_none(folder):
    for path in folder.glob("*.index"):
        emptied(path)
    checkpoint, damaged = checkpoints.newest(folder)
    assert (checkpoint, len(damaged)) == (None, 3)


LEFT = (  # by a process killed while it wrote step 4, or removed step 0
    "step-4.data-00000-of-00001",
    "step-4.data-00000-of-00001.tempstate123",
    "step-4.index.tempstate456",
    "step-2.index.tempstate789",
    "step-0.data-00000-of-00001",
    "checkpoint.tmp0123abcd",
)


def test_what_a_killed_process_left_is_cleared_away(folder):
    before = sorted(folder.iterdir())
    for name in LEFT:
        (folder / name).write_text("half")
    assert checkpoints.newest(folder) == (Checkpoint(3, folder / "step-3"), [])
    checkpoints.clear(folder, 3)
    assert sorted(folder.iterdir()) == before


def test_checkpoints_after_the_start_are_cleared_away(folder):
    (folder / "notes").write_text("mine")
    checkpoints.clear(folder, 2)
    assert steps_in(folder) == [2, 1]
    assert (folder / "notes").exists()


# Another network


def test_the_same_graph_makes_no_differences(folder):
    assert checkpoints.differences(Checkpoint(3, folder / "step-3"), graph_of()) == []


def test_every_variable_that_differs_is_named(folder):
    other = graph_of(shape=(3, 5), optimizer=momentum)
    assert checkpoints.differences(Checkpoint(3, folder / "step-3"), other) == [
        "beta1_power: seen float32 [], now nothing",
        "beta2_power: seen float32 [], now nothing",
        "weights: seen float32 [3, 4], now float32 [3, 5]",
        "weights/Adam: seen float32 [3, 4], now nothing",
        "weights/Adam_1: seen float32 [3, 4], now nothing",
        "weights/Momentum: seen nothing, now float32 [3, 5]",
    ]


def momentum(rate):
    return tf1.train.MomentumOptimizer(rate, 0.9)
