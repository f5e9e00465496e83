"""Checkpoints: a training is found again, and a folder that is none gets one clear error."""

from dataclasses import replace
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from tests.approval import approve, refused
from tests.examples import training
from tflab.records.options import Options
from tflab.train import checkpoints, trainer

pytestmark = pytest.mark.tensorflow

SETTINGS = training.SETTINGS


@pytest.fixture(scope="module")
def ready():
    return trainer.prepare("small", training.build, Options())


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
    newest = checkpoints.newest(folder)
    assert newest == checkpoints.Checkpoint(15, str(folder / "checkpoints/step-15"))
    again = trainer.prepare("small", training.build, Options())
    with tf1.Session(graph=again.program.graph) as live:
        checkpoints.restore(again.saver, live, newest)
        for step in (20, 25):
            checkpoints.save(again.saver, live, folder, step)
    assert names(folder) == {"checkpoint", "step-15", "step-20", "step-25"}


def test_a_moved_folder_is_as_good_as_before(folder):
    folder.rename(folder.with_name("elsewhere"))
    elsewhere = folder.with_name("elsewhere")
    assert checkpoints.newest(elsewhere).path == str(elsewhere / "checkpoints/step-15")


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
    with tf1.Session(graph=ready.program.graph) as live:
        said = refused(lambda: checkpoints.restore(ready.saver, live, checkpoints.newest(folder)))
    assert said.startswith(f"TflabError: The checkpoint '{folder}/checkpoints")
    assert " cannot be restored: " in said
    assert said.endswith(". To start again, omit --resume.")


def other_network(name, shape):
    with tf.Graph().as_default() as graph:
        tf1.get_variable(name, shape, use_resource=True)
        return checkpoints.saver(graph), tf1.Session(graph=graph)


def test_what_cannot_be_continued_is_a_sentence(folder, tmp_path):
    newest, said = checkpoints.newest(folder), ["# of another network"]
    for network in (("more", [64, 5]), ("weights", [3])):
        said.append(refused(checkpoints.restore, *other_network(*network), newest))
    said += ["", "# without a checkpoint, or with that of another program"]
    state = folder / "checkpoints/checkpoint"
    for content in (b"", b"\xff\0", b"{{", b'model_checkpoint_path: "none"\n'):
        state.write_bytes(content)
        said.append(refused(checkpoints.newest, folder))
    for path in (folder / "checkpoints").glob("step-15.*"):
        path.rename(path.with_name(path.name.replace("-15", "-x")))
    state.write_text('model_checkpoint_path: "step-x"\n')
    said.append(refused(checkpoints.newest, folder))
    for step in (7, 20):
        renamed = checkpoints.Checkpoint(step, f"step-{step}")
        said.append(refused(checkpoints.progress, folder, SETTINGS, renamed))
    said += ["", "# without settings, or with others"]
    said.append(refused(checkpoints.read_settings, tmp_path))
    for content in ("", "[]", '{"model": 1}', '{"model": "m"}'):
        (tmp_path / "settings.json").write_text(content)
        said.append(refused(checkpoints.read_settings, tmp_path))
    checkpoints.check_same_settings(Path("mine"), SETTINGS, replace(SETTINGS))
    now = replace(SETTINGS, data="other points", train_rows=1000, seed=2)
    said.append(refused(checkpoints.check_same_settings, Path("mine"), SETTINGS, now))
    approve("checkpoints-refused.txt", "\n".join(said).replace(str(tmp_path), "FOLDER"))
