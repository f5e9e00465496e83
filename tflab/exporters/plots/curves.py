"""Curves: loss and accuracy during a training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import ceil, floor, isfinite
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tflab.exporters import fitting
from tflab.exporters.plots import label_placement, style
from tflab.records.trained import History
from tflab.units import plural

MAX_POINTS = 200  # of a training line; more steps are averaged in blocks
LOGARITHMIC = 20  # ratio of the largest loss to the smallest, above which the axis is logarithmic
DECADES = 1000  # ratio of the largest loss to the smallest, above which only decades have ticks
TICKS = 12
FEW = 40  # a line with fewer points has markers

Point = tuple[float, float]  # step, value


@style.applied()
def draw(history: History) -> Figure:
    """Loss above, accuracy below, over the steps; training as a line, the test as points. A model
    without classes has only the loss.

    A point of the training line is the mean of a block of steps, drawn at the middle of the block,
    so that the line does not lag. The band is the 10th to 90th percentile of each block. Losses
    that are not finite are omitted and counted in the caption.
    """
    if not history.steps:
        return style.message("Nothing was learned", f"{history.model} has no training steps.")
    losses = [(step.step, step.loss) for step in history.steps if isfinite(step.loss)]
    rights = [(step.step, step.accuracy) for step in history.steps if isfinite(step.accuracy)]
    test_losses = [(e.step, e.test_loss) for e in history.epochs if isfinite(e.test_loss)]
    test_rights = [(e.step, e.test_accuracy) for e in history.epochs if isfinite(e.test_accuracy)]
    block = ceil(len(history.steps) / MAX_POINTS)
    lowest = lower_edge(means(rights, block), test_rights) if rights else 0.0
    figure, (above, *below) = style.canvas(
        headline(history),
        caption(history, block, len(losses), lowest),
        *((5.4, 2) if rights else (3.2, 1)),
    )
    if needs_log_scale(losses + test_losses):
        above.set_yscale("log")
        above.yaxis.set_major_locator(LogLocator(subs=marks(losses + test_losses)))
        above.yaxis.set_minor_formatter(NullFormatter())
    else:
        above.set_ylim(0, 1.05 * max((value for _, value in losses + test_losses), default=1))
    above.yaxis.set_major_formatter(FuncFormatter(plain))
    above.set_ylabel("loss")
    labels = [panel(above, losses, test_losses, block, plain)]
    for axes in below:
        axes.set_ylim(lowest, 1 + 0.04 * (1 - lowest))
        axes.yaxis.set_major_formatter(FuncFormatter(percent))
        axes.set_ylabel("right answers")
        labels.append(panel(axes, rights, test_rights, block, percent))
    for axes in (above, *below):
        epochs_axis(axes, history)
    if below:
        above.set_xlabel("")
    style.settle(figure)
    for axes, panel_labels in zip((above, *below), labels, strict=True):
        label_placement.separate(axes, panel_labels)
    return figure


def panel(
    axes: Axes, train: Sequence[Point], test: Sequence[Point], block: int, text_of: Any
) -> list[Annotation]:
    """Draw one panel's line, band and points, and a label for each at the right end."""
    axes.grid(axis="y")
    labels = []
    if train:
        steps, middle = zip(*means(train, block), strict=True)
        if block > 1:
            low, high = zip(*bands(train, block), strict=True)
            axes.fill_between(steps, low, high, color=style.PALE, linewidth=0, alpha=0.7)
        marker = "." if len(steps) < FEW else None
        axes.plot(steps, middle, color=style.BLUE, linewidth=1.2, marker=marker)
        end = (train[-1][0], middle[-1])
        labels.append(
            label_placement.label(axes, end, f"training {text_of(middle[-1])}", style.BLUE, "━")
        )
    if test:
        steps, values = zip(*test, strict=True)
        axes.plot(
            steps,
            values,
            color=style.VERMILION,
            linewidth=1.4,
            linestyle="--",
            marker="o",
            markersize=6,
            markeredgecolor="white",
            clip_on=False,
            zorder=3,
        )
        labels.append(
            label_placement.label(
                axes, test[-1], f"test {text_of(values[-1])}", style.VERMILION, "●"
            )
        )
    return labels


def blocks(points: Sequence[Point], size: int) -> list[Sequence[Point]]:
    """Consecutive points in blocks of `size`; the remainder joins the last block."""
    starts = range(0, max(len(points) - size, 0) + 1, size)
    cuts = [*starts[1:], len(points)]
    return [points[start:stop] for start, stop in zip(starts, cuts, strict=True)]


def means(points: Sequence[Point], size: int) -> list[Point]:
    """For each block, its middle step and its mean value."""
    return [
        (fmean(step for step, _ in block), fmean(value for _, value in block))
        for block in blocks(points, size)
    ]


def bands(points: Sequence[Point], size: int) -> list[tuple[float, float]]:
    """For each block, its 10th and its 90th percentile."""
    percentiles = []
    for block in blocks(points, size):
        values = [value for _, value in block]
        percentiles.append((float(np.quantile(values, 0.1)), float(np.quantile(values, 0.9))))
    return percentiles


def needs_log_scale(points: Sequence[Point]) -> bool:
    values = [value for _, value in points]
    return bool(values) and min(values) > 0 and max(values) > LOGARITHMIC * min(values)


def marks(points: Sequence[Point]) -> tuple[float, ...]:
    """The ticks within a decade of a logarithmic axis: fewer if the axis has many decades."""
    values = [value for _, value in points]
    return (1, 2, 5) if max(values) < DECADES * min(values) else (1,)


def lower_edge(train: Sequence[Point], test: Sequence[Point]) -> float:
    """The lower end of the accuracy axis: a round share below the test and most of the training.

    Cutting the axis makes the two lines easier to compare. If that would remove half of it or less,
    it begins at 0.
    """
    usual = float(np.quantile([value for _, value in train], 0.1))
    lowest = min([usual, *(value for _, value in test)])
    return floor(20 * lowest - 0.2) / 20 if lowest > 0.55 else 0.0


def epochs_axis(axes: Axes, history: History) -> None:
    """Ticks at the ends of epochs, numbered by epoch; by step if no epoch has ended."""
    axes.set_xlim(0, max(1, history.steps[-1].step))
    if not history.epochs:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlabel(f"step (of {plural(history.batch_size, 'row')})")
        return
    every = ceil(len(history.epochs) / TICKS)
    shown = [*islice(history.epochs, every - 1, None, every)]
    axes.set_xticks([epoch.step for epoch in shown], [f"{epoch.epoch}" for epoch in shown])
    steps = plural(history.epochs[0].step, "step")
    axes.set_xlabel(f"epoch (the first is {steps} of {plural(history.batch_size, 'row')})")


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


def caption(history: History, block: int, finite: int, lowest: float) -> str:
    """What the lines show, and what is missing."""
    percentiles = "10th to 90th percentile"
    line = "each step" if block == 1 else f"mean of {block} steps, with their {percentiles}"
    sentences = [
        f"Data: {history.data}.",
        f"Line: loss on the batch of each step, before its update ({line}).",
    ]
    if history.epochs:
        sentences.append("Points: all test data, with the weights at the end of an epoch.")
    if lowest:
        sentences.append(f"The lower panel starts at {percent(lowest)}; lower values are cut off.")
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
    """`99.05 %`: two decimals, without trailing zeros."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + " %"
