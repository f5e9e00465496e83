"""The view of a training, as the text exporter prints it."""

import math
from dataclasses import replace

import pytest

from tests.approval import approve
from tests.shown import grid
from tflab.exporters import text
from tflab.records.trained import Epoch, History, Settings, TimedStep
from tflab.train import view

SETTINGS = Settings("lenet", "MNIST", 60_000, 10_000, 128, 8, 1)
EPOCHS = (
    Epoch(1, 469, 0.393, 0.8749, 0.0742, 0.9771, 2.31, 25_974.0),
    Epoch(2, 938, 0.00338, 0.9993, 0.0305, 0.9926, 2.25, 26_667.0),
)
SILENT = tuple(replace(e, train_accuracy=math.nan, test_accuracy=math.nan) for e in EPOCHS)


def steps(*traced, of=10):
    return tuple(TimedStep(n, 2, 1, 0.1, 0.01, traced=n in traced) for n in range(1, of + 1))


HISTORY = History("lenet", "MNIST", 128, 1, steps(4, 5, 6, 7, 8), EPOCHS)


def test_the_whole_view():
    small = Settings("toy", "points", 1_001, 503, 100, 1, 7)
    histories = {
        "traced": HISTORY,
        "interrupted": replace(HISTORY, interrupted=True, steps=steps(4)),
        "without classes": replace(HISTORY, epochs=SILENT, steps=steps()),
        "some without classes": replace(HISTORY, epochs=(SILENT[0], EPOCHS[1])),
        "before its first epoch": replace(HISTORY, epochs=()),
    }
    lines = [
        view.plan_line(SETTINGS),
        view.plan_line(small),
        view.epoch_line(EPOCHS[0], 8, steps(4, 5, 6, 7, 8, of=8)),
        view.epoch_line(EPOCHS[0], 8, steps(of=8)),
        view.epoch_line(SILENT[0], 8, steps(*range(1, 9), of=8)),
    ]
    parts = [f"== {name}\n{text.as_text(view.blocks(h))}" for name, h in histories.items()]
    approve("training.txt", "\n".join([*lines, "", *parts]))


def test_a_long_training_has_a_row_for_every_epoch():
    epochs = tuple(replace(EPOCHS[0], epoch=n, step=1_000 * n) for n in range(1, 61))
    rows = grid(view.epochs(replace(HISTORY, epochs=epochs)))
    assert [cells[:2] for cells in rows[2:-1]] == [(f"{n}", f"{n},000") for n in range(1, 61)]
    assert rows[-1] == 0


@pytest.mark.parametrize(
    "recent, said",
    [
        (
            [TimedStep(470, 2, 0.5, 0.1, 0.01), TimedStep(471, 1, 1, 0.1, 0.01)],
            "epoch 2 of 8, loss 1.50, 75.00 % right, 12,800 rows a second",
        ),
        (
            [TimedStep(n, x, math.nan, 0.1, s) for n, x, s in ((937, 2, 0.01), (939, 6, 0.06))],
            "epoch 3 of 8, loss 4.00, 3,657 rows a second",
        ),
        (
            [TimedStep(1, 2, 1, 0.1, 1, traced=True), TimedStep(10, 2, 1, 0.1, 0.1)],
            "epoch 1 of 8, loss 2.00, 100.00 % right, 1,280 rows a second",
        ),
        (
            [TimedStep(1, 2, 1, 0.1, 1, traced=True)],
            "epoch 1 of 8, loss 2.00, 100.00 % right, 128 rows a second",
        ),
    ],
)
def test_the_progress_has_means_of_the_last_steps_and_the_rate_of_untraced_ones(recent, said):
    assert view.progress_line(SETTINGS, recent) == said
