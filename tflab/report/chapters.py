"""Chapters: a report as the chapters for which the measurements suffice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tflab.analysis.slow_steps import LEAST_STEPS
from tflab.compare import view
from tflab.records.blocks import Fact
from tflab.records.measured import Comparison
from tflab.report import contents, hand_in, parts, questions, selection
from tflab.report.contents import Chapter, Lab, Part, Report
from tflab.report.selection import FORMULA, title_of
from tflab.train import view as training_view
from tflab.units import percent, size, time
from tflab.views.words import ratio_text

ABOUT = "What TensorFlow does between a line of Python and the machine."
Draft = tuple[str, str, Iterable[Part], str]  # name of a chapter, its title, parts and result


def report(lab: Lab, command: str, names: Sequence[str] = selection.CHAPTERS) -> Report:
    """The report with these chapters; `command` repeats it. After an interruption it has the
    chapters whose measurements are complete."""
    handed_in = names == ("lab",)
    made = [*hand_in.chapters(lab)] if "lab" in names else []
    made += (
        Chapter(title, whole, folded=name in selection.REFERENCE, result=result)
        for name, title, content, result in drafts(lab)
        if name in names and (whole := tuple(content))
    )
    return Report(
        title=f"{'Lab report' if handed_in else 'From Python to op runs'}: {title_of(lab.model)}",
        about=" ".join([hand_in.ABOUT if handed_in else ABOUT, *partial(lab, names)]),
        command=command,
        questions=() if handed_in else questions.questions(lab),
        chapters=tuple(made),
        numbers=tuple(numbers(lab)),
    )


def partial(lab: Lab, names: Sequence[str]) -> Iterator[str]:
    """What an interrupted report lacks; the hand-in has what was measured."""
    if lab.interrupted:
        yield "Partial: these are the measurements before the interruption."
        lacking = [
            name
            for name in names
            if name != "lab"
            and any(getattr(lab, need, "") is None for need in selection.NEEDS[name])
        ]
        if lacking:
            yield f"These chapters are missing: {', '.join(lacking)}."


def numbers(lab: Lab) -> Iterator[Fact]:
    """The results on the first screen: nodes, times of a step, the dearest op, the accuracy."""
    if lab.walked:
        yield Fact("nodes written", f"{len(lab.walked.stages[0].nodes):,}")
        placing = lab.walked.placement
        yield Fact("nodes that run", f"{len(placing.nodes) - len(placing.not_run):,}")
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


def nothing_found(compared: Comparison) -> str:
    if any(times.steps >= LEAST_STEPS for times in compared.steps.values()):
        return "No single cause stands out."
    return f"Fewer than {LEAST_STEPS} steps were traced at each batch size, too few for a cause."


def drafts(lab: Lab) -> Iterator[Draft]:
    """Every chapter that was measured except the hand-in, in the order of a report."""
    walked, compared, history = lab.walked, lab.compared, lab.history
    if walked:
        yield "graph", f"The stages of {title_of(lab.model)}", parts.graph(walked), ""
    if lab.toy:
        yield "toy", f"The stages of {FORMULA}", parts.graph(lab.toy), ""
    if lab.toy_on_two:
        yield "devices", f"{FORMULA} on two devices", parts.on_two_devices(lab.toy_on_two), ""
    if walked and (maps := walked.execution.maps) and len(maps.maps) > 1:
        yield "network", "What the network saw", parts.network(walked, maps), ""
    if history or not lab.interrupted:
        yield "training", parts.training_title(history), parts.training(lab.model, history), ""
    if walked and compared:
        yield "ops", "The ten most expensive ops", parts.top_ops(walked, compared), ""
    if compared:
        yield "batch-sizes", "Batch sizes", parts.batch_sizes(compared), ""
        slow = tuple(view.diagnosis(compared)) or (nothing_found(compared),)
        yield "slow", "Why a step is slow", (*slow, contents.swept(compared)), ""
    if walked:
        yield "times", "Where a step's time goes", parts.times(walked), ""
    if compared:
        last = compared.batch_sizes[-1]
        ratios = [
            f"{row.config} {ratio_text(row.verdict)}"
            for row in compared.configs
            if row.verdict and row.batch_size == last
        ]
        result = f"at batch {last}: {', '.join(ratios)}" if ratios else ""
        yield "configurations", "Configurations", parts.configurations(compared), result
    if walked:
        peak = walked.execution.memory.peak_bytes
        result = f"at most {size(peak)} alive at once" if peak else ""
        yield "memory", "Memory", parts.memory(walked), result
    named = dict(lab.environment)
    result = ", ".join(named[name] for name in ("Framework", "Operating system") if name in named)
    yield "environment", "Environment", (contents.pairs("", lab.environment),), result
