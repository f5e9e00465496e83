"""Stages: the stages of a graph for pages, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflab.analysis import critical_path
from tflab.follow import node_history
from tflab.records.blocks import Block
from tflab.records.stages import Backward, Execution, Placement, Stage
from tflab.report import drawing, storage
from tflab.report.contents import DrawnGraph
from tflab.runtime import costs
from tflab.views import chain_rule, execution, pass_log, placement
from tflab.views import stages as views


def life_of(stages: tuple[Stage, ...], name: str, file: str | None = None) -> storage.Life:
    """Return the drawing of the stages so far, their tables and numbers. With the `file` of the
    program, its nodes have the lines whose work they do."""
    histories = node_history.histories(stages)
    last = stages[-1]
    ran = last if isinstance(last, Execution) else None
    graph = DrawnGraph(
        name=name,
        drawing=drawing.draw(stages, histories),
        histories=histories,
        ns=critical_path.median_per_step(ran.runs) if ran else {},
        file=file,
    )
    return storage.life(views.name(last), graph, parts(stages), numbers(stages))


def numbers(stages: Sequence[Stage]) -> dict[str, float | None]:
    """Return the numbers of the whole graph that an edit may change."""
    totals: dict[str, float | None] = {}
    for stage in stages:
        if isinstance(stage, Placement):
            totals["nodes that ran"] = len(stage.nodes) - len(stage.not_run)
            counts = [cost.flops for cost in costs.costs(stage)]
            unknown = any(count is None for count in counts)
            totals["FLOPs"] = None if unknown else sum(count or 0 for count in counts)
        elif isinstance(stage, Execution):
            compiled = execution.compiled(stage.nodes)
            totals["bytes"] = None if compiled else stage.memory.peak_bytes
            step = stage.untraced_step_ns
            totals |= {"ns": step.median, "low_ns": step.p10, "high_ns": step.p90}
        else:
            totals["nodes"] = len(stage.nodes)
    return totals


def parts(stages: Sequence[Stage]) -> Iterator[tuple[str, Iterable[Block]]]:
    """Return the blocks of each title, for the part below the drawing."""
    notes = (note for stage in stages for note in views.notes(stage))
    yield "In short", [*notes, replace(views.story(stages), title="")]
    for stage in stages:
        if isinstance(stage, Backward):
            if rule := [*chain_rule.tables(stage)]:
                yield "Derivatives", rule
        elif isinstance(stage, Placement):
            if stage.passes:
                log = pass_log.pass_log(stage)
                busy = tuple(one for one in log.frames if not one.about.startswith(pass_log.IDLE))
                yield "Passes", [placement.fate_counts(stage), replace(log, frames=busy)]
            for code in stage.generated:
                yield "Generated code", placement.code_of_cluster(code, stage)
        elif isinstance(stage, Execution):
            yield "Ops", [execution.top_table("Ops", stage.top_ops, stage, "node")]
