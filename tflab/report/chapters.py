"""The chapters of a report, in the order in which the lab has to be handed in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflab.compare import view
from tflab.records import Comparison
from tflab.records.blocks import Column, Table
from tflab.records.options import BATCH_SIZES
from tflab.report import (
    batch_sizes_chapter,
    graph_chapter,
    network_chapter,
    placed_chapter,
    questions,
    recipes,
    step_chapters,
    training_chapter,
)
from tflab.report.contents import TOY, Chapter, Lab, Part, Report
from tflab.units import plural
from tflab.views import execution

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
            *seen(lab),
            Chapter("Loss and accuracy", tuple(training_chapter.parts(lab))),
            Chapter("The ten ops that cost most", tuple(step_chapters.top_ops(lab))),
            Chapter("Batch sizes", tuple(batch_sizes_chapter.parts(lab.compared))),
            Chapter("Where a step's time goes", tuple(step_chapters.times(lab.walked))),
            Chapter("Memory", tuple(step_chapters.memory(lab.walked))),
            Chapter("Roofline", tuple(step_chapters.roofline(lab))),
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
    yield Chapter(f"The life of {SMALL}", tuple(graph_chapter.parts(lab.toy, SMALL)))
    if lab.toy_on_two:
        two = tuple(placed_chapter.parts(lab.toy, lab.toy_on_two, SMALL))
        yield Chapter(f"{SMALL} on two devices", two)
    if lab.model != TOY:
        yield Chapter(f"The life of {lab.model}", tuple(graph_chapter.parts(lab.walked, lab.model)))


def seen(lab: Lab) -> Iterator[Chapter]:
    """The pictures of a model that reads images."""
    if maps := network_chapter.maps_of(lab.walked):
        parts = network_chapter.parts(lab.walked, maps)
        yield Chapter("What the network saw", tuple(parts))


def why_slow(comparison: Comparison) -> Iterator[Chapter]:
    """That the machine was busy, or else what a step's time is lost to; before all numbers."""
    parts: list[Part] = [*execution.busy(comparison.quality), *view.diagnosis(comparison)]
    if parts:
        yield Chapter("Why a step is slow", (*parts, recipes.swept(comparison)))


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
