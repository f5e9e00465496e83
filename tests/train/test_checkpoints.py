"""Checkpoints: all variables come back, or an error says why not; a training is found again."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from tflab.errors import TflabError, UsageError
from tflab.models import toy
from tflab.records.options import Options
from tflab.train import checkpoints, history, trainer
from tflab.train.checkpoints import Checkpoint
from tflab.train.history import Settings

pytestmark = pytest.mark.tensorflow

SETTINGS = Settings("toy", "points", 1024, 256, 64, epochs=5, seed=1)


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
    paths = tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths
    return [int(path.rpartition("-")[2]) for path in paths]


def test_every_variable_comes_back_bit_for_bit(tmp_path):
    straight = trained(graph_of(), tmp_path / "one", steps=4)
    assert checkpoints.newest(tmp_path / "one") == Checkpoint(4, tmp_path / "one/step-4")
    other = Checkpoint(2, tmp_path / "one/step-2")
    again = trained(graph_of(), tmp_path / "two", start=other, steps=2)
    assert again[-1].keys() == straight[-1].keys() > {"weights", "weights/Adam", "global_step"}
    for name, values in straight[-1].items():
        assert np.array_equal(again[-1][name], values), name


def test_the_last_few_are_kept_also_over_a_restart(folder):
    assert steps_in(folder) == [1, 2, 3]
    trained(graph_of(), folder, start=checkpoints.newest(folder), steps=2)
    assert steps_in(folder) == [3, 4, 5]
    stems = {path.name.partition(".")[0] for path in folder.iterdir()}
    assert stems == {"checkpoint", "step-3", "step-4", "step-5"}


def test_other_programs_find_the_newest_where_tensorflow_says(folder):
    assert tf.train.latest_checkpoint(folder) == str(folder / "step-3")


def test_a_moved_folder_is_as_good_as_before(folder, tmp_path):
    folder.rename(tmp_path / "elsewhere")
    assert tf.train.latest_checkpoint(tmp_path / "elsewhere") == str(tmp_path / "elsewhere/step-3")


def test_a_folder_without_checkpoints_has_no_newest(tmp_path):
    assert checkpoints.newest(tmp_path / "none") is None


# Damage


def shortened(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [shortened, emptied, flipped])
@pytest.mark.parametrize("file", ["step-3.index", "step-3.data-00000-of-00001"])
def test_a_damaged_checkpoint_is_refused_in_a_sentence(folder, file, harm):
    harm(folder / file)
    with pytest.raises(TflabError) as error:
        trained(graph_of(), folder, start=checkpoints.newest(folder))
    start, end = str(error.value).split(": ", 1)
    assert start == f"The checkpoint '{folder / 'step-3'}' cannot be restored"
    assert end.endswith(". To start again, omit --resume.")


@pytest.mark.parametrize("names", [["step-4.data-00000-of-00001"], ["step-4.index.tempstate456"]])
def test_what_a_killed_process_left_is_no_checkpoint(folder, names):
    for name in names:
        (folder / name).write_text("half")
    assert checkpoints.newest(folder) == Checkpoint(3, folder / "step-3")


def momentum(rate):
    return tf1.train.MomentumOptimizer(rate, 0.9)


@pytest.mark.parametrize(
    "other, said",
    [
        (graph_of((3, 5)), "it has [3, 4] for 'weights', and the network has [3, 5]"),
        (
            graph_of(optimizer=momentum),
            "it has nothing for 'weights/Momentum', and the network has [3, 4]",
        ),
    ],
)
def test_a_checkpoint_of_another_network_is_refused_with_what_differs(folder, other, said):
    with pytest.raises(TflabError) as error:
        trained(other, folder, start=checkpoints.newest(folder))
    assert str(error.value) == (
        f"The checkpoint '{folder / 'step-3'}' cannot be restored: {said}. To start again, omit "
        "--resume."
    )


@pytest.fixture(scope="module")
def ready():
    return trainer.prepare("toy", toy.build, 1, Options())


def run_at(folder, when, model="toy") -> Path:
    """A training that was last written to at this time."""
    folder.mkdir(parents=True)
    history.create(folder / history.NAME, replace(SETTINGS, model=model))
    os.utime(folder / history.NAME, (when, when))
    return folder


def saved(folder, prepared, *steps) -> None:
    """Checkpoints of these steps, with the first weights."""
    graph = prepared.program.graph
    with tf1.Session(graph=graph) as live:
        live.run([variable.initializer for variable in graph.get_collection("variables")])
        for step in steps:
            checkpoints.save(prepared.saver, live, folder / checkpoints.FOLDER, step)


# Which one


def test_the_newest_of_a_model_is_the_one_last_written_to(tmp_path):
    run_at(tmp_path / "a", 100)
    newest = run_at(tmp_path / "b", 300)
    run_at(tmp_path / "c", 200)
    run_at(tmp_path / "d", 400, model="lenet")
    assert checkpoints.find_training(tmp_path, "toy") == newest


def test_a_folder_that_is_a_training_is_taken_whatever_its_model(tmp_path):
    folder = run_at(tmp_path / "a", 100, model="lenet")
    assert checkpoints.find_training(folder, "toy") == folder


def test_a_history_that_cannot_be_read_is_passed_over(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / history.NAME).write_text("half")
    folder = run_at(tmp_path / "a", 100)
    assert checkpoints.find_training(tmp_path, "toy") == folder


def test_without_a_training_of_the_model_there_is_nothing_to_go_on_with(tmp_path):
    run_at(tmp_path / "a", 100, model="lenet")
    with pytest.raises(UsageError) as error:
        checkpoints.find_training(tmp_path, "toy")
    assert str(error.value) == (
        f"There is no training of 'toy' in '{tmp_path}' to continue. Omit --resume to start one."
    )


def test_a_file_does_not_decide_what_is_imported():
    checkpoints.check_own_model(Path("mine"), SETTINGS)
    with pytest.raises(UsageError) as error:
        checkpoints.check_own_model(Path("mine"), replace(SETTINGS, model="os:abort"))
    assert str(error.value) == (
        "The training in 'mine' is of 'os:abort', which is not a built-in model. Give --model "
        "'os:abort' as well."
    )


# What it has to agree with


def test_the_same_settings_go_on():
    checkpoints.check_same_settings(Path("mine"), SETTINGS, replace(SETTINGS))


def test_every_difference_is_told():
    now = replace(SETTINGS, data="other points", train_rows=1000, seed=2)
    with pytest.raises(UsageError) as error:
        checkpoints.check_same_settings(Path("mine"), SETTINGS, now)
    assert str(error.value) == (
        "The training in 'mine' can continue only with the same settings: data: points before, "
        "other points now; train rows: 1024 before, 1000 now; seed: 1 before, 2 now. To start "
        "again, omit --resume."
    )


def test_another_number_of_epochs_is_told_why_it_is_another_training():
    with pytest.raises(UsageError) as error:
        checkpoints.check_same_settings(
            Path("mine"), SETTINGS, replace(SETTINGS, epochs=SETTINGS.epochs + 1)
        )
    assert str(error.value) == (
        "The training in 'mine' can continue only with the same settings: epochs: "
        f"{SETTINGS.epochs} before, {SETTINGS.epochs + 1} now. The learning rate of every step "
        "depends on the number of epochs. To start again, omit --resume."
    )


def test_it_starts_from_the_newest_checkpoint_and_says_what_that_restores(tmp_path, ready):
    going_on = f"Continuing in '{tmp_path}': "
    start, note = checkpoints.checkpoint_to_resume(tmp_path, SETTINGS)
    assert (start, note) == (None, f"{going_on}0 of 80 steps are done.")
    saved(tmp_path, ready, 16, 32)
    start, note = checkpoints.checkpoint_to_resume(tmp_path, SETTINGS)
    assert start.step == 32
    assert note == (
        f"{going_on}32 of 80 steps are done. Restored: all variables and the order of the rows. "
        "Not restored: the state of random ops, such as dropout, which start again."
    )


# A new one


def test_a_new_run_has_its_settings_and_its_graph(tmp_path, ready):
    folder = checkpoints.begin_training(str(tmp_path / "mine"), ready.program, SETTINGS)
    assert folder == tmp_path / "mine"
    assert history.settings(folder / history.NAME) == SETTINGS
    reader = EventAccumulator(str(folder / "written")).Reload()
    drawn = tf1.GraphDef.FromString(reader.SerializedGraph())
    assert {node.name for node in drawn.node} >= {"x", "learning_rate", "global_step"}
