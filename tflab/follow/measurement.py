"""Measurement: a step at several batch sizes, joined with the stages node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tflab.compare import prepare, sweep
from tflab.errors import RefusedError, TflabError
from tflab.follow import node_history
from tflab.lifecycle import placement
from tflab.records.options import Options, Program
from tflab.records.stages import Backward, Execution, Placement, Stage, find_stage
from tflab.runtime import measure, session
from tflab.units import plural

STEPS = 20  # traced steps at the largest batch size; smaller ones process the same rows
MOST_ROWS = 640  # of data, so that it takes only seconds
MOST_S = 20  # if a step takes long, fewer rows


def follow(
    stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options
) -> tuple[node_history.Histories, bool]:
    """Measure a walk's step at each batch size. Return the history of every node, and whether a
    signal ended the measurement early.

    The walk has measured its own batch size already, so those times are taken from it. A batch size
    is omitted if the training data do not fill a batch or if its step fails; the histories say why.
    """
    backward = find_stage(stages, Backward)
    placed, ran = find_stage(stages, Placement), find_stage(stages, Execution)
    assert backward and placed and ran
    data = backward.program.dataset("train")
    fixed = backward.program.model.fixed_batch
    untimed: dict[int, str] = {}
    placed_at: dict[int, Placement] = {}
    for size in batch_sizes:
        if fixed or size == ran.batch_size:
            continue
        if size > data.size:
            untimed[size] = f"The data ({data.name}) have {plural(data.size, 'row')}."
            continue
        try:
            placed_at[size] = placement.place(backward, replace(options, batch_size=size))
        except TflabError as error:
            untimed[size] = str(error)
    batches, failure, interrupted = swept(backward.program, placed, list(placed_at), options)
    if failure:
        untimed |= {size: failure for size in placed_at if size not in batches}
    tables = {size: sweep.table(batch, placed_at[size], "node") for size, batch in batches.items()}
    tables[ran.batch_size] = sweep.of_walk(ran, placed)
    histories = node_history.histories(stages, dict(sorted(tables.items())))
    return {name: replace(one, untimed=untimed) for name, one in histories.items()}, interrupted


def swept(
    program: Program, placed: Placement, sizes: Sequence[int], options: Options
) -> tuple[Mapping[int, sweep.MeasuredBatch], str, bool]:
    """Measure the step at these batch sizes in turn. Return the measurements, why some are missing,
    and whether a signal came."""
    if not sizes:
        return {}, "", False
    step = session.step_of(program, placed.fetches)
    job = measure.job_of(program, step, options)
    columns = list(session.feed_columns(program, "train").values())
    rows = min(max(MOST_ROWS, *sizes), STEPS * max(sizes), program.dataset("train").size)
    try:
        rows = prepare.affordable(MOST_S, job, columns, sizes, rows)
        done = sweep.run(program, step, sizes, rows, options, "train", sweep.types_of(placed))
    except RefusedError as error:
        return {}, str(error), False
    failure = done.ending.failure
    return done.batches, str(failure or ""), done.ending.interrupted
