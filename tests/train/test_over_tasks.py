"""Training over tasks: the weights of one machine, and on from the last checkpoint after a task
was killed."""

import signal
import threading
import time

import numpy as np
import pytest

from tests.train.test_loop import values
from tflab import models
from tflab.records.options import Options
from tflab.runtime import cluster, server
from tflab.train import __main__ as train
from tflab.train import checkpoints, loop, trainer
from tflab.train.history import Settings

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

SETTINGS = Settings("toy", "points of 3x + 2", 1024, 256, 100, 2, 1, False)  # the last batch is 24
STEPS = 22


def trained(folder, tasks=(), way="layers"):
    """The variables of the last checkpoint, and the test loss of each epoch."""
    ready = trainer.prepare("toy", models.find("toy"), 1, Options(cluster=tasks, split=way))
    checkpoints.begin_training(str(folder), ready.program, SETTINGS)
    records = list(loop.train(ready, SETTINGS, folder, None))
    losses = [record.test_loss for record in records if hasattr(record, "test_loss")]
    return values(folder, STEPS), losses


@pytest.mark.parametrize("way", ["layers", "batch"])
def test_a_training_ends_with_the_weights_of_one_machine(way, tmp_path, two_tasks):
    alone, losses = trained(tmp_path / "alone")
    together, losses_together = trained(tmp_path / "together", two_tasks, way)
    assert alone.keys() == together.keys()
    for name, value in alone.items():
        np.testing.assert_allclose(together[name], value, rtol=1e-4)
    assert losses_together == pytest.approx(losses, rel=1e-3)


FOUND = ["--resume", "--model", "toy", "--logdir", "mine"]
MINE = ["--model", "toy", "--epochs", "2", "--batch-size", "100", "--logdir", "mine"]
ON = (
    "To continue from the last checkpoint:  python -m tflab.train --resume --model toy --logdir "
    "mine"
)


def test_a_training_goes_on_after_a_task_was_killed_in_a_step(
    tmp_path, monkeypatch, capsys, two_tasks
):
    """It is stopped before the step, so that it cannot end it, and killed while that waits."""
    monkeypatch.chdir(tmp_path)
    usual = loop.finish_epoch
    with cluster.tasks(1) as (address,):
        task = server.STARTED[address]

        def kills_a_task(run, steps):
            epoch = usual(run, steps)
            task.send_signal(signal.SIGSTOP)
            threading.Timer(1, task.kill).start()
            return epoch

        monkeypatch.setattr(loop, "finish_epoch", kills_a_task)
        start = time.monotonic()
        assert train.main([*MINE, "--cluster", f"{two_tasks[0]},{address}"]) == 1
        assert time.monotonic() - start < 60
    assert capsys.readouterr().err.endswith(
        f"tflab: A step over 2 tasks was abandoned: task 1 ({address}) is gone. {ON}\n"
    )
    monkeypatch.setattr(loop, "finish_epoch", usual)
    assert train.main([*FOUND, "--cluster", ",".join(two_tasks)]) == 0
    assert "11 of 22 steps are done." in capsys.readouterr().err
    resumed = values(tmp_path / "mine", STEPS)
    uninterrupted, _ = trained(tmp_path / "whole")
    for name, value in uninterrupted.items():
        np.testing.assert_allclose(resumed[name], value, rtol=1e-4)


@pytest.mark.parametrize("error", server.AWAY)
def test_a_task_that_goes_while_a_checkpoint_is_saved_is_no_failure_of_the_disk(error, tmp_path):
    with pytest.raises(error), loop.writing(tmp_path, 7):
        raise error(None, None, "Socket closed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_training_over_tasks_that_is_interrupted_saves_and_goes_on(
    number, tmp_path, monkeypatch, capsys, two_tasks
):
    monkeypatch.chdir(tmp_path)
    usual = loop.finish_epoch

    def is_interrupted(run, steps):
        epoch = usual(run, steps)
        signal.raise_signal(number)
        return epoch

    monkeypatch.setattr(loop, "finish_epoch", is_interrupted)
    assert train.main([*MINE, "--cluster", ",".join(two_tasks)]) == 128 + number
    assert capsys.readouterr().err.endswith(
        f"Interrupted. To continue:  {ON.partition(':  ')[2]}\n"
    )
    monkeypatch.setattr(loop, "finish_epoch", usual)
    assert train.main(FOUND) == 0  # on none
    assert "11 of 22 steps are done." in capsys.readouterr().err
