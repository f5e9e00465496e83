"""Chapters: the chapters of a report, each from the measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tflab.compare import view
from tflab.records.blocks import Column, Table
from tflab.records.measured import Comparison
from tflab.report import (
    comparison_chapters,
    contents,
    graph_chapter,
    questions,
    selection,
    step_chapters,
)
from tflab.report.contents import Chapter, Lab, Part, Report, Walked
from tflab.report.selection import TOY
from tflab.units import plural
from tflab.views import execution

SMALL = selection.FORMULA


def report(lab: Lab, command: str, names: Sequence[str] = selection.CHAPTERS) -> Report:
    """The report with these chapters; `command` repeats it. After an interruption it has the
    chapters whose measurements are complete."""
    left_out = tuple(name for name in names if lab.missing & {*selection.NEEDS[name]})
    names = tuple(name for name in names if name not in left_out)
    chapters = tuple(
        replace(chapter, folded=name in selection.REFERENCE)
        for name in names
        for chapter in CHAPTERS[name](lab)
    )
    return Report(
        title=f"The stages of {SMALL if lab.model == TOY else lab.model}",
        about=about(lab.model, names) + (partial(left_out) if lab.interrupted else ""),
        command=command,
        questions=questions.questions(lab),
        chapters=chapters,
    )


def about(model: str, names: Sequence[str]) -> str:
    graphs = [f"{SMALL}, small enough to follow by eye"] if "toy" in names else []
    graphs += [model] if "graph" in names and model != TOY else []
    if not graphs:
        return f"Measurements of {model}. Each chapter says how its numbers were obtained."
    followed = f"two graphs: {graphs[0]}, and {graphs[1]}" if len(graphs) == 2 else graphs[0]
    if followed == graphs[0]:
        followed = followed.replace(", small", ", a graph that is small")
    return (
        "This report follows what TensorFlow does between a line of Python and the machine, "
        "through "
        f"{followed}. Each chapter says how its numbers were obtained."
    )


def partial(left_out: Sequence[str]) -> str:
    """The end of a sentence about an interrupted report."""
    chapters = f" These chapters are missing: {', '.join(left_out)}." if left_out else ""
    return f" Partial: these are the measurements before the interruption.{chapters}"


def slow(lab: Lab) -> Iterator[Chapter]:
    if lab.compared and (parts := [*view.diagnosis(lab.compared)]):
        yield Chapter("Why a step is slow", (*parts, contents.swept(lab.compared)))


def surroundings(lab: Lab) -> Iterator[Chapter]:
    line = execution.load_line(lab.compared.load) if lab.compared else ()
    yield Chapter("Environment", (*line, *environment(lab)))


def small_graph(lab: Lab) -> Iterator[Chapter]:
    if lab.toy:
        yield Chapter(f"The stages of {SMALL}", tuple(graph_chapter.parts(lab.toy, SMALL)))


def two_devices(lab: Lab) -> Iterator[Chapter]:
    if lab.toy_on_two:
        parts = tuple(graph_chapter.placed(lab.toy_on_two, SMALL))
        yield Chapter(f"{SMALL} on two devices", parts)


def graph(lab: Lab) -> Iterator[Chapter]:
    """The graph of the model; x*y + z, if it is the model, has only one such chapter."""
    if lab.walked and lab.model != TOY:
        yield Chapter(
            f"The stages of {lab.model}", tuple(graph_chapter.parts(lab.walked, lab.model))
        )


def network(lab: Lab) -> Iterator[Chapter]:
    """The pictures of a model that reads images."""
    if lab.walked and (maps := step_chapters.maps_of(lab.walked)):
        parts = step_chapters.network(lab.walked, maps)
        yield Chapter("What the network saw", tuple(parts))


def training(lab: Lab) -> Iterator[Chapter]:
    yield Chapter(step_chapters.training_title(lab), tuple(step_chapters.training(lab)))


def ops(lab: Lab) -> Iterator[Chapter]:
    if lab.walked and lab.compared:
        parts = tuple(step_chapters.top_ops(lab.walked, lab.compared))
        yield Chapter("The ten most expensive ops", parts)


def batch_sizes(lab: Lab) -> Iterator[Chapter]:
    if lab.compared:
        yield Chapter("Batch sizes", tuple(comparison_chapters.batch_sizes(lab.compared)))


def configurations(lab: Lab) -> Iterator[Chapter]:
    if lab.compared:
        parts = tuple(comparison_chapters.configurations(lab.compared, selection.CONFIGS_S))
        yield Chapter("Configurations", parts)


def times(lab: Lab) -> Iterator[Chapter]:
    if lab.walked:
        yield Chapter("Where a step's time goes", tuple(step_chapters.times(lab.walked)))


def memory(lab: Lab) -> Iterator[Chapter]:
    if lab.walked:
        yield Chapter("Memory", tuple(step_chapters.memory(lab.walked)))


def obtained(lab: Lab) -> Iterator[Chapter]:
    yield Chapter("How each number was obtained", tuple(methods(lab)))


# The names and the order of `selection`
CHAPTERS: dict[str, Callable[[Lab], Iterator[Chapter]]] = {
    "toy": small_graph,
    "devices": two_devices,
    "graph": graph,
    "network": network,
    "training": training,
    "slow": slow,
    "ops": ops,
    "batch-sizes": batch_sizes,
    "configurations": configurations,
    "times": times,
    "memory": memory,
    "environment": surroundings,
    "methods": obtained,
}


def environment(lab: Lab) -> Iterator[Part]:
    yield pairs("Environment, by inspection", lab.environment)
    measured = [("Model", f"{lab.model}, as a graph that a session runs")]
    if lab.walked:
        step = lab.walked.execution
        measured += [
            ("Data", step.data),
            ("Devices", plural(len(lab.walked.placement.partitions), "device")),
            ("Graphs, times, memory", f"{phase(lab.walked)}, batch size {step.batch_size}"),
        ]
    if lab.compared:
        sizes = ", ".join(map(str, lab.compared.batch_sizes))
        measured.append(("Batch sizes", f"{lab.compared.phase}, {sizes}"))
    measured.append(("Graph passes", "the runtime's defaults; XLA is off"))
    yield pairs("Configuration that was measured", measured)


def phase(walked: Walked) -> str:
    return "training" if step_chapters.trains(walked) else "inference"


def pairs(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    columns = (Column("", lambda row: row[0]), Column("", lambda row: row[1], elastic=True))
    return Table(title, columns, tuple(rows))


def methods(lab: Lab) -> Iterator[Part]:
    rows = [*steps_of_walk(lab.walked), *steps_of_sweep(lab.compared)]
    if lab.history:
        traced = sum(step.traced for step in lab.history.steps)
        how = f"untraced except for {traced}" if traced else "untraced"
        rows.append(("Loss and accuracy", f"{len(lab.history.steps):,}", "0", how))
    if rows:
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
        "In turn means that untraced and traced steps alternate, so both run under the same "
        "conditions. The untraced time is the time of a step; the traced time, which is longer, "
        "shows its parts. Passes, devices and the graph that ran are read from the runtime's "
        "dumps. The fate of each node is derived from the graphs before and after each pass."
    )


def steps_of_walk(walked: Walked | None) -> Iterator[tuple[str, str, str, str]]:
    if walked:
        step = walked.execution
        numbers = "Step times, ledger, path, memory"
        yield numbers, str(step.steps), str(step.warmup_steps), "in turn"


def steps_of_sweep(compared: Comparison | None) -> Iterator[tuple[str, str, str, str]]:
    if compared is None:
        return
    rows = max(row.images for row in compared.steps.values())
    yield (
        f"Batch sizes, {plural(rows, compared.unit)} at each",
        ", ".join(f"{row.steps:,}" for row in compared.steps.values()),
        str(compared.warmup),
        "in turn",
    )
    if compared.cold_step_ns is not None:
        yield "The cold step", "1", "0", "traced, in a separate process"
    observations = [row.verdict.observations for row in compared.configs if row.verdict]
    if observations:
        numbers = f"Configurations, {plural(min(observations), 'observation')}"
        yield numbers, "in turns", "before each turn", "untraced"
