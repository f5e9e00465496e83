"""Measurement: a step at several batch sizes, joined with the stages node by node."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from tflab.compare import prepare, sweep
from tflab.errors import RefusedError, TflabError
from tflab.follow import node_history
from tflab.lifecycle import placement
from tflab.records.options import Options
from tflab.records.stages import Backward, Execution, Placement, Stage, find_stage
from tflab.runtime import measure, session

STEPS = 20  # traced steps at the largest batch size; smaller ones process the same rows
MOST_ROWS = 640  # of data, so that it takes only seconds
MOST_S = 20  # if a step takes long, fewer rows


def follow(
    stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options
) -> tuple[node_history.Histories, bool]:
    """Measure a walk's step at each batch size in turn, with the same rows, except where the data
    do not fill a batch or the step fails. Return every node's history, and if a signal came."""
    backward = find_stage(stages, Backward)
    placed, ran = find_stage(stages, Placement), find_stage(stages, Execution)
    assert backward and placed and ran
    program = backward.program
    available, fixed = program.dataset("train").size, program.model.fixed_batch
    tables, interrupted = {ran.batch_size: sweep.of_walk(ran, placed)}, False
    placed_at = {} if fixed else {ran.batch_size: placed}
    for size in batch_sizes:
        if not fixed and size != ran.batch_size and size <= available:
            with suppress(TflabError):
                placed_at[size] = placement.place(backward, replace(options, batch_size=size))
    if sizes := list(placed_at):
        step = session.step_of(program, placed.fetches)
        job = measure.job_of(program, step, options)
        columns = list(session.feed_columns(program, "train").values())
        rows = min(max(MOST_ROWS, *sizes), STEPS * max(sizes), available)
        with suppress(RefusedError):
            rows = prepare.affordable(MOST_S, job, columns, sizes, rows)
            types = {node.name: node.op for node in placed.nodes}
            done, ending = sweep.run(program, step, sizes, rows, options, "train", types)
            for size, batch in done.items():
                tables[size] = sweep.table(batch, placed_at[size], "node")
            interrupted = ending.interrupted
    return node_history.histories(stages, dict(sorted(tables.items()))), interrupted
