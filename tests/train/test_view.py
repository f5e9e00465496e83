"""The view of a training, as the text exporter prints it."""

import math
from dataclasses import replace

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
        view.plan_line(SETTINGS, 8),
        view.plan_line(replace(SETTINGS, epochs=2), 8),
        view.plan_line(small, 1),
        view.progress(SETTINGS, TimedStep(938, 0.5, 0.75, 0.1, 0.01)),
        view.progress(SETTINGS, TimedStep(939, 6.0, math.nan, 0.1, 0.01)),
        view.progress(SETTINGS, EPOCHS[0]),
    ]
    parts = [f"== {name}\n{text.as_text(view.blocks(h))}" for name, h in histories.items()]
    approve("training.txt", "\n".join([*lines, "", *parts]))


def test_the_time_of_a_training_is_told_after_ten_warm_steps():
    """The first step counts as little as traced ones do; then the median is 2 ms."""
    times = [9.0, *[0.001] * 5, *[0.003] * 5]
    warm = [TimedStep(n, 2, 1, 0.1, seconds) for n, seconds in enumerate(times, 1)]
    traced = [replace(warm[0], traced=True)] * 5
    assert view.expected([*warm[:10], *traced, EPOCHS[0]], 938) == ""
    assert view.expected([*traced, EPOCHS[0], *warm], 938) == (
        "About 1.88 s for 938 steps of 2.00 ms, without the test after each epoch."
    )


def test_a_long_training_has_a_row_for_every_epoch():
    epochs = tuple(replace(EPOCHS[0], epoch=n, step=1_000 * n) for n in range(1, 61))
    rows = grid(view.epochs(replace(HISTORY, epochs=epochs)))
    assert [cells[:2] for cells in rows[2:-1]] == [(f"{n}", f"{n},000") for n in range(1, 61)]
    assert rows[-1] == 0
