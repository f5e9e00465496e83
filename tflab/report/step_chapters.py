"""The chapters of a step: its largest ops, its time, its memory, and the roof above them."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.analysis import step_times
from tflab.compare import view
from tflab.exporters import plots
from tflab.records.options import BATCH_SIZES
from tflab.report import graph_chapter, pictures, recipes
from tflab.report.contents import TOP, Lab, Part, Recipe, Walked
from tflab.runtime import trace
from tflab.views import buffers, execution


def top_ops(lab: Lab) -> Iterator[Part]:
    step, largest = lab.walked.execution, BATCH_SIZES[-1]
    yield pictures.picture("top_ops", plots.top_ops.draw, step.top_ops)
    trains = "updates" in graph_chapter.more_than_forward(lab.walked)
    heading = "A training step's nodes" if trains else "A step's nodes"
    yield execution.top_table(heading, step.top_ops, step, "node")
    yield Recipe(recipes.warm(step), recipes.walking(lab.walked))
    yield from execution.costs(step)
    if step.control:
        yield Recipe("Untraced, in turn.", f"{recipes.walking(lab.walked)} --experiments")
    yield view.costs(lab.compared, largest, TOP)
    yield recipes.swept(lab.compared)


def times(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    yield from execution.busy(step.quality)
    yield execution.lengths(step)
    yield execution.owners(step)
    middle = step_times.median_step(step.step_times)
    runs = [run for run in step.runs if run.step == middle.step and run.name != trace.EXECUTOR]
    yield pictures.picture("timeline", plots.timeline.draw, runs, middle, step.critical_path)
    yield from execution.parallel(step)
    yield Recipe(recipes.warm(step), recipes.walking(walked))


def memory(walked: Walked) -> Iterator[Part]:
    step = walked.execution
    if step.memory.curve:
        yield pictures.picture("memory", plots.memory.draw, step.memory.curve)
    yield from execution.remembered(step.memory)
    if step.buffers:
        yield pictures.picture("buffers", plots.buffers.draw, step.buffers)
    yield from buffers.blocks(step.buffers)
    yield Recipe(
        f"From what each op asked its allocators for in traced steps. {recipes.warm(step)}",
        recipes.walking(walked),
    )


def roofline(lab: Lab) -> Iterator[Part]:
    largest, peaks = BATCH_SIZES[-1], lab.compared.peaks
    if peaks is None:
        yield "There is no roof: this machine's peaks were not measured."
        return
    yield pictures.picture("roofline", plots.roofline.draw, lab.compared.tables[largest], peaks)
    yield Recipe(
        f"Inference at batch {largest}. FLOPs are counted from shapes, "
        "bytes are those of all inputs and outputs. The roof is this machine's, by a benchmark of "
        f"3 seconds: {peaks.gflops:.0f} GFLOP/s and {peaks.gigabytes_per_s:.1f} GB/s.",
        f"python -m tflab.compare --model {lab.model} --batch-sizes {largest}",
    )
