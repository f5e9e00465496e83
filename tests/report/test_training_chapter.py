"""The chapter of a training: every sentence and cell, from a history worked out by hand."""

import math
from dataclasses import replace

import pytest

from tests.examples.lab import HISTORY, LAB, shown
from tests.shown import grid, layout
from tflab.report import step_chapters
from tflab.report.contents import Method

pytestmark = pytest.mark.usefixtures("undrawn")


def test_a_training_is_its_curves_and_all_of_its_epochs():
    assert shown(step_chapters.training(LAB)) == [
        ("curves", ("curves", HISTORY)),
        [
            "Epochs on points",
            (
                *(
                    "epoch",
                    "last step",
                    "train loss",
                    "train accuracy",
                    "test loss",
                    "test accuracy",
                ),
                *("time", "rows a second"),
            ),
            ("1", "402", "0.393", "87.49 %", "0.0742", "97.71 %", "2.31 s", "25,974"),
            ("2", "804", "0.0338", "99.93 %", "0.0305", "99.26 %", "2.75 s", "26,667"),
            ("3", "1,205", "0.0123", "99.96 %", "0.0234", "99.34 %", "3.26 s", "27,888"),
            0,
        ],
        Method(
            "Trained for this report. Losses and accuracies are means over rows; the test uses "
            "all test rows at the end of each epoch. Steps 4 to 8 were traced: the times include "
            "traced steps. The rows a second count only the other steps, unless all steps of an "
            "epoch were traced.",
            "python -m tflab.train --model lenet --epochs 3 --batch-size 50",
        ),
    ]


def test_a_training_that_broke_off_says_so():
    lab = replace(LAB, history=replace(HISTORY, interrupted=True))
    _, partial, *_ = step_chapters.training(lab)
    assert partial == "Partial: this training ended before its last epoch."


def test_a_model_without_a_loss_says_that_there_is_nothing_to_train():
    assert list(step_chapters.training(replace(LAB, history=None))) == [
        "lenet has no loss, so it cannot be trained."
    ]


def test_a_training_without_right_answers_has_no_columns_for_them():
    silent = tuple(
        replace(epoch, train_accuracy=math.nan, test_accuracy=math.nan) for epoch in HISTORY.epochs
    )
    lab = replace(LAB, history=replace(HISTORY, epochs=silent[:1]))
    _, table, recipe = step_chapters.training(lab)
    assert (step_chapters.training_title(lab), step_chapters.training_title(LAB)) == (
        "Loss",
        "Loss and accuracy",
    )
    assert grid(table)[1:] == [
        ("epoch", "last step", "train loss", "test loss", "time", "rows a second"),
        ("1", "402", "0.393", "0.0742", "2.31 s", "25,974"),
        0,
    ]
    assert recipe.how.startswith("Trained for this report. Losses are means over rows; ")


def test_numbers_of_epochs_stand_right():
    _, table, _ = step_chapters.training(LAB)
    assert layout(table) == [
        *("epoch right", "last step right", "train loss right", "train accuracy right"),
        *("test loss right", "test accuracy right", "time right"),
        "rows a second right",
    ]


def test_a_training_that_was_ended_before_its_first_epoch_has_curves_and_no_table():
    short = replace(HISTORY, epochs=(), interrupted=True)
    picture, partial, recipe = step_chapters.training(replace(LAB, history=short))
    assert picture == ("curves", ("curves", short))
    assert partial == "Partial: this training ended before its last epoch."
    assert recipe.command.startswith("python -m tflab.train --model lenet --epochs 2 ")


def test_losses_have_three_digits_however_small_and_short_epochs_their_milliseconds():
    tiny = replace(HISTORY.epochs[0], train_loss=3.77e-12, test_loss=1.37e-12, seconds=0.00235)
    _, table, _ = step_chapters.training(replace(LAB, history=replace(HISTORY, epochs=(tiny,))))
    assert grid(table)[2] == (
        *("1", "402", "3.77e-12", "87.49 %", "1.37e-12", "97.71 %", "2.35 ms", "25,974"),
    )
