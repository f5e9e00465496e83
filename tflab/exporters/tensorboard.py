"""TensorBoard: the graph, a tag for every batch size that colours it by time and memory, and
the steps behind each of these as a profile."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tensorflow.compat.v1 as tf1

from tflab.escaping import visible
from tflab.exporters import xspace
from tflab.records.stages import Placement, Stage
from tflab.records.timed import Capture

LARGE = 1024  # bytes of an attribute that TensorBoard does not show


@dataclass(frozen=True)
class Captured:
    """What TensorBoard shows of one batch size."""

    batch_size: int
    capture: Capture
    trace: tf1.RunMetadata  # of one of its steps


def write(
    logdir: str | Path, stage: Stage, placement: Placement | None, captured: Sequence[Captured]
) -> None:
    """Write the graph of the program, the graph that ran if there is one, and the captures."""
    if stage.program is None:
        return
    write_graph(logdir, stage.program.graph)
    if placement is None:
        return
    data = stage.program.dataset("train")
    not_its_own = f" ({visible(data.name)})" if data.stands_in_for else ""
    traces = [
        (f"batch {steps.batch_size}{not_its_own}", steps.batch_size, steps.trace)
        for steps in captured
    ]
    # XLA renumbers its clusters in every session: then each trace has its own graph.
    graphs = [graph for steps in captured[-1:] for graph in steps.trace.partition_graphs]
    write_executed(logdir, graphs or placement.partition_graphs, traces)
    xspace.write(logdir, (steps.capture for steps in captured))


def write_graph(logdir: str | Path, graph: tf1.Graph) -> None:
    """Write the graph of the program as the run `written`."""
    with run(os.path.join(logdir, "written")) as writer:
        add_graph(writer, graph.as_graph_def(add_shapes=True))


def write_executed(
    logdir: str | Path,
    graphs: Iterable[tf1.GraphDef],
    traces: Iterable[tuple[str, int, tf1.RunMetadata]],
) -> None:
    """Write the graph that ran, all devices together, as the run `executed`, and traces: the tag,
    the number by which TensorBoard sorts it, and the RunMetadata of each."""
    with run(os.path.join(logdir, "executed")) as writer:
        merged = tf1.GraphDef()
        for graph in graphs:
            merged.node.extend(graph.node)
        add_graph(writer, merged)
        for name, number, metadata in traces:
            writer.add_run_metadata(drawable(metadata), name, number)


@contextmanager
def run(folder: str) -> Iterator[tf1.summary.FileWriter]:
    """Open the only writer of a run. A second one in the same second would overwrite its file."""
    with tf1.Graph().as_default():  # the writer refuses to be made in eager mode
        writer = tf1.summary.FileWriter(folder)
    try:
        yield writer
    finally:
        writer.close()


def add_graph(writer: tf1.summary.FileWriter, graph_def: tf1.GraphDef) -> None:
    """Write a graph without the elements of its large constants, which TensorBoard omits, too."""
    shown = tf1.GraphDef()
    shown.CopyFrom(graph_def)
    for node in shown.node:
        if node.op == "Const" and node.attr["value"].ByteSize() > LARGE:
            tensor = node.attr["value"].tensor
            tensor.CopyFrom(type(tensor)(dtype=tensor.dtype, tensor_shape=tensor.tensor_shape))
    content = shown.SerializeToString()
    writer.add_event(tf1.Event(wall_time=time.time(), graph_def=content))


def drawable(metadata: tf1.RunMetadata) -> tf1.RunMetadata:
    """Return a copy of a trace from which TensorBoard draws true sums.

    TensorBoard takes as the time of a scope the span from its first op's start to its last op's
    end, so a layer whose variables are read early looks slow. In the copy the ops of a scope follow
    one another without gaps; TensorBoard shows no start times. Times and durations are at least 1
    us, because TensorBoard takes a 0 for an op that did not run.
    """
    copy = tf1.RunMetadata()
    copy.CopyFrom(metadata)
    for device in copy.step_stats.dev_stats:
        device.node_stats.sort(key=lambda stats: stats.node_name.split("/"))
        clock_ns = 1000
        for stats in device.node_stats:
            end_ns = clock_ns + stats.all_end_rel_nanos
            stats.all_start_micros = clock_ns // 1000
            stats.all_end_rel_micros = max(1, end_ns // 1000 - stats.all_start_micros)
            clock_ns = end_ns
    return copy
