"""Tracing: some of the first steps of a training are traced for TensorBoard's Graphs and Profile.

They are steps of the training like the others. Tracing does not change what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf1

from tflab.exporters import tensorboard, xspace
from tflab.lifecycle import captures
from tflab.records import Program, StepTime
from tflab.runtime import plans, session
from tflab.train.trainer import Trainer

WARM = plans.WARMUP_STEPS
STEPS = range(WARM, WARM + captures.STEPS)  # of a training, counted from 0


@dataclass(frozen=True)
class Tracing:
    program: Program
    folder: Path  # of the training
    batch_size: int
    step: Any  # a callable of `Step`
    taken: list[tuple[StepTime, Any]] = field(default_factory=list)


def begin_tracing(trainer: Trainer, live: tf1.Session, folder: Path, batch_size: int) -> Tracing:
    step = trainer.train.callable(
        live, trace_level=session.trace_level(), output_partition_graphs=True
    )
    return Tracing(trainer.program, folder, batch_size, step)


def run_traced(tracing: Tracing, number: int, values: Sequence[Any]) -> list[Any]:
    """Run a step with tracing; return what it fetched."""
    fetched: list[Any] = []

    def run(*fed: Any, **options: Any) -> None:
        fetched.extend(tracing.step(*fed, **options))

    timed, recorded = session.timed_step(run, values, number)
    tracing.taken.append((timed, recorded.parsed()))
    return fetched


def write(tracing: Tracing) -> None:
    """Write the graph that ran, coloured by its last step, and all steps as a profile; then release
    the traces.

    A training with no more steps than those of the warm-up has none.
    """
    if not tracing.taken:
        return
    program, batch_size = tracing.program, tracing.batch_size
    metadata = tracing.taken[-1][1]
    types = {node.name: node.op for graph in metadata.partition_graphs for node in graph.node}
    traces = {batch_size: metadata}
    tensorboard.write_executed(tracing.folder, program, metadata.partition_graphs, traces)
    name = captures.capture_name(program, batch_size)
    xspace.write(tracing.folder, [captures.captured_of(name, tracing.taken, types)])
    tracing.taken.clear()
