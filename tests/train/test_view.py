"""The view of a training, as the text exporter prints it."""

import math
from dataclasses import replace

from tests.examples.lab import HISTORY
from tests.examples.printed import approve_view
from tflab.records.measured import Settings, TrainingStep
from tflab.train import view

EPOCHS = HISTORY.epochs
SILENT = tuple(replace(e, train_accuracy=math.nan, test_accuracy=math.nan) for e in EPOCHS)


def test_the_whole_view():
    settings = HISTORY.settings
    variants = {
        "interrupted": view.blocks(replace(HISTORY, settings=replace(settings, epochs=4))),
        "without classes": view.blocks(replace(HISTORY, epochs=SILENT)),
        "some without classes": view.blocks(replace(HISTORY, epochs=SILENT[:1] + EPOCHS[1:])),
        "before its first epoch": view.blocks(replace(HISTORY, epochs=())),
        "plans and progress": [
            view.plan_line(settings, 8),
            view.plan_line(Settings("toy", "points", 1_001, 503, 100, 1, 7), 1),
            view.progress(settings, TrainingStep(804, 0.5, 0.75, 0.1, 0.01)),
            view.progress(settings, TrainingStep(805, 6.0, math.nan, 0.1, 0.01)),
            view.progress(settings, EPOCHS[0]),
        ],
    }
    approve_view("views-training.txt", view.blocks(HISTORY), variants)


def test_the_time_of_a_training_is_told_after_ten_warm_steps():
    """The first step does not count; the median of the others is 2 ms. Less than a second is not
    told, because tests and checkpoints may take longer."""
    times = [9.0, *[0.001] * 5, *[0.003] * 5]
    records = [TrainingStep(n, 2, 1, 0.1, seconds) for n, seconds in enumerate(times, 1)]
    assert view.expected([*records[:7], EPOCHS[0], *records[7:]], 938) == (
        "About 2 s for 938 steps, without the test after each epoch."
    )
    assert view.expected(records, 90_000).startswith("About 3 min for")
    assert view.expected(records, 499) == ""
