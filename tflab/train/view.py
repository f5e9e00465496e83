"""The story of a training: an epoch a line, while it runs and at the end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tflab.records import Epoch, History
from tflab.records.blocks import Block, Column, Table
from tflab.train.epochs import Settings, TimedStep
from tflab.units import plural, time


def plan(settings: Settings) -> str:
    return (
        f"{settings.model} on {settings.data}: {plural(settings.epochs, 'epoch')} of "
        f"{settings.train_rows:,} rows in {plural(settings.epoch_steps, 'step')} of up to "
        f"{settings.batch_size:,}, tested on {settings.test_rows:,} others. Seed {settings.seed}"
        f"{', one thread' if settings.one_thread else ''}."
    )


def line(epoch: Epoch, of: int) -> str:
    """What there is to say when an epoch is over."""
    return (
        f"Epoch {epoch.epoch} of {of}: loss {digits(epoch.train_loss)}"
        f"{aside(epoch.train_accuracy)}; test {digits(epoch.test_loss)}"
        f"{aside(epoch.test_accuracy)}; {time(1e9 * epoch.seconds)}, "
        f"{epoch.images_per_second:,.0f} rows a second"
    )


def now(settings: Settings, recent: Sequence[TimedStep]) -> str:
    """What there is to say meanwhile, of the last steps."""
    loss, accuracy, seconds = (
        sum(getattr(step, name) for step in recent) / len(recent)
        for name in ("loss", "accuracy", "seconds")
    )
    epoch = math.ceil(recent[-1].step / settings.epoch_steps)
    return (
        f"epoch {epoch} of {settings.epochs}, loss {digits(loss)}{aside(accuracy)}, "
        f"{settings.batch_size / seconds:,.0f} rows a second"
    )


def aside(accuracy: float) -> str:
    return "" if math.isnan(accuracy) else f", {share(accuracy)} right"


def digits(loss: float) -> str:
    return f"{loss:#.3g}"


def share(accuracy: float) -> str:
    """Two digits more than whole percents: the best networks differ in the second."""
    return "" if math.isnan(accuracy) else f"{100 * accuracy:.2f} %"


def tell(found: History) -> Iterable[Block]:
    if not found.epochs:
        yield f"No epoch was finished; {plural(len(found.steps), 'step')} were done."
        return
    columns = [
        Column("epoch", lambda row: str(row.epoch), right=True),
        Column("steps", lambda row: f"{row.step:,}", right=True),
        Column("loss", lambda row: digits(row.train_loss), right=True),
        Column("right", lambda row: share(row.train_accuracy), right=True),
        Column("test loss", lambda row: digits(row.test_loss), right=True),
        Column("test right", lambda row: share(row.test_accuracy), right=True),
        Column("time", lambda row: time(1e9 * row.seconds), right=True),
        Column("rows a second", lambda row: f"{row.images_per_second:,.0f}", right=True),
    ]
    partial = ": partial" if found.interrupted else ""
    yield Table(
        f"{found.model} on {found.data}, batch {found.batch_size}, seed {found.seed}{partial}",
        tuple(column for column in columns if any(map(column.cell, found.epochs))),
        found.epochs,
    )
    classified = any(not math.isnan(epoch.train_accuracy) for epoch in found.epochs)
    means = "Loss and share of right answers are means" if classified else "The loss is a mean"
    yield (
        f"{means} over all rows: of training as each batch came, before it was learned from; of "
        "the test with the weights at the end of the epoch."
    )
