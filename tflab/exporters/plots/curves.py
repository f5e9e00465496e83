"""Curves: loss and accuracy during a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tflab.exporters import fitting
from tflab.exporters.plots import style
from tflab.records.measured import History
from tflab.units import plural

MAX_POINTS = 200  # of a training line; more steps are averaged in blocks

Point = tuple[float, float]  # epoch (or step, before the end of the first), value


@style.applied()
def draw(history: History) -> Figure:
    """Draw the loss above and, for a model with classes, the accuracy below. Training is a line,
    whose points are the means of blocks of steps; the test is drawn as points."""
    if not history.steps:
        about = f"{history.settings.model} has no training steps."
        return style.message("Nothing was learned", about)
    unit = history.epochs[0].step if history.epochs else 1

    def points(rows: Iterable[tuple[int, float]]) -> list[Point]:
        return [(step / unit, value) for step, value in rows if isfinite(value)]

    losses = points((step.step, step.loss) for step in history.steps)
    rights = points((step.step, step.accuracy) for step in history.steps)
    tests = points((epoch.step, epoch.test_loss) for epoch in history.epochs)
    tested = points((epoch.step, epoch.test_accuracy) for epoch in history.epochs)
    block = ceil(len(history.steps) / MAX_POINTS)
    about = (
        f"Data: {history.settings.data}. Line: loss on the batch of each step, before its update "
    )
    about += "(each step)." if block == 1 else f"(mean of {block} steps)."
    if history.epochs:
        about += " Points: all test data, with the weights at the end of an epoch."
    if missing := len(history.steps) - len(losses):
        about += f" Not drawn: {plural(missing, 'step')} with a loss that is not finite."
    about += " The training ended before its last epoch." * history.interrupted
    shown = [value for _, value in means(rights, block)] if rights else []
    # Twice as far from 100 % as the least of the second half; the first steps would hide the rest
    least = min(shown[len(shown) // 2 :] + [value for _, value in tested], default=0)
    bottom = min(floor(100 * (2 * least - 1)) / 100, 0.9)
    cut = min(shown, default=1) < bottom
    if cut:
        about += f" Accuracy below {percent(bottom)} is not shown."
    height, count = (5.4, 2) if rights else (3.2, 1)
    model = fitting.middle_cut(history.settings.model, 30)
    title = f"{model} after {plural(len(history.steps), 'step')}, before its first test"
    if history.epochs:
        last = history.epochs[-1]
        title = f"{model}: a test loss of {last.test_loss:.3g}"
        if isfinite(last.test_accuracy):
            title = f"{model} is right on {percent(last.test_accuracy)} of the test rows"
        title += f" after {plural(last.epoch, 'epoch')}"
    figure, panels = style.canvas(title, about, height, count)
    draw_panel(panels[0], losses, tests, block, "{:.3g}".format)
    panels[0].set_ylabel("mean loss")
    panels[0].set_ylim(bottom=0)
    if rights:
        draw_panel(panels[1], rights, tested, block, percent)
        panels[1].set_ylabel("mean accuracy")
        panels[1].set_ylim(bottom if cut else None, 1)
        panels[0].sharex(panels[1])
    panels[-1].set_xlim(0, max(1, history.steps[-1].step / unit))
    panels[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
    rows = plural(history.settings.batch_size, "row")
    epoch = f"epoch (the first is {plural(unit, 'step')} of {rows})"
    panels[-1].set_xlabel(epoch if history.epochs else f"step (of {rows})")
    return style.settled(figure)


def draw_panel(
    axes: Axes,
    train: Sequence[Point],
    test: Sequence[Point],
    block: int,
    text_of: Callable[[float], str],
) -> None:
    """Draw the training as a line and the test as points, with their last values in a legend."""
    axes.grid(axis="y")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text_of(value)))
    shown = means(train, block) if train else []
    lines = (
        ("training", shown, ".-" if len(shown) < 40 else "-", style.BLUE),
        ("test", test, "--o", style.VERMILION),
    )
    for name, points, look, color in lines:
        if points:
            label = f"{name}, last {text_of(points[-1][1])}"
            drawn = axes.plot(*zip(*points, strict=True), look, label=label, color=color)
            drawn[0].set_clip_on(name == "training")
            axes.legend()


def means(points: Sequence[Point], size: int) -> list[Point]:
    """Return the mean of x and y in each block of `size` points or a few more."""
    blocks = np.array_split(np.array(points), max(len(points) // size, 1))
    return [tuple(block.mean(axis=0).tolist()) for block in blocks]


def percent(share: float) -> str:
    """Return `99.05 %`: two decimals, without trailing zeros."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + " %"
