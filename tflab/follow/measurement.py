"""Following: the measured step at several batch sizes, joined with the stages node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflab.compare import comparison
from tflab.follow import node_history
from tflab.lifecycle import placement
from tflab.records import Backward, Life, Options, Peaks, Placement, Row, Stage
from tflab.runtime import measure, session

STEPS = 20  # traced steps at the largest batch size; the smaller ones work on the same rows
MOST_ROWS = 640  # of data, so that it is over in seconds


def follow(
    stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options
) -> dict[str, Life]:
    """The life of every node, with its times at each batch size.

    `stages` are the results of a walk through all stages. A batch size that the training data do
    not fill is left out. Raises TflabError when a step fails.
    """
    return node_history.lives(stages, tables(stages, batch_sizes, options))


def tables(
    stages: Sequence[Stage], batch_sizes: Sequence[int], options: Options
) -> dict[int, tuple[Row, ...]]:
    """The rows by node of the step that the stages were walked with, by batch size."""
    backward = next(stage for stage in stages if isinstance(stage, Backward))
    walked = next(stage for stage in stages if isinstance(stage, Placement))
    program = backward.program
    available = program.dataset("train").size
    sizes = [size for size in batch_sizes if size <= available]
    if not sizes:
        return {}
    rows = min(max(MOST_ROWS, max(sizes)), STEPS * max(sizes), available)
    step = session.step_of(program, walked.fetches)
    types = {node.name: node.op for node in walked.nodes}
    swept = measure.run(program, step, sizes, rows, options, "train", types)
    placed = {
        size: placement.placed(backward, replace(options, batch_size=size))
        for size, batch in swept.batches.items()
        if batch.traced_ns
    }

    def tabulate(peaks: Peaks) -> comparison.Tabulated:
        return {
            size: comparison.table(swept.batches[size], found, "node", peaks)
            for size, found in placed.items()
        }

    return comparison.under_a_roof(tabulate)[0]
