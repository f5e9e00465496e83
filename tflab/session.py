"""Session: the only module that opens a tf.Session. Live objects stay here, data leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.protobuf import config_pb2

from tflab import datasets, progress, trace
from tflab.errors import TflabError
from tflab.records import OpRun, Options, Program, StepTime

FULL_TRACE = tf1.RunOptions.FULL_TRACE
WARMUP_STEPS = 3  # a new batch size means new shapes: kernels choose their algorithms again


@contextmanager
def opened(graph: tf.Graph, devices: int = 1) -> Iterator[tf1.Session]:
    """A session with its variables at their initial values; the runtime's errors as sentences."""
    config = tf1.ConfigProto(device_count={"CPU": devices})
    try:
        with tf1.Session(graph=graph, config=config) as session:
            session.run([v.initializer for v in graph.get_collection("variables")])
            yield session
    except tf.errors.OpError as error:
        raise TflabError(
            f"The runtime refused the step: {error.message.splitlines()[0]}"
        ) from error


@dataclass(frozen=True)
class Step:
    """What one `session.run` does: feeds in the order in which the runtime numbers them."""

    feeds: tuple[str, ...]  # tensors, sorted as `Session.run` sorts them
    fetches: tuple[str, ...]  # tensors whose values come back
    targets: tuple[str, ...]  # nodes that only have to run

    def callable(self, session: tf1.Session, **run_options: Any) -> Any:
        """A compiled step. It accepts `run_metadata=` and costs less than `Session.run`.

        `_make_callable_from_options` is private; checked with TensorFlow 2.21.
        """
        return session._make_callable_from_options(
            config_pb2.CallableOptions(
                feed=self.feeds,
                fetch=self.fetches,
                target=self.targets,
                run_options=tf1.RunOptions(**run_options),
            )
        )


def step_of(program: Program, fetches: Sequence[str]) -> Step:
    """The step that computes these fetches; names of tensors are fetched, names of nodes run."""
    return Step(
        feeds=tuple(sorted(tensor.name for tensor in program.model.feeds)),
        fetches=tuple(name for name in fetches if ":" in name),
        targets=tuple(name for name in fetches if ":" not in name),
    )


def feed_batches(
    program: Program, batch_size: int, split: str = "train"
) -> Iterator[list[np.ndarray]]:
    """Real batches for ever, each a list of values in the order of `Step.feeds`."""
    columns = sorted(
        (tensor.name, tensor, column) for tensor, column in program.model.feeds.items()
    )
    dataset = program.dataset(split)
    for _, _, column in columns:
        if column not in dataset.columns:
            raise TflabError(
                f"The model '{program.name}' feeds from a column '{column}', but its data "
                f"({dataset.name}) have {', '.join(dataset.columns)}."
            )
    for batch in datasets.batches(dataset, batch_size):
        yield [
            np.asarray(batch[column], dtype=tensor.dtype.as_numpy_dtype)
            for _, tensor, column in columns
        ]


def trial(program: Program, step: Step, batch_size: int, devices: int) -> Any:
    """The RunMetadata of one step: the graphs that ran, one per device, and what they made."""
    metadata = tf1.RunMetadata()
    values = next(feed_batches(program, batch_size))
    with opened(program.graph, devices) as session:
        run = step.callable(session, trace_level=FULL_TRACE, output_partition_graphs=True)
        run(*values, run_metadata=metadata)
    return metadata


@dataclass
class Measured:
    """What is left when the session is closed."""

    untraced_ns: list[int] = field(default_factory=list)
    steps: list[StepTime] = field(default_factory=list)
    runs: list[OpRun] = field(default_factory=list)
    traces: dict[int, Any] = field(default_factory=dict)  # batch size -> RunMetadata
    interrupted: bool = False


def measure(
    program: Program,
    step: Step,
    types: Mapping[str, str],
    options: Options,
    traced_batch_sizes: Sequence[int],
) -> Measured:
    """Run warm-up steps, then untraced and traced steps in turn, then one trace per batch size.

    Ctrl-C ends it early; it is passed on only when there is nothing to keep yet.
    """
    measured = Measured()
    with opened(program.graph, options.devices) as session:
        untraced = step.callable(session)
        traced = step.callable(session, trace_level=FULL_TRACE)
        try:
            batches = feed_batches(program, options.batch_size)
            for values in islice(batches, options.warmup):
                untraced(*values)
                traced(*values, run_metadata=tf1.RunMetadata())
            for index, values in progress.track(
                "steps", enumerate(islice(batches, options.steps)), options.steps
            ):
                start = time.perf_counter_ns()
                untraced(*values)
                measured.untraced_ns.append(time.perf_counter_ns() - start)
                timed, stats = timed_step(traced, values, index)
                measured.steps.append(timed)
                measured.runs.extend(trace.op_runs(index, stats.step_stats, types))
            for batch_size in traced_batch_sizes:
                batches = feed_batches(program, batch_size)
                for values in islice(batches, WARMUP_STEPS):
                    untraced(*values)
                _, measured.traces[batch_size] = timed_step(traced, next(batches), 0)
        except KeyboardInterrupt:
            if not measured.steps:
                raise
            measured.interrupted = True
    return measured


def timed_step(traced: Any, values: Sequence[np.ndarray], index: int) -> tuple[StepTime, Any]:
    """One traced step: its time as the caller sees it, and its RunMetadata."""
    metadata = tf1.RunMetadata()
    epoch, start = time.time_ns(), time.perf_counter_ns()
    traced(*values, run_metadata=metadata)
    return StepTime(index, epoch, time.perf_counter_ns() - start), metadata
