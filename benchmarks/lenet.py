"""LeNet's steps run by tflab, and the pass over many images that is compared with peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf1

from benchmarks import resident, turns
from tflab import datasets, lifecycle
from tflab.analysis import op_table
from tflab.compare import sweep
from tflab.records.measured import OpStats
from tflab.records.options import Options, Program
from tflab.runtime import measure, session

WARMUP = 50  # steps of each kind before anything is measured
SPLITS = {"inference": "test", "training": "train"}


@dataclass(frozen=True)
class Steps:
    graph: Any
    untraced: Any
    traced: Any
    columns: list[np.ndarray]  # of the data, in the order of the feeds
    types: Mapping[str, str]  # node -> executed type

    def batches(self, size: int, count: int) -> Iterator[measure.Values]:
        """This number of whole batches; the data repeat."""
        whole = len(self.columns[0]) // size * size
        epochs = (datasets.slices(self.columns, 0, whole, size) for _ in repeat(None))
        return islice(chain.from_iterable(epochs), count)

    def run(self, size: int, count: int) -> None:
        """This number of untraced steps at this batch size."""
        for values in self.batches(size, count):
            self.untraced(*values)

    def run_traced(self, size: int, count: int) -> None:
        """This number of traced steps, whose traces are never read."""
        for values in self.batches(size, count):
            self.traced(*values, run_metadata=session.Unparsed())

    def fold(
        self, count: int, into: sweep.MeasuredBatch | None = None, batch: int = 1
    ) -> sweep.MeasuredBatch:
        """Trace and fold this number of steps."""
        measured = into or sweep.MeasuredBatch(batch, count * batch)
        runner = measure.Runner(self.untraced, self.traced)
        for number, values in enumerate(self.batches(batch, count)):
            turn = measure.Turn(values, batch, number, traced=True)
            timed, recorded = runner.take(turn)
            if turn.traced:
                measured.fold(turn, timed, recorded, self.types)
        measured.settle()
        return measured

    def table(self, measured: sweep.MeasuredBatch) -> tuple[OpStats, ...]:
        accumulator = measured.accumulator
        nodes = accumulator.stats(self.types, {}, {})
        rows = op_table.rows(nodes, "op", accumulator.steps, measured.rows)
        return op_table.with_shares(rows)


@cache
def lenet() -> Program:
    return list(lifecycle.walk("lenet", stop="backward"))[-1].program


@contextmanager
def steps(phase: str) -> Iterator[Steps]:
    """The steps of this phase in a session that is warm at batch 1."""
    program = lenet()
    inference = (program.model.output.name,)
    fetches = inference if phase == "inference" else session.default_fetches(program)
    step = session.step_of(program, fetches)
    columns = list(session.feed_columns(program, SPLITS[phase]).values())
    with session.opened(program.graph, Options()) as live:
        metadata = tf1.RunMetadata()
        first = step.callable(live, output_partition_graphs=True)
        first(*(column[:1] for column in columns), run_metadata=metadata)
        types = {n.name: n.op for graph in metadata.partition_graphs for n in graph.node}
        traced = step.callable(live, trace_level=session.trace_level())
        warm = Steps(program.graph, step.callable(live), traced, columns, types)
        warm.run(1, WARMUP)
        warm.run_traced(1, WARMUP)
        yield warm


def one_pass(images: int) -> dict[str, float]:
    """The numbers that `benchmarks.torch_lenet` prints for torch; runs in a separate process."""
    with steps("inference") as warm:
        numbers = {"untraced": turns.seconds(lambda: warm.run(1, images))}
        before = resident.now()
        resident.forget_peak()
        kept = []  # the numbers of the table stay in memory, as in a command
        numbers["traced"] = turns.seconds(lambda: kept.append(warm.fold(images)))
        numbers["table"] = turns.seconds(lambda: warm.table(kept[0]))
        return numbers | {
            "grown": resident.now() - before,
            "peak": resident.peak() - before,
        }
