"""Measurement: a step at several batch sizes, joined with the stages node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tflab.analysis import critical_path
from tflab.compare import prepare, sweep
from tflab.errors import RefusedError, TflabError
from tflab.follow import node_history
from tflab.lifecycle import placement
from tflab.records.node_history import NodeHistory
from tflab.records.options import Options, Program
from tflab.records.stages import Backward, Execution, Placement, Stage
from tflab.records.timed import CriticalPath
from tflab.runtime import measure, session
from tflab.units import plural

STEPS = 20  # traced steps at the largest batch size; smaller ones process the same rows
MOST_ROWS = 640  # of data, so that it takes only seconds
MOST_S = 20  # if a step takes long, fewer rows


@dataclass(frozen=True)
class Timed:
    """The step of the walk, measured at several batch sizes."""

    tables: sweep.Tables = field(default_factory=dict)  # rows by node, by batch size
    path: CriticalPath | None = None  # at the batch size of the walk, or the nearest one
    untimed: Mapping[int, str] = field(default_factory=dict)  # batch size -> why it is missing
    failed: bool = False  # whether one is missing because the runtime refused it
    interrupted: bool = False


@dataclass(frozen=True)
class Followed:
    """The history of every node, by name, and the state of the measurement behind them."""

    histories: Mapping[str, NodeHistory]
    timed: Timed


def follow(stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options) -> Followed:
    """The history of every node, with its times at each batch size.

    `stages` are the results of a walk up to placement or further; in the latter case, the steps of
    the walk show the critical path. A batch size that the training data do not fill, or whose step
    fails, is omitted, and the histories say why.
    """
    timed = measured(stages, batch_sizes, options)
    histories = node_history.histories(stages, timed.tables, timed.path)
    with_reasons = {name: replace(one, untimed=timed.untimed) for name, one in histories.items()}
    return Followed(with_reasons, timed)


def measured(stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options) -> Timed:
    """The times of every node in the step of the walk.

    If the walk ran steps, these are the times at its batch size: one name never stands for two
    measurements.
    """
    backward = next(stage for stage in stages if isinstance(stage, Backward))
    walked = next(stage for stage in stages if isinstance(stage, Placement))
    data = backward.program.dataset("train")
    fixed = backward.program.model.fixed_batch
    ran = next((stage for stage in stages if isinstance(stage, Execution)), None)
    sizes = [fixed] if fixed else [size for size in batch_sizes if size <= data.size]
    sizes = [size for size in sizes if ran is None or size != ran.batch_size]
    rows = f"The data ({data.name}) have {plural(data.size, 'row')}"
    untimed = {size: f"{rows}." for size in batch_sizes if size > data.size and not fixed}
    placed: dict[int, Placement] = {}
    refused: dict[int, str] = {}
    for size in sizes:
        try:
            placed[size] = placement.place_once(backward, replace(options, batch_size=size))
        except TflabError as error:
            refused[size] = str(error)
    batches, failures, interrupted = swept(backward.program, walked, list(placed), options)
    refused |= failures
    untimed |= refused
    if not batches and ran is None:
        return Timed(untimed=untimed, failed=bool(refused), interrupted=interrupted)

    tables = {size: sweep.table(batch, placed[size], "node") for size, batch in batches.items()}
    if ran:
        tables[ran.batch_size] = sweep.of_walk(ran, walked)
        path = ran.critical_path
    else:
        nearest = min(batches, key=lambda size: abs(size - options.batch_size))
        runs = batches[nearest].runs
        path = critical_path.critical_path(placed[nearest].nodes, runs, placed[nearest].transfers)
    return Timed(dict(sorted(tables.items())), path, untimed, bool(refused), interrupted)


def swept(
    program: Program, walked: Placement, sizes: Sequence[int], options: Options
) -> tuple[Mapping[int, sweep.MeasuredBatch], dict[int, str], bool]:
    """The steps of these batch sizes, why one of them failed, and whether Ctrl-C came.

    All batch sizes take turns in one session. If one fails before it was measured at all, the
    others start again without it.
    """
    step = session.step_of(program, walked.fetches)
    types = sweep.types_of(walked)
    job = measure.job_of(program, step, options)
    columns = list(session.feed_columns(program, "train").values())
    available = program.dataset("train").size
    failures: dict[int, str] = {}
    while sizes:
        rows = min(max(MOST_ROWS, max(sizes)), STEPS * max(sizes), available)
        batches: Mapping[int, sweep.MeasuredBatch] = {}
        try:
            rows = prepare.affordable(MOST_S, job, columns, sizes, rows)
            done = sweep.run(program, step, sizes, rows, options, "train", types)
            batches, failure = done.batches, done.ending.failure
            if failure is None:
                return batches, failures, done.ending.interrupted
        except RefusedError as error:
            failure = error
        size = failure.batch_size or sizes[0]
        failures[size] = str(failure)
        if size in batches:
            missing = {other: str(failure) for other in sizes if other not in batches}
            return batches, failures | missing, False
        sizes = [other for other in sizes if other != size]
    return {}, failures, False
