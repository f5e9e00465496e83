"""Stages: a program goes through its stages, which become plain data for pages."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tflab.analysis import critical_path
from tflab.errors import RefusedError, TflabError
from tflab.explore import program
from tflab.explore.request import Message, ProgramRequest, Source
from tflab.follow import node_history
from tflab.lifecycle import backward, execution, frontend, placement, values
from tflab.records.blocks import Block
from tflab.records.stages import Backward, Execution, Frontend, Placement, Stage
from tflab.report import drawing, html, questions, storage
from tflab.report.contents import DrawnGraph, Walked
from tflab.runtime import functions
from tflab.views import backward as backward_view
from tflab.views import execution as execution_view
from tflab.views import placement as placement_view
from tflab.views import stages as views


def life_of(stages: tuple[Stage, ...], name: str, file: str | None = None) -> storage.Life:
    """Return the drawing of the stages so far, with the lines of the `file`, and their tables."""
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
    return storage.life(views.name(last), graph, parts(stages))


def parts(stages: Sequence[Stage]) -> Iterator[tuple[str, Iterable[Block]]]:
    """Yield the blocks of each title, for the part below the drawing."""
    notes = (note for stage in stages for note in views.notes(stage))
    yield "In short", [*notes, replace(views.story(stages), title="")]
    for stage in stages:
        if isinstance(stage, Backward):
            if rule := [*backward_view.chain_rule_tables(stage)]:
                yield "Derivatives", rule
        elif isinstance(stage, Placement):
            if stage.passes:
                log = placement_view.pass_log(stage)
                yield "Passes", [placement_view.fate_counts(stage), log]
            for code in stage.generated:
                yield "Generated code", placement_view.code_of_cluster(code, stage)
        elif isinstance(stage, Execution):
            yield "Ops", [execution_view.most_expensive(stage)]


# A walk

VALUES = "values"  # the last message: the last stage with the values of a step


def walk_program(request: ProgramRequest, source: Source) -> Iterator[storage.Life]:
    """Yield the data of the page after each stage, and with the values of a step. Raises TflabError
    if a stage is impossible."""
    file, options = source.file, request.options
    seen: Frontend | Backward | None = None
    try:
        built = frontend.build((file, partial(program.build, request, source)), options)
        rows = built.live.model.fixed_batch
        options = replace(options, batch_size=rows or options.batch_size)
        seen = built
        yield life_of((built,), file, file)
        seen = derived = backward.differentiate(built, options)
        yield life_of((built, derived), file, file)
        placed = placement.place(derived, options)
        yield life_of((built, derived, placed), file, file)
        executed = execution.execute(placed, options)
        yield life_of((built, derived, placed, executed), file, file)
        stages = (built, derived, placed, values.record(executed, placed, options))
    except RefusedError as error:
        error.line = line_of_node(error, seen, file) if seen else None
        raise
    last = life_of(stages, file, file) | {"stage": VALUES}
    if request.predict:
        walked = Walked(file, stages, node_history.histories(stages))
        last["questions"] = html.readable(questions.of_program(walked))
    yield last


# Errors


def problem(error: BaseException, file: str) -> Message:
    """Return the error in a sentence or two, and its line of the program, if it has one."""
    cause: BaseException = error
    while isinstance(cause, TflabError) and cause.__cause__ is not None:
        cause = cause.__cause__
    line = line_of(cause, file) or line_of(error, file) or getattr(error, "line", None)
    if isinstance(error, TflabError) and line_of(cause, file) is None:
        return {"message": str(error), "line": line}
    message = cause.msg if isinstance(cause, SyntaxError) else str(cause).strip()
    kind = type(cause).__name__
    return {"message": f"{kind}: {message}" if message else kind, "line": line}


def line_of_node(error: RefusedError, stage: Frontend | Backward, file: str) -> int | None:
    """Return the line of the first of the error's nodes that has one. Nodes may be in functions."""
    made = [node for _, node in functions.origins(error.nodes, stage.nodes, stage.functions)]
    for name, inner in error.inside:
        for function in sorted(stage.functions, key=lambda function: -len(function.name)):
            if name.startswith(function.name):
                made += (node for node in function.nodes if node.name == inner)
    lines = (node.source.line for node in made if node.source and node.source.file == file)
    return next(lines, None)


def line_of(error: BaseException, file: str) -> int | None:
    """Return the innermost line of the program in the traceback of an exception."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == file]
    return lines[-1] if lines else None
