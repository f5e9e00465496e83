"""Training: its numbers equal a loop in NumPy, also after a stop."""

import math
import resource
from contextlib import closing
from dataclasses import astuple

import numpy as np
import pytest

from tests.approval import refused
from tests.examples import training
from tests.examples.models import opened
from tests.examples.training import STEPS, saved, steps_in, trained, untimed, with_rate
from tflab import models
from tflab.errors import TflabError
from tflab.models import toy
from tflab.records.measured import Epoch, Settings, TrainingStep, history
from tflab.records.options import Options
from tflab.train import trainer

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module", autouse=True)
def small_test_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "TEST_ROWS", 8)  # of 30, so the last batch has 6
        yield


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A training without a stop: its folder, and what it yielded."""
    folder = tmp_path_factory.mktemp("straight")
    return folder, list(trained(folder))


# What is measured


def test_every_number_and_the_weights_equal_those_of_a_loop_in_numpy(straight):
    folder, records = straight
    expected, weights = training.in_numpy()
    assert [type(record) for record in records] == [*[TrainingStep] * 5, Epoch] * 3
    for record, right in zip(untimed(records), expected, strict=True):
        assert astuple(record) == pytest.approx(astuple(right), rel=1e-4)
    assert saved(folder, STEPS)["weights"] == pytest.approx(weights, rel=1e-3, abs=1e-5)
    assert saved(folder, STEPS)["global_step"] == STEPS


def test_a_history_has_the_settings_the_steps_and_the_epochs(straight):
    _, records = straight
    whole = history(training.SETTINGS, records)
    assert whole.settings == training.SETTINGS
    assert [step.step for step in whole.steps] == [*range(1, 16)]
    assert ([epoch.step for epoch in whole.epochs], whole.interrupted) == ([5, 10, 15], False)
    assert history(training.SETTINGS, records[:-1]).interrupted
    assert history(training.SETTINGS, records[:5]).interrupted
    assert not history(training.SETTINGS, records[12:]).interrupted  # resumed


TEN_ROWS = Settings("m", "d", train_rows=10, test_rows=4, batch_size=4, epochs=3, seed=7)


def step(number, loss, accuracy, seconds):
    return TrainingStep(number, loss, accuracy, 0.1, seconds)


def test_an_epoch_is_a_mean_over_rows_not_over_batches():
    steps = [step(4, 1.0, 0.25, 1.0), step(5, 2.0, 0.5, 1.5), step(6, 8.0, 1.0, 2.5)]
    assert (TEN_ROWS.epoch_steps, TEN_ROWS.steps) == (3, 9)
    assert trainer.epoch_of(TEN_ROWS, steps, 0.5, 0.75) == Epoch(
        epoch=2,
        step=6,
        train_loss=(4 * 1 + 4 * 2 + 2 * 8) / 10,
        train_accuracy=(1 + 2 + 2) / 10,
        test_loss=0.5,
        test_accuracy=0.75,
        seconds=5.0,
        images_per_second=2.0,
    )


def test_without_labels_there_is_a_loss_and_no_accuracy():
    ready = trainer.prepare("toy", models.find("toy"), Options())
    with opened(ready.program.graph) as live:
        loss, accuracy, predicted = trainer.evaluate(ready, live)
    columns = toy.line("test").columns
    errors = 2 * columns["x"] + 1 - columns["targets"]  # y and z start as 2 and 1
    assert loss == pytest.approx(np.mean(errors**2), rel=1e-6)
    assert math.isnan(accuracy) and predicted is None


# Stops


@pytest.mark.parametrize("stop, done", [(3, 0), (5, 0), (6, 5), (14, 10)])
def test_a_stopped_training_goes_on_from_its_last_epoch_to_the_same_end(
    tmp_path, straight, stop, done
):
    expected, records = straight
    with closing(trained(tmp_path)) as stopped:
        for record in stopped:
            if isinstance(record, TrainingStep) and record.step == stop:
                break
    assert steps_in(tmp_path) == [*range(5, done + 1, 5)]
    again = list(trained(tmp_path))
    assert untimed(again) == untimed(records[6 * done // 5 :])
    assert steps_in(tmp_path) == [5, 10, 15]
    for name, value in saved(expected, STEPS).items():
        assert np.array_equal(saved(tmp_path, STEPS)[name], value), name


# Failures


def test_a_loss_that_is_no_number_ends_it_and_keeps_what_was_good(tmp_path):
    records = []
    with pytest.raises(TflabError, match=r"^The training diverged: at step \d+ 'loss' is not fin"):
        records.extend(
            record for record in trained(tmp_path, with_rate(lambda n, *_: 1e38 if n > 5 else 0.01))
        )
    assert steps_in(tmp_path) == [5]


def test_weights_that_are_no_numbers_are_never_saved(tmp_path):
    records = trained(tmp_path, with_rate(lambda n, *_: math.inf if n == 9 else 0.01))
    assert refused(list, records) == (
        "TflabError: The training diverged: at step 10 'weights' is not finite. "
        f"The earlier checkpoints are kept in '{tmp_path}/checkpoints'. "
        "`python -m tflab.lifecycle --model small` shows the values of the first step."
    )
    assert steps_in(tmp_path) == [5]


@pytest.mark.parametrize("file", ["checkpoints/step-5.data-00000-of-00001", "train/events*"])
def test_a_disk_without_room_ends_it_and_what_was_saved_stays(
    tmp_path, straight, monkeypatch, capfd, file
):
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(trained(tmp_path)) as records:
        for _ in range(10):  # until step 9
            next(records)
        (path,) = tmp_path.glob(file)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, usual[1]))
        try:
            said = refused(list, records)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert said == (
        f"TflabError: Step 10 cannot be written to '{tmp_path}': File too large. The data saved "
        "before are complete; --resume continues from them."
    )
    assert "Traceback" not in capfd.readouterr().err
    assert untimed(list(trained(tmp_path))) == untimed(straight[1][6:])
