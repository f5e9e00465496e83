"""The view of a training, as the text exporter prints it."""

import math
from dataclasses import replace

from tests.approval import approve
from tflab.exporters import text
from tflab.records.trained import Epoch, History, Settings, TrainingStep
from tflab.train import view

SETTINGS = Settings("lenet", "MNIST", 60_000, 10_000, 128, 8, 1)
EPOCHS = (
    Epoch(1, 469, 0.393, 0.8749, 0.0742, 0.9771, 2.31, 25_974.0),
    Epoch(2, 938, 0.00338, 0.9993, 0.0305, 0.9926, 2.25, 26_667.0),
)
SILENT = tuple(replace(e, train_accuracy=math.nan, test_accuracy=math.nan) for e in EPOCHS)


HISTORY = History(replace(SETTINGS, epochs=2), (TrainingStep(1, 2, 1, 0.1, 0.01),) * 10, EPOCHS)


def test_the_whole_view():
    small = Settings("toy", "points", 1_001, 503, 100, 1, 7)
    histories = {
        "whole": HISTORY,
        "interrupted": replace(HISTORY, settings=SETTINGS),
        "without classes": replace(HISTORY, epochs=SILENT),
        "some without classes": replace(HISTORY, epochs=(SILENT[0], EPOCHS[1])),
        "before its first epoch": replace(HISTORY, epochs=()),
    }
    lines = [
        view.plan_line(SETTINGS, 8),
        view.plan_line(replace(SETTINGS, epochs=2), 8),
        view.plan_line(small, 1),
        view.progress(SETTINGS, TrainingStep(938, 0.5, 0.75, 0.1, 0.01)),
        view.progress(SETTINGS, TrainingStep(939, 6.0, math.nan, 0.1, 0.01)),
        view.progress(SETTINGS, EPOCHS[0]),
    ]
    parts = [f"== {name}\n{text.as_text(view.blocks(h))}" for name, h in histories.items()]
    approve("training.txt", "\n".join([*lines, "", *parts]))


def test_the_time_of_a_training_is_told_after_ten_warm_steps():
    """The first step does not count; the median of the others is 2 ms."""
    times = [9.0, *[0.001] * 5, *[0.003] * 5]
    records = [TrainingStep(n, 2, 1, 0.1, seconds) for n, seconds in enumerate(times, 1)]
    assert view.expected([*records[:7], EPOCHS[0], *records[7:]], 938) == (
        "About 1.88 s for 938 steps of 2.00 ms, without the test after each epoch."
    )
