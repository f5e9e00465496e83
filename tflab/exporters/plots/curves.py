"""Curves: loss and accuracy during a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, isfinite
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tflab.exporters import fitting
from tflab.exporters.plots import style
from tflab.records.trained import History
from tflab.units import plural

MAX_POINTS = 200  # of a training line; more steps are averaged in blocks
LOGARITHMIC = 20  # ratio of the largest loss to the smallest, above which the axis is logarithmic
TICKS = 12
FEW = 40  # a line with fewer points has markers

Point = tuple[float, float]  # step, value


@style.applied()
def draw(history: History) -> Figure:
    """Loss above, accuracy below, over the steps; training as a line, the test as points. A model
    without classes has only the loss.

    A point of the training line is the mean of a block of steps, at the middle of the block. Losses
    that are not finite are omitted and counted in the caption.
    """
    if not history.steps:
        return style.message("Nothing was learned", f"{history.model} has no training steps.")
    losses = [(step.step, step.loss) for step in history.steps if isfinite(step.loss)]
    rights = [(step.step, step.accuracy) for step in history.steps if isfinite(step.accuracy)]
    test_losses = [(e.step, e.test_loss) for e in history.epochs if isfinite(e.test_loss)]
    test_rights = [(e.step, e.test_accuracy) for e in history.epochs if isfinite(e.test_accuracy)]
    block = ceil(len(history.steps) / MAX_POINTS)
    figure, panels = style.canvas(
        headline(history),
        caption(history, block, len(losses)),
        *((5.4, 2) if rights else (3.2, 1)),
    )
    draw_panel(panels[0], losses, test_losses, block, plain)
    panels[0].set_ylabel("loss")
    if is_logarithmic(losses + test_losses):
        style.logarithmic(panels[0], plain)
    else:
        panels[0].set_ylim(bottom=0)
    if rights:
        draw_panel(panels[1], rights, test_rights, block, percent)
        panels[1].set_ylabel("right answers")
        panels[1].set_ylim(top=1)
    epochs_axis(panels[-1], history)
    for axes in panels[:-1]:
        axes.sharex(panels[-1])
    return style.settled(figure)


def draw_panel(
    axes: Axes,
    train: Sequence[Point],
    test: Sequence[Point],
    block: int,
    text_of: Callable[..., str],
) -> None:
    """Draw the line of the training and the points of the test, with their last values in a
    legend."""
    axes.grid(axis="y")
    axes.yaxis.set_major_formatter(FuncFormatter(text_of))
    if train:
        steps, values = zip(*means(train, block), strict=True)
        axes.plot(
            steps,
            values,
            label=f"training {text_of(values[-1])}",
            color=style.BLUE,
            linewidth=1.2,
            marker="." if len(steps) < FEW else None,
        )
    if test:
        steps, values = zip(*test, strict=True)
        axes.plot(
            steps,
            values,
            label=f"test {text_of(values[-1])}",
            color=style.VERMILION,
            linewidth=1.4,
            linestyle="--",
            marker="o",
            markeredgecolor="white",
            clip_on=False,
            zorder=3,
        )
    if train or test:
        axes.legend()


def means(points: Sequence[Point], size: int) -> list[Point]:
    """Return the middle step and the mean value of each block of `size` points; the remainder joins
    the last block."""
    starts = range(0, max(len(points) - size, 0) + 1, size)
    blocks = [
        points[start:stop] for start, stop in zip(starts, [*starts[1:], len(points)], strict=True)
    ]
    return [
        (fmean(step for step, _ in block), fmean(value for _, value in block)) for block in blocks
    ]


def is_logarithmic(points: Sequence[Point]) -> bool:
    values = [value for _, value in points]
    return bool(values) and min(values) > 0 and max(values) > LOGARITHMIC * min(values)


def epochs_axis(axes: Axes, history: History) -> None:
    """Set ticks at the ends of epochs, numbered by epoch; by step if no epoch has ended."""
    axes.set_xlim(0, max(1, history.steps[-1].step))
    rows = plural(history.batch_size, "row")
    if not history.epochs:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlabel(f"step (of {rows})")
        return
    every = ceil(len(history.epochs) / TICKS)
    shown = history.epochs[every - 1 :: every]
    axes.set_xticks([epoch.step for epoch in shown], [f"{epoch.epoch}" for epoch in shown])
    axes.set_xlabel(f"epoch (the first is {plural(history.epochs[0].step, 'step')} of {rows})")


def headline(history: History) -> str:
    name = fitting.short_name(history.model, 30)
    if not history.epochs:
        return f"{name} after {plural(len(history.steps), 'step')}, before its first test"
    last = history.epochs[-1]
    if not isfinite(last.test_accuracy):
        return f"{name}: a test loss of {plain(last.test_loss)} after {plural(last.epoch, 'epoch')}"
    return (
        f"{name} is right on {percent(last.test_accuracy)} of the test rows after "
        f"{plural(last.epoch, 'epoch')}"
    )


def caption(history: History, block: int, finite: int) -> str:
    """Return what the lines show, and what is missing."""
    line = "each step" if block == 1 else f"mean of {block} steps"
    sentences = [
        f"Data: {history.data}.",
        f"Line: loss on the batch of each step, before its update ({line}).",
    ]
    if history.epochs:
        sentences.append("Points: all test data, with the weights at the end of an epoch.")
    if missing := len(history.steps) - finite:
        sentences.append(
            f"{plural(missing, 'step')} had a loss that is not finite, and cannot be drawn."
        )
    if history.interrupted:
        sentences.append("The training was interrupted.")
    return " ".join(sentences)


def plain(value: float, _: Any = None) -> str:
    return f"{value:.3g}"


def percent(share: float, _: Any = None) -> str:
    """Return `99.05 %`: two decimals, without trailing zeros."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + " %"
