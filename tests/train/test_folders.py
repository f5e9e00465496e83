"""Runs: which training goes on, and what it has to agree with."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf1
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from tflab.errors import UsageError
from tflab.models import toy
from tflab.train import checkpoints, folders, history, trainer
from tflab.train.history import Settings

pytestmark = pytest.mark.tensorflow

SETTINGS = Settings("toy", "points", 1024, 256, 64, epochs=5, seed=1, one_thread=False)


@pytest.fixture(scope="module")
def ready():
    return trainer.prepare("toy", toy.build, 1, None)


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
    assert folders.find_training(tmp_path, "toy") == newest


def test_a_folder_that_is_a_training_is_taken_whatever_its_model(tmp_path):
    folder = run_at(tmp_path / "a", 100, model="lenet")
    assert folders.find_training(folder, "toy") == folder


def test_a_history_that_cannot_be_read_is_passed_over(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / history.NAME).write_text("half")
    folder = run_at(tmp_path / "a", 100)
    assert folders.find_training(tmp_path, "toy") == folder


def test_without_a_training_of_the_model_there_is_nothing_to_go_on_with(tmp_path):
    run_at(tmp_path / "a", 100, model="lenet")
    with pytest.raises(UsageError) as error:
        folders.find_training(tmp_path, "toy")
    assert str(error.value) == (
        f"There is no training of 'toy' in '{tmp_path}' to continue. Omit --resume to start one."
    )


def test_a_file_does_not_decide_what_is_imported():
    folders.check_own_model(Path("mine"), SETTINGS)
    with pytest.raises(UsageError) as error:
        folders.check_own_model(Path("mine"), replace(SETTINGS, model="os:abort"))
    assert str(error.value) == (
        "The training in 'mine' is of 'os:abort', which is not a built-in model. Give --model "
        "'os:abort' as well."
    )


# What it has to agree with


def test_the_same_settings_go_on():
    folders.check_same_settings(Path("mine"), SETTINGS, replace(SETTINGS))


def test_every_difference_is_told():
    now = replace(SETTINGS, data="other points", train_rows=1000, seed=2)
    with pytest.raises(UsageError) as error:
        folders.check_same_settings(Path("mine"), SETTINGS, now)
    assert str(error.value) == (
        "The training in 'mine' can continue only with the same settings: data: points before, "
        "other points now; train rows: 1024 before, 1000 now; seed: 1 before, 2 now. To start "
        "again, omit --resume."
    )


def test_another_number_of_epochs_is_told_why_it_is_another_training():
    with pytest.raises(UsageError) as error:
        folders.check_same_settings(
            Path("mine"), SETTINGS, replace(SETTINGS, epochs=SETTINGS.epochs + 1)
        )
    assert str(error.value) == (
        "The training in 'mine' can continue only with the same settings: epochs: "
        f"{SETTINGS.epochs} before, {SETTINGS.epochs + 1} now. The learning rate of every step "
        "depends on the number of epochs. To start again, omit --resume."
    )


def test_it_starts_from_the_newest_checkpoint_and_says_what_that_restores(tmp_path, ready):
    going_on = f"Continuing in '{tmp_path}': "
    start, note = folders.checkpoint_to_resume(tmp_path, SETTINGS)
    assert (start, note) == (None, f"{going_on}0 of 80 steps are done.")
    saved(tmp_path, ready, 16, 32)
    start, note = folders.checkpoint_to_resume(tmp_path, SETTINGS)
    assert start.step == 32
    assert note == (
        f"{going_on}32 of 80 steps are done. Restored: all variables and the order of the rows. "
        "Not restored: the state of random ops, such as dropout, which start again."
    )


# A new one


def test_a_new_run_has_its_settings_and_its_graph(tmp_path, ready):
    folder = folders.begin_training(str(tmp_path / "mine"), ready, SETTINGS)
    assert folder == tmp_path / "mine"
    assert history.settings(folder / history.NAME) == SETTINGS
    reader = EventAccumulator(str(folder / "written")).Reload()
    drawn = tf1.GraphDef.FromString(reader.SerializedGraph())
    assert {node.name for node in drawn.node} >= {"x", "learning_rate", "global_step"}
