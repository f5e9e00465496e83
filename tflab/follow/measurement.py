"""Measurement: a step at several batch sizes, joined with the stages node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflab.analysis import critical_path
from tflab.compare import batch_tables, sweep
from tflab.follow import node_history
from tflab.lifecycle import placement
from tflab.records import Backward, CriticalPath, NodeHistory, Options, Peaks, Placement, Stage
from tflab.runtime import session

STEPS = 20  # traced steps at the largest batch size; the smaller ones work on the same rows
MOST_ROWS = 640  # of data, so that it is over in seconds
MOST_S = 20  # of a step that takes long, fewer rows


def follow(
    stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options
) -> dict[str, NodeHistory]:
    """The history of every node, with its times at each batch size.

    `stages` are the results of a walk as far as placement, or further: then whether a step waits
    for a node is seen in the steps of the walk. A batch size that the training data do not fill
    is left out. Raises TflabError when a step fails.
    """
    return node_history.histories(stages, *measured(stages, batch_sizes, options))


def measured(
    stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options
) -> tuple[batch_tables.Tables, CriticalPath | None]:
    """The rows by node of the step that the stages were walked with, by batch size, and the
    critical path at the batch size of the walk, or the nearest to it."""
    backward = next(stage for stage in stages if isinstance(stage, Backward))
    walked = next(stage for stage in stages if isinstance(stage, Placement))
    program = backward.program
    available = program.dataset("train").size
    fixed = program.model.fixed_batch
    sizes = [fixed] if fixed else [size for size in batch_sizes if size <= available]
    if not sizes:
        return {}, None
    rows = min(max(MOST_ROWS, max(sizes)), STEPS * max(sizes), available)
    step = session.step_of(program, walked.fetches)
    rows = sweep.affordable(MOST_S, program, step, sizes, rows, options, "train")
    types = {node.name: node.op for node in walked.nodes}
    batches = sweep.run(program, step, sizes, rows, options, "train", types).batches
    placed = {
        size: placement.place_once(backward, replace(options, batch_size=size)) for size in batches
    }

    def tabulate(peaks: Peaks) -> batch_tables.Tables:
        return {
            size: batch_tables.table(batches[size], placement_at, "node", peaks)
            for size, placement_at in placed.items()
        }

    nearest = min(batches, key=lambda size: abs(size - options.batch_size))
    runs = batches[nearest].runs
    path = critical_path.critical_path(placed[nearest].nodes, runs, placed[nearest].transfers)
    return batch_tables.under_a_roof(tabulate)[0], path
