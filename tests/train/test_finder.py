"""Finder: the origin of what is not finite, from a copy of the variables that was finite."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.train.test_loop import SETTINGS, build, prepared, sgd, trained
from tflab.errors import TflabError
from tflab.runtime import session
from tflab.train import checkpoints, finder, history

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def folder(tmp_path) -> Path:
    history.create(tmp_path / history.NAME, SETTINGS)
    return tmp_path


def message(folder, function):
    with pytest.raises(TflabError) as error:
        list(trained(folder, function))
    text = str(error.value)
    end = f" The earlier checkpoints are kept in '{folder / checkpoints.FOLDER}'."
    assert text.endswith(end)
    return text.removesuffix(end)


def log_of_zero():
    model = build()
    relu = tf.nn.relu(model.output - 1e6, name="relu")
    loss = tf.reduce_mean(tf.negative(tf.math.log(relu, name="planted")))  # here: log
    return replace(model, loss=loss)


def test_before_any_update_the_node_and_its_line_are_named_and_what_went_in(folder):
    lines = Path(__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "# here: log" in text)
    said = message(folder, log_of_zero)
    assert said.startswith(
        "The training diverged: the loss of step 1, in epoch 1, is inf. In step 1: Inf came from "
        f"planted (Log, test_finder.py:{line}), "
    )
    assert "Of its 80 elements, 80 are infinite. Its inputs: relu: 80 zeros. " in said


@pytest.mark.parametrize("pauses", [0, 1e9])  # a copy before each step; one at the start alone
def test_the_step_is_named_that_made_it_and_not_the_one_in_which_it_showed(
    pauses, folder, monkeypatch
):
    monkeypatch.setattr(finder, "PAUSES", pauses)

    def large():
        model = sgd(lambda step, *_: 3e38 if step == 6 else 0.01)()
        return replace(model, loss=model.loss * 1e3)

    said = message(folder, large)
    assert ". In step 7: " in said and ", wrote Inf into the variable weights. " in said
    assert "ResourceApplyGradientDescent" in said and "too large for float32" in said
    assert "learning_rate: 3e+38" in said


def test_what_does_not_happen_again_is_said_so(folder):
    trainer = prepared()
    with session.fresh(trainer.program.graph, trainer.options) as live:
        session.begin(live, session.start_of(trainer.program))
        kept = finder.Kept(trainer, live)
        assert kept.copy(0) is None
        columns = session.feed_columns(trainer.program, "train").values()
        fed = [*(column[:16] for column in columns), np.float32(0.01)]
        assert finder.find(kept, lambda number: fed, 3) == (
            "When the last 3 steps were repeated, all values stayed finite: the order of "
            "additions or the random numbers differ from run to run."
        )


def test_only_variables_that_are_finite_are_kept():
    trainer = prepared()
    with session.fresh(trainer.program.graph, trainer.options) as live:
        session.begin(live, session.start_of(trainer.program))
        kept = finder.Kept(trainer, live)
        assert kept.copy(3) is None
        before = kept.variables["weights"]
        live.run(
            "weights/Assign",
            {live.graph.get_operation_by_name("weights/Assign").inputs[1]: before * math.nan},
        )
        assert kept.copy(4) == "weights"
        assert (kept.step, np.isfinite(kept.variables["weights"]).all()) == (3, True)
