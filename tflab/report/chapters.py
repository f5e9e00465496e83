"""The chapters of a report, in the order in which the lab has to be handed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from tflab import models
from tflab.analysis import critical_path, quality, step_times
from tflab.compare import view
from tflab.exporters import plots
from tflab.exporters.plots import files, style
from tflab.records import Comparison, Epoch, Execution, History, Placement
from tflab.records.blocks import Column, Frame, Strip, Table
from tflab.report import drawing, placed_chapter, questions
from tflab.report.contents import (
    BATCH_SIZES,
    TOY,
    Chapter,
    DrawnGraph,
    Lab,
    Part,
    Picture,
    Recipe,
    Report,
    Walked,
)
from tflab.runtime import trace
from tflab.train import view as training_view
from tflab.units import percent, plural, time
from tflab.views import execution, placement

TOP = 10
SMALL = "x*y + z"


def report(lab: Lab, command: str) -> Report:
    """The report; `command` is what repeats it."""
    return Report(
        title=f"The life of {SMALL if lab.model == TOY else lab.model}",
        about=about(lab.model),
        command=command,
        questions=questions.questions(lab),
        chapters=(
            *why_slow(lab.compared),
            Chapter("Environment", tuple(environment(lab))),
            *lives(lab),
            Chapter("Loss and accuracy", tuple(training(lab))),
            Chapter("The ten ops that cost most", tuple(top_ops(lab))),
            Chapter("Batch sizes", tuple(batch_sizes(lab.compared))),
            Chapter("Where a step's time goes", tuple(times(lab.walked))),
            Chapter("Memory", tuple(memory(lab.walked))),
            Chapter("Roofline", tuple(roofline(lab))),
            Chapter("How each number was obtained", tuple(methods(lab))),
        ),
    )


def about(model: str) -> str:
    graphs = f"{SMALL}, a graph that is small enough to follow by eye. Every node of it"
    if model != TOY:
        graphs = (
            f"two graphs: {SMALL}, small enough to follow by eye, and {model}. Every node of them"
        )
    return (
        f"What a framework does between a line of Python and the machine, followed through "
        f"{graphs} can be clicked, and each chapter says how its numbers were obtained."
    )


def lives(lab: Lab) -> Iterator[Chapter]:
    """The graphs of the report; where the model is x*y + z itself, it is there once."""
    yield Chapter(f"The life of {SMALL}", tuple(graph(lab.toy, SMALL)))
    if lab.toy_on_two:
        two = tuple(placed_chapter.parts(lab.toy, lab.toy_on_two, SMALL))
        yield Chapter(f"{SMALL} on two devices", two)
    if lab.model != TOY:
        yield Chapter(f"The life of {lab.model}", tuple(graph(lab.walked, lab.model)))


def why_slow(comparison: Comparison) -> Iterator[Chapter]:
    """That the machine was busy, or else what a step's time is lost to; before all numbers."""
    parts: list[Part] = [*execution.busy(comparison.quality), *view.diagnosis(comparison)]
    if parts:
        yield Chapter("Why a step is slow", (*parts, swept(comparison)))


def environment(lab: Lab) -> Iterator[Part]:
    step = lab.walked.execution
    measured = (
        ("Model", f"{lab.model}, as a graph that a session runs"),
        ("Data", step.data),
        ("Devices", plural(len(lab.walked.placement.partitions), "device")),
        ("Batch sizes", f"{', '.join(map(str, BATCH_SIZES))}; {step.batch_size} in the drawings"),
        ("Graph passes", "all that the runtime has on by itself; XLA is off"),
    )
    yield pairs("Environment, by inspection", lab.environment)
    yield pairs("Configuration that was measured", measured)


def pairs(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    columns = (Column("", lambda row: row[0]), Column("", lambda row: row[1], elastic=True))
    return Table(title, columns, tuple(rows))


def graph(walked: Walked, name: str) -> Iterator[Part]:
    step, placing = walked.execution, walked.placement
    yield (
        f"{name} was {sizes(walked)}. The runtime left {left(placing)}. They took "
        f"{time(step.untraced_step_ns.median)} a step for a batch of {step.batch_size}. "
        f"{layout(walked)}"
    )
    yield DrawnGraph(
        name=name,
        drawing=drawing.draw(walked.stages, walked.histories),
        histories=walked.histories,
        ns=critical_path.median_per_step(step.runs),
        batch_size=step.batch_size,
    )
    if placing.passes:
        yield placement.fate_counts(placing)
        yield placement.balance(placing)
    yield Recipe(
        f"Colours and times in the drawing: {warm(step)} Times at each batch size in the panel: "
        "traced steps, folded as they came.",
        f"{walking(walked)}\npython -m tflab.follow {example(walked)} --model {walked.model}",
    )


def sizes(walked: Walked) -> str:
    """`written as 19 nodes. With its gradients and updates it has 74`."""
    frontend, grown = walked.stages[0], len(walked.placement.user_nodes)
    verb = "read from a file" if models.is_file(walked.model) else "written"
    first = f"{verb} as {plural(len(frontend.nodes), 'node')}"
    more = list(more_than_forward(walked))
    return f"{first}. With its {' and '.join(more)} it has {grown:,}" if more else first


def more_than_forward(walked: Walked) -> Iterator[str]:
    """What the graph has grown by, where it has."""
    kinds = {history.kind for history in walked.histories.values()}
    if "gradient" in kinds:
        yield "gradients"
    if "update" in kinds:
        yield "updates"


def left(placing: Placement) -> str:
    """`34 of them, beside 5 nodes of the runtime's own`."""
    stayed = sum(fate.fate == "executed" for fate in placing.ledger)
    return f"{stayed:,} of them, beside {plural(len(placing.nodes) - stayed, 'node')} of its own"


def layout(walked: Walked) -> str:
    """Where the drawing has what there is."""
    more = list(more_than_forward(walked))
    words = ["Forward flows down on the left" if more else "Data flow down"]
    if "gradients" in more:
        words.append("the gradients flow up beside it, each at the layer that it derives")
    if "updates" in more:
        words.append("the updates of the variables stand on the right")
    return f"{'; '.join(words)}."


def example(walked: Walked) -> str:
    """The node of the forward graph that took longest, or was fused into the one that did."""
    forward = [node.name for node in walked.stages[0].nodes]
    ns = critical_path.median_per_step(walked.execution.runs)
    return max(forward, key=lambda name: ns.get(walked.histories[name].carrier or "", 0))


def training(lab: Lab) -> Iterator[Part]:
    if lab.history is None:
        yield f"{lab.model} has no loss, so there is nothing to train."
        return
    yield picture("curves", plots.curves.draw, lab.history)
    if lab.history.interrupted:
        yield "Partial: this training ended before its last epoch."
    yield epochs(lab.history)
    origin = f"Read from {lab.logdir}." if lab.logdir else "Trained for this report."
    means = "Losses and accuracies are means" if classified(lab.history) else "Losses are means"
    yield Recipe(
        f"{origin} {means} over images; the test reads all test images at the end of each epoch."
        f"{left_out(lab.history)}",
        f"python -m tflab.train --model {lab.model} --epochs {len(lab.history.epochs)} "
        f"--batch-size {lab.history.batch_size} --seed {lab.history.seed}",
    )


def left_out(history: History) -> str:
    """Which steps the images a second are not of."""
    traced = training_view.traced_steps(history)
    return f" {traced}: they are in the seconds and not in the images a second." if traced else ""


def classified(history: History) -> bool:
    """Whether there are right answers, and so a share of them."""
    return any(not math.isnan(epoch.train_accuracy) for epoch in history.epochs)


def epochs(history: History) -> Table:
    def rate(row: Epoch) -> str:
        return f"{row.images_per_second:,.0f}"

    def right(share: float) -> str:
        return "" if math.isnan(share) else f"{100 * share:.2f} %"

    columns = (
        Column("epoch", lambda row: str(row.epoch), right=True),
        Column("steps", lambda row: f"{row.step:,}", right=True),
        Column("train loss", lambda row: f"{row.train_loss:.4f}", right=True),
        Column("train accuracy", lambda row: right(row.train_accuracy), right=True),
        Column("test loss", lambda row: f"{row.test_loss:.4f}", right=True),
        Column("test accuracy", lambda row: right(row.test_accuracy), right=True),
        Column("seconds", lambda row: f"{row.seconds:.1f}", right=True),
        Column("images a second", rate, right=True),
    )
    return Table(
        f"Epochs on {history.data}",
        tuple(column for column in columns if any(map(column.cell, history.epochs))),
        history.epochs,
    )


def top_ops(lab: Lab) -> Iterator[Part]:
    step, largest = lab.walked.execution, BATCH_SIZES[-1]
    yield picture("top_ops", plots.top_ops.draw, step.top_ops)
    trains = "updates" in more_than_forward(lab.walked)
    heading = "A training step's nodes" if trains else "A step's nodes"
    yield execution.top_table(heading, step.top_ops, step, "node")
    yield Recipe(warm(step), walking(lab.walked))
    yield from execution.costs(step)
    if step.control:
        yield Recipe("Untraced, in turn.", f"{walking(lab.walked)} --experiments")
    yield view.costs(lab.compared, largest, TOP)
    yield swept(lab.compared)


def batch_sizes(comparison: Comparison) -> Iterator[Part]:
    yield table_of_batch_sizes(comparison)
    yield picture("batch_sizes", plots.batch_sizes.draw, comparison)
    yield view.side_by_side(comparison, TOP)
    if comparison.findings:
        yield Strip(
            "Findings, each computed from the tables", (Frame("", "", comparison.findings),)
        )
    yield view.steps(comparison)
    yield view.cold(comparison)
    yield swept(comparison)


def table_of_batch_sizes(comparison: Comparison) -> Table:
    """One row for each batch size, and what was found there."""

    def step(size: int) -> float:
        return comparison.steps[size].untraced_ns.median

    def rate(size: int) -> str:
        return f"{comparison.steps[size].images_per_second:,.0f}"

    return Table(
        f"{comparison.model}, {comparison.phase}: what was found at each batch size",
        (
            Column("batch", lambda size: str(size), right=True),
            Column("a step, median", lambda size: time(step(size)), right=True),
            Column("an image", lambda size: time(step(size) / size), right=True),
            Column("images a second, mean", rate, right=True),
            Column("found", lambda size: finding_at(comparison, size), elastic=True),
        ),
        comparison.batch_sizes,
    )


def finding_at(comparison: Comparison, size: int) -> str:
    """`_FusedConv2D takes 41.0 % of the op time, 158 us a call; a step takes 2.3 x as long ...`"""
    rows = [row for row in comparison.rows if size in row.cells]
    largest = max(rows, key=lambda row: row.cells[size].share)
    cell = largest.cells[size]
    words = f"{largest.key} takes {percent(cell.share)} of the op time, {time(cell.mean_ns)} a call"
    before = max((smaller for smaller in comparison.batch_sizes if smaller < size), default=None)
    if before is None or quality.disturbed(comparison.quality):
        return words
    longer = comparison.steps[size].untraced_ns.median / comparison.steps[before].untraced_ns.median
    return f"{words}; {size / before:g} x the images of batch {before} take {longer:.1f} x as long"


def times(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    yield from execution.busy(step.quality)
    yield execution.lengths(step)
    yield execution.owners(step)
    middle = step_times.median_step(step.step_times)
    runs = [run for run in step.runs if run.step == middle.step and run.name != trace.EXECUTOR]
    yield picture("timeline", plots.timeline.draw, runs, middle, step.critical_path)
    yield from execution.parallel(step)
    yield Recipe(warm(step), walking(walked))


def memory(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    if step.memory.curve:
        yield picture("memory", plots.memory.draw, step.memory.curve)
    yield from execution.remembered(step.memory)
    yield Recipe(
        f"From what each op asked its allocators for in traced steps. {warm(step)}",
        walking(walked),
    )


def roofline(lab: Lab) -> Iterator[Part]:
    largest, peaks = BATCH_SIZES[-1], lab.compared.peaks
    if peaks is None:
        yield "There is no roof: this machine's peaks were not measured."
        return
    yield picture("roofline", plots.roofline.draw, lab.compared.tables[largest], peaks)
    yield Recipe(
        f"Inference at batch {largest}. FLOPs are counted from shapes, "
        "bytes are those of all inputs and outputs. The roof is this machine's, by a benchmark of "
        f"3 seconds: {peaks.gflops:.0f} GFLOP/s and {peaks.gigabytes_per_s:.1f} GB/s.",
        f"python -m tflab.compare --model {lab.model} --batch-sizes {largest}",
    )


def methods(lab: Lab) -> Iterator[Part]:
    step, comparison = lab.walked.execution, lab.compared
    images = max(row.images for row in comparison.steps.values())
    rows = [
        ("Step times, ledger, path, memory", str(step.steps), str(step.warmup_steps), "in turn"),
        (
            f"Batch sizes, {plural(images, 'image')} at each",
            ", ".join(f"{row.steps:,}" for row in comparison.steps.values()),
            str(comparison.warmup),
            "in turn",
        ),
        ("The cold step", "1", "0", "traced, in a process of its own"),
    ]
    if lab.history:
        traced = sum(step.traced for step in lab.history.steps)
        how = f"untraced but for {traced}" if traced else "untraced"
        rows.append(("Loss and accuracy", f"{len(lab.history.steps):,}", "0", how))
    yield Table(
        "Steps, warm-up, tracing",
        (
            Column("numbers", lambda row: row[0], elastic=True),
            Column("steps", lambda row: row[1], right=True),
            Column("warm-up, not counted", lambda row: row[2], right=True),
            Column("traced or not", lambda row: row[3]),
        ),
        tuple(rows),
    )
    yield (
        "In turn: an untraced step, then a traced one, so that both see the same machine. The "
        "untraced time is what a step takes; the traced one, which is longer, says of what. "
        "Passes, devices and the graph that ran are read from the runtime's own dumps; what became "
        "of a node is worked out from the graphs before and after each pass."
    )


def warm(step: Execution) -> str:
    return (
        f"{plural(step.steps, 'untraced step')} and as many traced ones in turn, after "
        f"{plural(step.warmup_steps, 'warm-up step')} of each; batch size {step.batch_size}."
    )


def walking(walked: Walked) -> str:
    return f"python -m tflab.lifecycle --model {walked.model} --steps {walked.execution.steps}"


def swept(comparison: Comparison) -> Recipe:
    images = max(step.images for step in comparison.steps.values())
    return Recipe(
        f"{plural(images, 'image')} of {comparison.data} at each batch size, untraced and traced "
        f"in turn; the first {comparison.warmup} steps of each are not counted.",
        f"python -m tflab.compare --model {comparison.model} "
        f"--batch-sizes {' '.join(map(str, comparison.batch_sizes))}",
    )


def picture(name: str, draw: Callable[..., Figure], *records: Any) -> Picture:
    """A plot of some records, drawn for a page and again for a phone."""
    figure = draw(*records)
    with style.narrow():
        narrow = draw(*records)
    words = str(figure.get_label())
    return Picture(name, words, plots.svg(figure), plots.svg(narrow), files.png(figure))
