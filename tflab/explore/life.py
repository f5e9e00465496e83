"""Life: a program through its stages, and what the page shows of each, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tflab.analysis import critical_path, quality
from tflab.errors import TflabError
from tflab.explore import program
from tflab.explore.asked import Asked
from tflab.exporters.json import plain
from tflab.follow import node_history
from tflab.lifecycle import backward, execution, frontend, placement, values
from tflab.records import Backward, Execution, Frontend, NodeHistory, Placement, Stage
from tflab.records.blocks import Block, Strip, Table
from tflab.report import drawing, html, viewer_data
from tflab.report.contents import DrawnGraph
from tflab.runtime import costs
from tflab.views import chain_rule, generated_code, in_short, pass_log
from tflab.views import execution as execution_view
from tflab.views import placement as fates
from tflab.views import stages as views
from tflab.views import values as not_finite

VALUES = "values"  # what comes after the last stage: the same, with the values of a step


def walk(asked: Asked, file: str, function: str) -> Iterator[dict[str, Any]]:
    """What the page shows after each stage, and once more with the values of a step.

    Raises TflabError where a stage cannot be done.
    """
    options = asked.options
    make = partial(program.build, asked.text, file, asked.optimiser, function, asked.batch_size)
    built = frontend.build((file, make), options)
    rows = built.live.model.fixed_batch
    options = replace(options, batch_size=rows) if rows else options
    yield shown((built,), file)
    derived = backward.differentiate(built, options)
    yield shown((built, derived), file)
    placed = placement.place(derived, options)
    yield shown((built, derived, placed), file)
    executed = execution.execute(placed, options)
    yield shown((built, derived, placed, executed), file)
    executed = values.record(executed, placed, options)
    yield shown((built, derived, placed, executed), file) | {"stage": VALUES}


def shown(stages: tuple[Stage, ...], file: str) -> dict[str, Any]:
    """The drawing of the stages so far, their lines, tables and numbers."""
    histories = node_history.histories(stages)
    last = stages[-1]
    derived = next((stage for stage in stages if isinstance(stage, Backward)), None)
    ran = last if isinstance(last, Execution) else None
    graph = DrawnGraph(
        name=file,
        drawing=drawing.draw(stages, histories),
        histories=histories,
        ns=critical_path.median_per_step(ran.runs) if ran else {},
        batch_size=ran.batch_size if ran else 0,
        chain_rule=chain_rule.equation(derived) if derived else "",
    )
    data = viewer_data.graph_data(graph)
    data["lines"] = lines(histories, file)
    message = {
        "stage": views.name(last),
        "graph": data,
        "parts": {title: list(map(block, blocks)) for title, blocks in parts(stages)},
        "nodes": {name: signature(history) for name, history in histories.items()},
        "numbers": numbers(stages),
    }
    return html.readable(plain(message))


def lines(histories: Mapping[str, NodeHistory], file: str) -> list[list[int]]:
    """For each node, in their order, the lines of the program whose work it does."""
    own = {
        name: {history.source.line}
        for name, history in histories.items()
        if history.source and history.source.file == file
    }
    none: set[int] = set()
    return [
        sorted(own.get(name, none).union(*(own.get(other, none) for other in history.carries)))
        for name, history in histories.items()
    ]


def signature(history: NodeHistory) -> list[Any]:
    """What a node is, to be compared with what it was in the life before: its op, its inputs and
    what comes out of it; and its fate."""
    inputs = (*history.inputs, *(f"^{name}" for name in history.control_inputs))
    outputs = [f"{out.dtype} {list(out.shape or ())}" for out in history.outputs]
    fate = history.fate
    return [
        history.kind,
        f"{history.op}({', '.join(inputs)}) -> {', '.join(outputs)}",
        fate and f"{fate.fate}{f' into {fate.into}' if fate.into not in (None, fate.name) else ''}",
    ]


def numbers(stages: Sequence[Stage]) -> dict[str, float | None]:
    """What an edit may change of the whole."""
    known: dict[str, float | None] = {}
    for stage in stages:
        if isinstance(stage, Placement):
            known["nodes that ran"] = len(stage.nodes)
            counts = [cost.flops for cost in costs.costs(stage)]
            unknown = any(count is None for count in counts)
            known["FLOPs"] = None if unknown else sum(count or 0 for count in counts)
        elif isinstance(stage, Execution):
            known["bytes"] = stage.memory.peak_bytes
            if not quality.disturbed(stage.quality):
                step = stage.untraced_step_ns
                known |= {"ns": step.median, "low_ns": step.p10, "high_ns": step.p90}
        else:
            known["nodes"] = len(stage.nodes)
    return known


def parts(stages: Sequence[Stage]) -> Iterator[tuple[str, Iterable[Block]]]:
    """Title -> blocks, of what stands below the drawing."""
    yield "In short", in_a_table(stages)
    for stage in stages:
        if isinstance(stage, Backward):
            if derivatives := list(chain_rule.opening(stage)):
                yield "Derivatives", derivatives
        elif isinstance(stage, Placement):
            if stage.passes:
                log = pass_log.pass_log(stage)
                frames = (frame for frame in log.frames if frame.about != pass_log.IDLE)
                yield "Passes", [fates.fate_counts(stage), replace(log, frames=tuple(frames))]
            for code in stage.generated:
                yield "Generated code", generated_code.blocks(code, stage)
        elif isinstance(stage, Execution):
            top = execution_view.top_table("Ops", stage.top_ops, stage, "node")
            yield "Ops", [top]


def in_a_table(stages: Sequence[Stage]) -> Iterator[Block]:
    """The story in one table, behind what has to be said in sentences."""
    facts: list[tuple[str, str]] = []
    for stage in stages:
        if isinstance(stage, Frontend):
            yield from stage.notes
            facts.append(("written", in_short.counts(stage)))
        elif isinstance(stage, Backward):
            facts += in_short.gradient_facts(stage)
        elif isinstance(stage, Placement):
            yield from stage.notes
            facts += in_short.run_facts(stage)
            if stage.toggle:
                yield fates.toggled(stage.toggle)
        else:
            yield from not_finite.not_finite(stage)
            yield from execution_view.busy(stage.quality)
            facts += in_short.step_facts(stage)
    yield in_short.facts(facts)


def block(part: Block) -> Any:
    """A block as data, which `blocks` of the server takes back."""
    if isinstance(part, Table):
        return {
            "table": part.title,
            "columns": [[column.header, column.right] for column in part.columns],
            "rows": [list(cells) for cells in part.cells()],
            "more": part.more,
        }
    if isinstance(part, Strip):
        frames = [[frame.heading, frame.about, list(frame.lines)] for frame in part.frames]
        return {"strip": part.title, "frames": frames}
    return part


# What went wrong


def problem(error: BaseException, file: str) -> dict[str, Any]:
    """The error in a sentence or two, and its line of the program, where it has one."""
    cause: BaseException = error
    while isinstance(cause, TflabError) and cause.__cause__ is not None:
        cause = cause.__cause__
    line = line_of(cause, file) or line_of(error, file)
    if isinstance(error, TflabError) and line_of(cause, file) is None:
        return {"message": str(error), "line": line}
    message = cause.msg if isinstance(cause, SyntaxError) else str(cause).strip()
    kind = type(cause).__name__
    return {"message": f"{kind}: {message}" if message else kind, "line": line}


def line_of(error: BaseException, file: str) -> int | None:
    """The innermost line of the program that an exception came through."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    line, traceback = None, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
