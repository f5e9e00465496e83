"""The view of a training, as the text exporter prints it."""

import math
from dataclasses import replace

import pytest

from tests.shown import grid
from tflab.exporters import text
from tflab.records.trained import Epoch, History
from tflab.train import view
from tflab.train.history import Settings, TimedStep

SETTINGS = Settings("lenet", "MNIST", 60_000, 10_000, 128, 8, 1)
EPOCHS = (
    Epoch(1, 469, 0.393, 0.8749, 0.0742, 0.9771, 2.31, 25_974.0),
    Epoch(2, 938, 0.00338, 0.9993, 0.0305, 0.9926, 2.25, 26_667.0),
)
HISTORY = History("lenet", "MNIST", 128, 1, (), EPOCHS)


def printed(history) -> str:
    return text.as_text(view.blocks(history))


def test_the_plan_says_what_is_trained_on_what_and_how():
    assert view.plan_line(SETTINGS) == (
        "lenet on MNIST: 8 epochs of 60,000 rows in 469 steps of up to 128, tested on 10,000 "
        "test rows. Seed 1."
    )


def test_an_epoch_is_a_line():
    assert view.epoch_line(EPOCHS[0], 8) == (
        "Epoch 1 of 8: loss 0.393, 87.49 % right; test 0.0742, 97.71 % right; "
        "2.31 s, 25,974 rows a second"
    )


def test_the_line_of_an_epoch_says_of_how_many_steps_its_rate_is():
    """Rows divided by its time give another rate if some steps were traced."""
    steps = [TimedStep(n, 2, 1, 0.1, 0.01, traced=3 < n < 9) for n in range(1, 9)]
    line = view.epoch_line(EPOCHS[0], 8, steps)
    assert line.endswith("2.31 s, 25,974 rows a second in the 3 steps not traced")
    for alike in (steps[:3], steps[3:]):
        assert view.epoch_line(EPOCHS[0], 8, alike) == view.epoch_line(EPOCHS[0], 8)


def test_a_line_is_silent_about_what_a_model_does_not_tell():
    silent = replace(EPOCHS[0], train_accuracy=math.nan, test_accuracy=math.nan)
    assert view.epoch_line(silent, 8) == (
        "Epoch 1 of 8: loss 0.393; test 0.0742; 2.31 s, 25,974 rows a second"
    )


def test_right_answers_are_explained_where_there_are_any():
    silent = tuple(
        replace(epoch, train_accuracy=math.nan, test_accuracy=math.nan) for epoch in EPOCHS
    )
    _, note = view.blocks(HISTORY)
    assert note.startswith("Loss and accuracy are means over all rows: ")
    _, note = view.blocks(replace(HISTORY, epochs=silent))
    assert note.startswith("The loss is a mean over all rows: ")


def test_meanwhile_the_last_steps_are_told():
    steps = [
        TimedStep(n, loss, right, 0.1, 0.01) for n, loss, right in ((470, 2, 0.5), (471, 1, 1))
    ]
    assert view.progress_line(SETTINGS, steps) == (
        "epoch 2 of 8, loss 1.50, 75.00 % right, 12,800 rows a second"
    )


def test_meanwhile_the_rate_is_that_of_untraced_steps():
    steps = [TimedStep(n, 2, 1, 0.1, 1 / n, traced=n < 10) for n in (1, 10)]
    assert view.progress_line(SETTINGS, steps).endswith("right, 1,280 rows a second")
    assert view.progress_line(SETTINGS, steps[:1]).endswith("right, 128 rows a second")


def test_all_epochs_are_a_table():
    assert (
        printed(HISTORY).split("\n\n")[0]
        == """
lenet on MNIST, batch 128, seed 1
  epoch  last step     loss    right  test loss  test right    time  rows a second
  ────────────────────────────────────────────────────────────────────────────────
      1        469    0.393  87.49 %     0.0742     97.71 %  2.31 s         25,974
      2        938  0.00338  99.93 %     0.0305     99.26 %  2.25 s         26,667"""
    )


def test_a_model_that_classifies_nothing_has_no_columns_for_it():
    silent = tuple(
        replace(epoch, train_accuracy=math.nan, test_accuracy=math.nan) for epoch in EPOCHS
    )
    table = next(iter(view.blocks(replace(HISTORY, epochs=silent))))
    assert [column.header for column in table.columns] == [
        "epoch",
        "last step",
        "loss",
        "test loss",
        "time",
        "rows a second",
    ]


def test_an_interrupted_training_says_so():
    table = next(iter(view.blocks(replace(HISTORY, interrupted=True))))
    assert table.title == "lenet on MNIST, batch 128, seed 1: partial"


def test_a_training_without_a_whole_epoch_has_no_table():
    step = TimedStep(1, 2.0, 0.5, 0.1, 0.01)
    history = replace(HISTORY, epochs=(), steps=(step, step))
    assert printed(history) == "\nNo epoch finished; 2 steps were done.\n"


def test_a_training_is_told_whole():
    table, note = view.blocks(HISTORY)
    assert grid(table) == [
        "lenet on MNIST, batch 128, seed 1",
        (
            *("epoch", "last step", "loss", "right", "test loss", "test right"),
            *("time", "rows a second"),
        ),
        ("1", "469", "0.393", "87.49 %", "0.0742", "97.71 %", "2.31 s", "25,974"),
        ("2", "938", "0.00338", "99.93 %", "0.0305", "99.26 %", "2.25 s", "26,667"),
        0,
    ]
    assert note == (
        "Loss and accuracy are means over all rows: in training on each batch before its update, "
        "in the test with the weights at the end of the epoch."
    )


@pytest.mark.parametrize(
    "numbers, said", [((4, 5, 6, 7, 8), "Steps 4 to 8 were traced"), ((4,), "Step 4 was traced")]
)
def test_a_training_says_which_steps_the_rate_leaves_out(numbers, said):
    steps = tuple(TimedStep(n, 2, 1, 0.1, 0.01, traced=n in numbers) for n in range(1, 11))
    *_, note = view.blocks(replace(HISTORY, steps=steps))
    assert note == (
        f"{said}: the times include traced steps. The rows a second count only the other steps, "
        "unless all steps of an epoch were traced."
    )


def test_a_long_training_has_a_row_for_every_epoch():
    epochs = tuple(replace(EPOCHS[0], epoch=n, step=1_000 * n) for n in range(1, 61))
    table, _ = view.blocks(replace(HISTORY, epochs=epochs))
    assert [cells[:2] for cells in table.cells()] == [(f"{n}", f"{n},000") for n in range(1, 61)]


def test_a_training_where_only_some_epochs_have_right_answers_shows_those():
    silent = replace(EPOCHS[0], train_accuracy=math.nan, test_accuracy=math.nan)
    table, note = view.blocks(replace(HISTORY, epochs=(silent, EPOCHS[1])))
    assert [cells[2:6] for cells in table.cells()] == [
        ("0.393", "", "0.0742", ""),
        ("0.00338", "99.93 %", "0.0305", "99.26 %"),
    ]
    assert note.startswith("Loss and accuracy are means over all rows: ")


def test_the_plan_counts_the_last_step_which_is_smaller_and_is_silent_about_all_threads():
    settings = Settings("toy", "points", 1_001, 503, 100, 1, 7)
    assert view.plan_line(settings) == (
        "toy on points: 1 epoch of 1,001 rows in 11 steps of up to 100, tested on 503 test rows. "
        "Seed 7."
    )


def test_meanwhile_three_steps_of_a_model_that_classifies_nothing_are_told_by_their_means():
    steps = [
        TimedStep(step, loss, math.nan, 0.1, seconds)
        for step, loss, seconds in ((937, 2.0, 0.01), (938, 2.5, 0.02), (939, 6.0, 0.06))
    ]
    assert view.progress_line(SETTINGS, steps) == "epoch 3 of 8, loss 3.50, 4,267 rows a second"
