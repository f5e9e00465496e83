"""The chapter of a training: its curves and its epochs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tflab.exporters import plots
from tflab.records.blocks import Column, Table
from tflab.records.trained import Epoch, History
from tflab.report import pictures
from tflab.report.contents import EPOCHS, Lab, Method, Part
from tflab.train import view
from tflab.units import time


def title(lab: Lab) -> str:
    return "Loss and accuracy" if lab.history is None or classified(lab.history) else "Loss"


def parts(lab: Lab) -> Iterator[Part]:
    if lab.history is None:
        yield f"{lab.model} has no loss, so it cannot be trained."
        return
    yield pictures.picture("curves", plots.curves.draw, lab.history)
    if lab.history.interrupted:
        yield "Partial: this training ended before its last epoch."
    if lab.history.epochs:
        yield epochs(lab.history)
    origin = f"Read from {lab.logdir}." if lab.logdir else "Trained for this report."
    means = "Losses and accuracies are means" if classified(lab.history) else "Losses are means"
    yield Method(
        f"{origin} {means} over rows; the test uses all test rows at the end of each "
        f"epoch.{left_out(lab.history)}",
        f"python -m tflab.train --model {lab.model} --epochs {len(lab.history.epochs) or EPOCHS} "
        f"--batch-size {lab.history.batch_size} --seed {lab.history.seed}",
    )


def left_out(history: History) -> str:
    """Which steps are not in the rows per second."""
    traced = view.traced_steps(history)
    return f" {traced}: the time includes traced steps, the rows a second do not." if traced else ""


def classified(history: History) -> bool:
    """Whether there are correct answers, and so an accuracy."""
    return any(not math.isnan(epoch.train_accuracy) for epoch in history.epochs)


def epochs(history: History) -> Table:
    def rate(row: Epoch) -> str:
        return f"{row.images_per_second:,.0f}"

    def right(share: float) -> str:
        return "" if math.isnan(share) else f"{100 * share:.2f} %"

    columns = (
        Column("epoch", lambda row: str(row.epoch), right=True),
        Column("last step", lambda row: f"{row.step:,}", right=True),
        Column("train loss", lambda row: f"{row.train_loss:.3g}", right=True),
        Column("train accuracy", lambda row: right(row.train_accuracy), right=True),
        Column("test loss", lambda row: f"{row.test_loss:.3g}", right=True),
        Column("test accuracy", lambda row: right(row.test_accuracy), right=True),
        Column("time", lambda row: time(1e9 * row.seconds), right=True),
        Column("rows a second", rate, right=True),
    )
    return Table(
        f"Epochs on {history.data}",
        tuple(column for column in columns if any(map(column.cell, history.epochs))),
        history.epochs,
    )
