"""Chapters: the chapters of a report, each from the measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tflab.compare import view
from tflab.records.blocks import Fact
from tflab.report import (
    comparison_chapters,
    contents,
    graph_chapter,
    hand_in,
    questions,
    selection,
    step_chapters,
)
from tflab.report.contents import Chapter, Lab, Part, Report
from tflab.report.selection import FORMULA, title_of
from tflab.train import view as training_view
from tflab.units import percent, size, time
from tflab.views.words import ratio_text

ABOUT = "What TensorFlow does between a line of Python and the machine."


def report(lab: Lab, command: str, names: Sequence[str] = selection.CHAPTERS) -> Report:
    """The report with these chapters; `command` repeats it. After an interruption it has the
    chapters whose measurements are complete."""
    incomplete = [name for name in names if lab.missing & {*selection.NEEDS[name]}]
    left_out = tuple(name for name in incomplete if name != "lab")  # it has what was measured
    names = tuple(name for name in names if name not in left_out)
    chapters = tuple(
        replace(chapter, folded=name in selection.REFERENCE)
        for name in names
        for chapter in CHAPTERS[name](lab)
    )
    handed_in = names == ("lab",)
    return Report(
        title=f"{'Lab report' if handed_in else 'From Python to op runs'}: {title_of(lab.model)}",
        about=" ".join([hand_in.ABOUT if handed_in else ABOUT, *partial(lab, left_out)]),
        command=command,
        questions=() if handed_in else questions.questions(lab),
        chapters=chapters,
        numbers=tuple(numbers(lab)),
    )


def partial(lab: Lab, left_out: Sequence[str]) -> Iterator[str]:
    """What an interrupted report lacks."""
    if lab.interrupted:
        yield "Partial: these are the measurements before the interruption."
    if left_out:
        yield f"These chapters are missing: {', '.join(left_out)}."


def numbers(lab: Lab) -> Iterator[Fact]:
    """The results on the first screen: nodes, times of a step, the dearest op, the accuracy."""
    if lab.walked:
        yield Fact("nodes written", f"{len(lab.walked.stages[0].nodes):,}")
        placing = lab.walked.placement
        yield Fact("nodes that run", f"{len(placing.nodes) - len(placing.not_run):,}")
    if lab.walked and not lab.compared:
        step = lab.walked.execution
        note = f"{step_chapters.phase(lab.walked)}, batch {step.batch_size}"
        yield Fact("median step", time(step.untraced_step_ns.median), note)
    if lab.compared:
        steps = lab.compared.steps
        times = " / ".join(time(step.untraced_ns.median) for step in steps.values())
        at = " / ".join(map(str, steps))
        yield Fact("median step", times, f"{lab.compared.phase}, batch {at}")
        last = lab.compared.batch_sizes[-1]
        if rows := lab.compared.tables.get(last):
            dearest = max(rows, key=lambda row: row.share)
            note = f"{percent(dearest.share)} of the op time at batch {last}"
            yield Fact("most expensive op", dearest.key, note)
    if lab.history and lab.history.epochs and training_view.classified(lab.history):
        accuracy = training_view.accuracy_percent(lab.history.epochs[-1].test_accuracy)
        yield Fact("test accuracy", accuracy, f"after epoch {lab.history.epochs[-1].epoch}")


def slow(lab: Lab) -> Iterator[Chapter]:
    if lab.compared:
        parts = tuple(view.diagnosis(lab.compared)) or ("No single cause stands out.",)
        yield Chapter("Why a step is slow", (*parts, contents.swept(lab.compared)))


def surroundings(lab: Lab) -> Iterator[Chapter]:
    named = dict(lab.environment)
    result = ", ".join(named[name] for name in ("Framework", "Operating system") if name in named)
    yield Chapter("Environment", tuple(environment(lab)), result=result)


def small_graph(lab: Lab) -> Iterator[Chapter]:
    if lab.toy:
        yield Chapter(f"The stages of {FORMULA}", tuple(graph_chapter.parts(lab.toy, FORMULA)))


def two_devices(lab: Lab) -> Iterator[Chapter]:
    if lab.toy_on_two:
        parts = tuple(graph_chapter.placed(lab.toy_on_two, FORMULA))
        yield Chapter(f"{FORMULA} on two devices", parts)


def graph(lab: Lab) -> Iterator[Chapter]:
    if lab.walked:
        name = title_of(lab.model)
        yield Chapter(f"The stages of {name}", tuple(graph_chapter.parts(lab.walked, name)))


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
        last = lab.compared.batch_sizes[-1]
        ratios = [
            f"{row.config} {ratio_text(row.verdict)}"
            for row in lab.compared.configs
            if row.verdict and row.batch_size == last
        ]
        parts = tuple(comparison_chapters.configurations(lab.compared, selection.CONFIGS_S))
        result = f"at batch {last}: {', '.join(ratios)}" if ratios else ""
        yield Chapter("Configurations", parts, result=result)


def times(lab: Lab) -> Iterator[Chapter]:
    if lab.walked:
        yield Chapter("Where a step's time goes", tuple(step_chapters.times(lab.walked)))


def memory(lab: Lab) -> Iterator[Chapter]:
    if lab.walked:
        peak = lab.walked.execution.memory.peak_bytes
        result = f"at most {size(peak)} alive at once" if peak else ""
        yield Chapter("Memory", tuple(step_chapters.memory(lab.walked)), result=result)


# The names and the order of `selection`
CHAPTERS: dict[str, Callable[[Lab], Iterator[Chapter]]] = {
    "lab": hand_in.chapters,
    "graph": graph,
    "toy": small_graph,
    "devices": two_devices,
    "network": network,
    "training": training,
    "ops": ops,
    "batch-sizes": batch_sizes,
    "slow": slow,
    "times": times,
    "configurations": configurations,
    "memory": memory,
    "environment": surroundings,
}


def environment(lab: Lab) -> Iterator[Part]:
    yield contents.pairs("Environment, by inspection", lab.environment)
    measured = [("Model", f"{lab.model}, as a graph that a session runs")]
    if lab.walked:
        step = lab.walked.execution
        measured += [
            ("Data", step.data),
            (
                "Graphs, times, memory",
                f"{step_chapters.phase(lab.walked)}, batch {step.batch_size}",
            ),
        ]
    measured.append(("Graph passes", "the runtime's defaults; XLA is off"))
    yield contents.pairs("Configuration that was measured", measured)
