"""Instrumented step: a step during which the runtime records how the graph becomes what runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import atomic, xla
from tflab.errors import TflabError
from tflab.records.options import Options, Program, Start
from tflab.records.placed import Snapshot
from tflab.runtime import child, dumps, session

PLACING = ("pre_placement", "placer", "post_placement")  # groups of passes that assign devices


@dataclass(frozen=True)
class Instrumented:
    """The runtime's records of one step."""

    metadata: Any  # RunMetadata: the graphs that ran, one per device, and the tensors they made
    snapshots: tuple[Snapshot, ...] = ()  # the graph between the passes
    modules: tuple[xla.Module, ...] = ()  # what XLA compiled
    notes: tuple[str, ...] = ()  # what could not be read, and why


def run(program: Program, step: session.Step, options: Options) -> Instrumented:
    """Run one step and keep the runtime's records of it: graphs, passes, generated code.

    If TensorFlow was loaded before it could be told to write dumps, the step runs in a separate
    process, from the serialised graph.
    """
    values = next(session.feed_batches(program, options.batch_size))
    if dumps.prepare():
        return run_here(program.graph, session.start_of(program), step, values, options)
    graph_def = program.graph.as_graph_def().SerializeToString()
    args = (graph_def, session.start_of(program), step, values, options)
    return child.call("tflab.lifecycle.instrumented_step:run_graph_def", *args)


def run_graph_def(graph_def: bytes, *args: Any) -> Instrumented:
    """`run_here` for a graph from another process."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
    return run_here(graph, *args)


def run_here(
    graph: tf.Graph,
    start: Start,
    step: session.Step,
    values: Sequence[np.ndarray],
    options: Options,
) -> Instrumented:
    """Run the step in this process, which `dumps.prepare` has prepared."""
    metadata = tf1.RunMetadata()
    generated = dumps.prepare()
    assert generated is not None
    dumps.empty(generated)
    snapshots: tuple[Snapshot, ...] = ()
    modules: tuple[xla.Module, ...] = ()
    notes = []
    with (
        session.fresh(graph, options) as live,
        atomic.temporary("graphs") as graphs,
    ):
        observed = over_tasks if options.cluster else in_process
        read = observed(live, start, step, values, metadata, Path(graphs))
        try:
            snapshots = tuple(read())
            modules = xla.read(generated) if options.xla else ()
        except TflabError as error:
            notes.append(str(error))
    return Instrumented(metadata, snapshots, modules, tuple(notes))


Reader = Callable[[], Iterable[Snapshot]]


def in_process(
    live: tf1.Session,
    start: Start,
    step: session.Step,
    values: Sequence[np.ndarray],
    metadata: tf1.RunMetadata,
    folder: Path,
) -> Reader:
    """Run the step and read its dumps."""
    # The step is the first thing that the session builds, so all of its passes are dumped.
    with dumps.dump_into(folder):
        compiled = step.callable(live, trace_level=session.FULL_TRACE, output_partition_graphs=True)
    session.begin(live, start)
    compiled(*values, run_metadata=metadata)
    return lambda: dumps.read(folder)


def over_tasks(
    live: tf1.Session,
    start: Start,
    step: session.Step,
    values: Sequence[np.ndarray],
    metadata: tf1.RunMetadata,
    folder: Path,
) -> Reader:
    """`in_process` over the tasks of a cluster. The master, which is in this process, assigns
    devices to the whole graph when it receives it, and builds a step when that first runs."""
    first, second = folder / "placing", folder / "step"
    first.mkdir()
    second.mkdir()
    _, _, with_graphs = session.shared_steps(live, step, session.FULL_TRACE)
    with dumps.dump_into(first):
        session.begin(live, start)
    with dumps.dump_into(second):
        with_graphs(*values, run_metadata=metadata)

    def read() -> Iterator[Snapshot]:
        yield from (snap for snap in dumps.read(first) if snap.group in PLACING)
        yield from (snap for snap in dumps.read(second) if snap.group not in PLACING)

    return read
