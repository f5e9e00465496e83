"""Checkpoints: a training is found again, and a folder that is none gets one clear error."""

import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from tests.examples import training
from tflab.errors import TflabError, UsageError
from tflab.train import checkpoints, trainer

pytestmark = pytest.mark.tensorflow

SETTINGS = training.SETTINGS


@pytest.fixture(scope="module")
def ready():
    return trainer.prepare("small", training.build)


@pytest.fixture
def folder(tmp_path, ready) -> Path:
    """A training with checkpoints of its three epochs."""
    place = checkpoints.begin_training(str(tmp_path / "mine"), ready.program, SETTINGS)
    save(place, ready, 5, 10, 15)
    return place


def save(folder, ready, *steps):
    """Save checkpoints of these steps, with the first weights."""
    with tf1.Session(graph=ready.program.graph) as live:
        live.run([v.initializer for v in ready.program.graph.get_collection("variables")])
        for step in steps:
            checkpoints.save(ready.saver, live, folder, step)


def names(folder) -> set[str]:
    return {path.name.partition(".")[0] for path in (folder / checkpoints.FOLDER).iterdir()}


def test_a_new_training_has_its_settings_and_its_graph(folder):
    assert checkpoints.read_settings(folder) == SETTINGS
    reader = EventAccumulator(str(folder / "written")).Reload()
    drawn = tf1.GraphDef.FromString(reader.SerializedGraph())
    assert {node.name for node in drawn.node} >= {"images", "learning_rate", "global_step"}


def test_the_last_three_are_kept_also_over_a_restart(folder, ready):
    newest = checkpoints.newest(folder, SETTINGS)
    assert newest == checkpoints.Checkpoint(15, str(folder / "checkpoints/step-15"))
    again = trainer.prepare("small", training.build)
    with tf1.Session(graph=again.program.graph) as live:
        checkpoints.restore(again.saver, live, newest)
        for step in (20, 25):
            checkpoints.save(again.saver, live, folder, step)
    assert names(folder) == {"checkpoint", "step-15", "step-20", "step-25"}


def test_a_moved_folder_is_as_good_as_before(folder):
    folder.rename(folder.with_name("elsewhere"))
    elsewhere = folder.with_name("elsewhere")
    assert checkpoints.newest(elsewhere, SETTINGS).path == str(elsewhere / "checkpoints/step-15")


def test_a_training_before_the_end_of_its_first_epoch_begins_anew(folder, ready):
    assert checkpoints.newest(folder.with_name("none"), SETTINGS) is None


@pytest.mark.parametrize("step, restored", [(0, False), (10, True), (15, False)])
def test_a_resumed_training_says_what_is_done_and_what_is_restored(step, restored):
    start = checkpoints.Checkpoint(step, "path") if step else None
    said = f"Continuing in 'mine': {step} of 15 steps are done."
    if restored:
        said += (
            " Restored: all variables and the order of the rows. Not restored: the state of random "
            "ops, such as dropout, which start again."
        )
    assert checkpoints.progress(Path("mine"), SETTINGS, start) == said


# A broken or foreign folder


@pytest.mark.parametrize("damage", [lambda whole: whole[:-20], lambda whole: b"", None])
@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
def test_a_damaged_checkpoint_is_one_sentence(folder, ready, damage, suffix):
    path = folder / f"checkpoints/step-15.{suffix}"
    if damage:
        path.write_bytes(damage(path.read_bytes()))
    else:
        path.unlink()
    with tf1.Session(graph=ready.program.graph) as live, pytest.raises(TflabError) as error:
        checkpoints.restore(ready.saver, live, checkpoints.newest(folder, SETTINGS))
    said = str(error.value)
    assert said.startswith(f"The checkpoint '{folder}/checkpoints") and "\n" not in said
    assert " cannot be restored: " in said
    assert said.endswith(". To start again, omit --resume.")


@pytest.mark.parametrize("content", [b"", b"\xff\0", b"{{", b'model_checkpoint_path: "none"\n'])
def test_a_state_that_names_no_checkpoint_is_one_sentence(folder, content):
    (folder / "checkpoints/checkpoint").write_bytes(content)
    with pytest.raises(TflabError) as error:
        checkpoints.newest(folder, SETTINGS)
    assert str(error.value) == (
        f"The checkpoint '{folder}/checkpoints' cannot be restored: the file 'checkpoint' in it "
        "names no complete checkpoint. To start again, omit --resume."
    )


@pytest.mark.parametrize("number", ["7", "20", "15-x", "x"])
def test_another_programs_checkpoint_is_one_sentence(folder, ready, number):
    for path in (folder / "checkpoints").glob("step-15.*"):
        path.rename(path.with_name(path.name.replace("-15", f"-{number}")))
    state = folder / "checkpoints/checkpoint"
    state.write_text(f'model_checkpoint_path: "step-{number}"\n')
    with pytest.raises(TflabError) as error:
        checkpoints.newest(folder, SETTINGS)
    assert str(error.value) == (
        f"The checkpoint '{folder}/checkpoints/step-{number}' cannot be restored: its number is "
        "not that of the last step of an epoch. To start again, omit --resume."
    )


@pytest.mark.parametrize(
    "shape, said",
    [
        ([64, 5], "it has nothing for 'more', and the network has [64, 5]"),
        ([3], "it has [64, 5] for 'weights', and the network has [3]"),
    ],
)
def test_a_checkpoint_of_another_network_is_refused_with_what_differs(folder, shape, said):
    name = "weights" if shape == [3] else "more"
    with tf.Graph().as_default() as graph:
        tf1.get_variable(name, shape, use_resource=True)
        saver = checkpoints.saver(graph)
    with tf1.Session(graph=graph) as live, pytest.raises(TflabError) as error:
        checkpoints.restore(saver, live, checkpoints.newest(folder, SETTINGS))
    assert str(error.value) == (
        f"The checkpoint '{folder}/checkpoints/step-15' cannot be restored: {said}. To start "
        "again, omit --resume."
    )


# Settings


def begun(folder, when, model="toy") -> Path:
    """A training that was begun at this time."""
    folder.mkdir(parents=True)
    path = folder / checkpoints.SETTINGS
    path.write_text(str(asdict(replace(SETTINGS, model=model))).replace("'", '"'))
    os.utime(path, (when, when))
    return folder


def test_the_newest_training_of_a_model_is_found_and_others_are_passed_over(tmp_path):
    begun(tmp_path / "a", 100)
    newest = begun(tmp_path / "b", 300)
    begun(tmp_path / "c", 200)
    other = begun(tmp_path / "d", 400, model="lenet")
    (begun(tmp_path / "e", 500) / checkpoints.SETTINGS).write_text("half")
    found, settings = checkpoints.find_training(tmp_path, "toy")
    assert (found, settings.model) == (newest, "toy")
    assert checkpoints.find_training(other, "toy")[0] == other  # it is given itself


def test_without_a_training_of_the_model_there_is_nothing_to_resume(tmp_path):
    begun(tmp_path / "a", 100, model="lenet")
    with pytest.raises(UsageError) as error:
        checkpoints.find_training(tmp_path, "toy")
    assert str(error.value) == (
        f"There is no training of 'toy' in '{tmp_path}' to continue. Omit --resume to start one."
    )


@pytest.mark.parametrize(
    "content", ["", "[]", "1", '{"model": 1}', "[" * 10_000, '{"model": "m"}', "\xff"]
)
def test_a_file_without_settings_is_one_sentence(tmp_path, content):
    (tmp_path / "settings.json").write_text(content, "latin-1")
    with pytest.raises(TflabError) as error:
        checkpoints.find_training(tmp_path, "toy")
    assert str(error.value) == (
        f"'{tmp_path}/settings.json' does not hold the settings of a training: it should be an "
        "object with model, data, train_rows, test_rows, batch_size, epochs, seed."
    )


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "settings.json").mkdir()
    with pytest.raises(TflabError, match=r"settings\.json' cannot be read: Is a directory\.$"):
        checkpoints.read_settings(tmp_path)


def test_a_file_does_not_decide_what_is_imported():
    checkpoints.check_own_model(Path("mine"), replace(SETTINGS, model="toy"))
    with pytest.raises(UsageError) as error:
        checkpoints.check_own_model(Path("mine"), replace(SETTINGS, model="os:abort"))
    assert str(error.value) == (
        "The training in 'mine' is of 'os:abort', which is not a built-in model. Give --model "
        "'os:abort' as well."
    )


def test_every_setting_that_differs_is_listed():
    checkpoints.check_same_settings(Path("mine"), SETTINGS, replace(SETTINGS))
    now = replace(SETTINGS, data="other points", train_rows=1000, seed=2)
    with pytest.raises(UsageError) as error:
        checkpoints.check_same_settings(Path("mine"), SETTINGS, now)
    assert str(error.value) == (
        "The training in 'mine' can continue only with the same settings: data: noise before, "
        "other points now; train rows: 70 before, 1000 now; seed: 1 before, 2 now. To start "
        "again, omit --resume."
    )
