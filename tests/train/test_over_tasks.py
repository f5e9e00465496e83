"""Training over tasks: the weights of one machine, and on from the last checkpoint after a task
was killed."""

import os
import signal
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from tflab import models
from tflab.train import __main__ as train
from tflab.train import checkpoints, loop, trainer
from tflab.train.epochs import Settings

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

SETTINGS = Settings("toy", "points of 3x + 2", 1024, 256, 100, 2, 1, False)  # the last batch is 24
STEPS = 22


def trained(folder, tasks=(), way="layers"):
    """The variables of the last checkpoint, and the test loss of each epoch."""
    from tflab.train import runs

    ready = trainer.prepare("toy", models.find("toy"), 1, None, tasks, way)
    runs.begin_training(str(folder), ready, SETTINGS)
    records = list(loop.train(ready, SETTINGS, folder, None))
    losses = [record.test_loss for record in records if hasattr(record, "test_loss")]
    return values(folder), losses


def values(folder):
    reader = tf.train.load_checkpoint(str(folder / checkpoints.FOLDER / f"step-{STEPS}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.parametrize("way", ["layers", "batch"])
def test_a_training_ends_with_the_weights_of_one_machine(way, tmp_path, two_tasks):
    alone, losses = trained(tmp_path / "alone")
    together, losses_together = trained(tmp_path / "together", two_tasks, way)
    assert alone.keys() == together.keys()
    for name, value in alone.items():
        np.testing.assert_allclose(together[name], value, rtol=1e-4)
    assert losses_together == pytest.approx(losses, rel=1e-3)


def children():
    listed = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "pid=,args="], capture_output=True, text=True
    )
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "tflab.worker" in line}


def test_a_training_goes_on_after_a_task_was_killed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    usual = loop.finish_epoch
    before = children()

    def kills_a_task(run, steps):
        epoch = usual(run, steps)
        os.kill(max(children() - before), signal.SIGKILL)
        return epoch

    monkeypatch.setattr(loop, "finish_epoch", kills_a_task)
    command = ["--model", "toy", "--epochs", "2", "--batch-size", "100", "--logdir", "mine"]
    assert train.main([*command, "--cluster", "2"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("tflab: A step over 2 tasks was given up: task 1 (127.0.0.1:")
    assert said.endswith(
        "is gone. To go on from the last checkpoint:  python -m tflab.train --resume --model toy "
        "--logdir mine\n"
    )
    assert children() == before
    monkeypatch.setattr(loop, "finish_epoch", usual)
    assert train.main(["--resume", "--model", "toy", "--logdir", "mine", "--cluster", "2"]) == 0
    assert "11 of 22 steps are done." in capsys.readouterr().err
    resumed = values(tmp_path / "mine")
    uninterrupted, _ = trained(tmp_path / "whole")
    for name, value in uninterrupted.items():
        np.testing.assert_allclose(resumed[name], value, rtol=1e-4)
