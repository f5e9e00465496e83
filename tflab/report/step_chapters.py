"""The chapters of a step: its most expensive ops, its time, and its memory; what the network saw;
and the training, with its curves and its epochs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tflab.analysis import step_times
from tflab.exporters import plots
from tflab.records.blocks import fact_table
from tflab.records.measured import Comparison
from tflab.records.values import Maps, Probabilities
from tflab.report import comparison_chapters, contents, graph_chapter
from tflab.report.contents import EPOCHS, Lab, Method, Part, Walked
from tflab.runtime import trace
from tflab.train import view as training_view
from tflab.views import execution


def top_ops(walked: Walked, compared: Comparison) -> Iterator[Part]:
    step = walked.execution
    yield phases(walked)
    yield contents.picture("op_bars", plots.op_bars.draw, step.top_ops, "node")
    heading = "A training step's nodes" if trains(walked) else "A step's nodes"
    yield execution.top_table(heading, step.top_ops, step, "node")
    yield Method(contents.warm(step), contents.walking(walked))
    yield from execution.costs(step)
    if step.experiments and step.experiments.control:
        yield Method(
            "The numbers are from untraced steps, which alternate with traced ones.",
            f"{contents.walking(walked)} --experiments",
        )
    yield comparison_chapters.calls_at_each_size(compared)
    yield contents.swept(compared)


def trains(walked: Walked) -> bool:
    return "updates" in graph_chapter.more_than_forward(walked)


def phase(walked: Walked) -> str:
    return "training" if trains(walked) else "inference"


def phases(walked: Walked) -> str:
    """Which numbers are from training and which from inference."""
    if not trains(walked):
        return f"{walked.model} is not trained here: all numbers are from inference."
    return (
        "The graphs, their nodes, times and memory are from a training step. The comparisons of "
        "batch sizes and configurations are from inference, with the same weights for all."
    )


def times(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    yield from execution.load_line(step.load)
    owners = execution.owners(step.time_ledger, step.wall_ns, step.steps)
    yield fact_table([*execution.step_times(step), *owners])
    middle = step_times.median_step(step.step_times)
    runs = [run for run in step.runs if run.step == middle.step and run.name != trace.EXECUTOR]
    drawn = contents.picture("timeline", plots.timeline.draw, runs, middle, step.critical_path)
    title = plots.timeline.headline(runs, middle, {*step.critical_path.nodes})
    slices = plots.timeline.slices(runs, middle, step.critical_path)
    yield replace(drawn, title=title, slices=slices)
    yield fact_table(execution.parallel(step.critical_path, step.step_times))
    yield Method(contents.warm(step), contents.walking(walked))


def memory(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    if step.memory.curve and not execution.compiled(step.nodes):
        yield contents.picture("memory", plots.memory.draw, step.memory.curve)
    if facts := list(execution.memory_facts(step.memory, step.nodes)):
        yield fact_table(facts)
    yield from execution.holders(step.memory, step.nodes)
    yield Method(
        "The numbers are computed from the memory that each op requested from its allocators in "
        f"traced steps. {contents.warm(step)}",
        contents.walking(walked),
    )


# The chapter of what the network saw: one image through all layers, with gradients


def maps_of(walked: Walked) -> Maps | None:
    """The feature maps among the program's values; None if there is not even a layer."""
    maps = walked.execution.maps
    return maps if maps and len(maps.maps) > 1 else None


def network(walked: Walked, maps: Maps) -> Iterator[Part]:
    yield (
        "From top to bottom, the image passes through the layers: each row shows the output of a "
        "layer, with one tile for each channel. On the right, from bottom to top, is the gradient "
        "of the loss with respect to each of these numbers. A max-pool passes its gradient only "
        "to the largest of its elements, and a ReLU only to those above 0: the rest is white."
    )
    record = maps.probabilities
    if record and is_softmax_less_label(record, walked.execution.batch_size):
        yield (
            "The gradient starts in the last row: the gradient with respect to a score is its "
            f"probability, minus 1 for the label ({record.label}), divided by the number of "
            "images in the batch. A step against it raises the score of the label and lowers all "
            "others."
        )
    yield contents.picture("feature_maps", plots.feature_maps.draw, maps)
    yield Method(
        "Every tensor is fetched by one step that is not timed, with the graph passes off. If a "
        "line says softmax, tflab computed it from the scores.",
        contents.walking(walked),
    )


def is_softmax_less_label(record: Probabilities, batch: int) -> bool:
    """Whether the gradient with respect to the scores is that of a mean cross entropy over the
    batch."""
    if record.gradient is None or record.label is None or record.computed:
        return False
    expected = (record.array - np.eye(len(record.array))[record.label]) / batch
    return bool(np.allclose(record.gradient, expected, rtol=1e-3, atol=1e-6))


# The chapter of a training


def training_title(lab: Lab) -> str:
    return (
        "Loss and accuracy"
        if lab.history is None or training_view.classified(lab.history)
        else "Loss"
    )


def training(lab: Lab) -> Iterator[Part]:
    if lab.history is None:
        yield f"{lab.model} has no loss, so it cannot be trained."
        return
    yield contents.picture("curves", plots.curves.draw, lab.history)
    if lab.history.interrupted:
        yield "Partial: this training ended before its last epoch."
    if lab.history.epochs:
        yield training_view.epochs(lab.history)
    means = (
        "Losses and accuracies are means"
        if training_view.classified(lab.history)
        else "Losses are means"
    )
    yield Method(
        f"Trained for this report. {means} over rows; the test uses all test rows at the end of "
        f"each epoch.",
        f"python -m tflab.train --model {lab.model} --epochs {len(lab.history.epochs) or EPOCHS} "
        f"--batch-size {lab.history.batch_size}",
    )
