"""View of a training: a line for every epoch while it runs, and a table at the end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from tflab.records.blocks import Block, Table, numbers
from tflab.records.measured import Epoch, History, Settings, TrainingStep
from tflab.units import plural, time

JUDGED = 11  # records, after which the time of all steps is estimated


def plan_line(settings: Settings, recipe: int) -> str:
    """Return what the training will do; `recipe` is the number of epochs in the model's recipe."""
    fewer = settings.epochs < recipe
    more = f" The model's recipe has {recipe} epochs (--epochs {recipe})." if fewer else ""
    return (
        f"{settings.model} on {settings.data}: {plural(settings.epochs, 'epoch')} of "
        f"{settings.train_rows:,} rows in {plural(settings.epoch_steps, 'step')} of up to "
        f"{settings.batch_size:,}, tested on {plural(settings.test_rows, 'row')}. Seed "
        f"{settings.seed}.{more}"
    )


def expected(first: Sequence[TrainingStep | Epoch], steps: int) -> str:
    """Return how long these steps will take, judged by the first ones but the very first; "" for
    less than a second, which tests and checkpoints may exceed."""
    each = median([step.seconds for step in first if isinstance(step, TrainingStep)][1:])
    if each * steps < 1:
        return ""
    amount, unit = (each * steps / 60, "min") if each * steps >= 120 else (each * steps, "s")
    return (
        f"About {float(f'{amount:.0e}'):g} {unit} for {plural(steps, 'step')}, without the test "
        "after each epoch."
    )


def progress(settings: Settings, record: TrainingStep | Epoch) -> str:
    """Return `epoch 2 of 8, accuracy 97.10 %, loss 0.103` of a step, or of an epoch at its end."""
    epoch = f"epoch {math.ceil(record.step / settings.epoch_steps)} of {settings.epochs}"
    if isinstance(record, Epoch):
        return f"{epoch}, test loss {loss_digits(record.test_loss)}"
    return f"{epoch}, {result(record.loss, record.accuracy)}"


def result(loss: float, accuracy: float) -> str:
    """Return `accuracy 97.10 %, loss 0.103`, or the loss alone if nothing is classified."""
    right = accuracy_percent(accuracy)
    return f"{f'accuracy {right}, ' * bool(right)}loss {loss_digits(loss)}"


def classified(history: History) -> bool:
    """Return whether there are correct answers, and so an accuracy."""
    return any(not math.isnan(epoch.train_accuracy) for epoch in history.epochs)


def loss_digits(loss: float) -> str:
    return f"{loss:#.3g}"


def accuracy_percent(accuracy: float) -> str:
    """Return `99.05 %`, as the best networks differ in the second decimal; "" for nan."""
    return "" if math.isnan(accuracy) else f"{100 * accuracy:.2f} %"


def blocks(history: History, brief: bool = False) -> Iterable[Block]:
    """Yield the epochs and, unless `brief`, their result as a sentence, and what is averaged."""
    if not history.epochs:
        yield f"No epoch finished; {plural(len(history.steps), 'step')} were done."
        return
    last, ns = history.epochs[-1], 1e9 * sum(epoch.seconds for epoch in history.epochs)
    if brief or len(history.epochs) > 1:
        yield epochs(history, brief)
    if not brief:
        yield (
            f"Test {result(last.test_loss, last.test_accuracy)}; training "
            f"{result(last.train_loss, last.train_accuracy)}; epoch {last.epoch} of "
            f"{history.settings.epochs}, {time(ns)} of training."
        )
    yield "Training: mean over the epoch, each batch before its update. Test: after the epoch."


def epochs(history: History, named: bool) -> Table:
    columns = [
        numbers("epoch", lambda row: str(row.epoch)),
        numbers("last step", lambda row: f"{row.step:,}"),
        numbers("loss", lambda row: loss_digits(row.train_loss)),
        numbers("accuracy", lambda row: accuracy_percent(row.train_accuracy)),
        numbers("test loss", lambda row: loss_digits(row.test_loss)),
        numbers("test accuracy", lambda row: accuracy_percent(row.test_accuracy)),
        numbers("time", lambda row: time(1e9 * row.seconds), 1),
        numbers("rows a second", lambda row: f"{row.images_per_second:,.0f}", 2),
    ]
    trained, partial = history.settings, ": partial" if history.interrupted else ""
    about = f"{trained.model} on {trained.data}, batch {trained.batch_size}, seed {trained.seed}"
    return Table(
        f"{about if named else 'The epochs'}{partial}",
        tuple(column for column in columns if any(map(column.cell, history.epochs))),
        history.epochs,
    )
