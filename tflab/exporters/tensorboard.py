"""TensorBoard: the graph, and a tag for every batch size that colours it by time and memory."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow.compat.v1 as tf1

from tflab.records import Execution, Stage


def write(logdir: str, stages: Sequence[Stage]) -> None:
    """Write the graph of the last stage and the traces of the execution, if there was one."""
    program = stages[-1].program
    with program.graph.as_default():  # the writer refuses to work in eager mode
        writer = tf1.summary.FileWriter(logdir, program.graph)
    try:
        for stage in stages:
            if isinstance(stage, Execution):
                for batch_size, metadata in stage.traces.items():
                    writer.add_run_metadata(drawable(metadata), tag(stage, batch_size), batch_size)
    finally:
        writer.close()


def tag(stage: Execution, batch_size: int) -> str:
    """`batch 16`, and never silent about data that are not the ones asked for."""
    dataset = stage.program.dataset("train")
    return f"batch {batch_size}" + (f" ({dataset.name})" if dataset.stands_in_for else "")


def drawable(metadata: tf1.RunMetadata) -> tf1.RunMetadata:
    """A copy of a trace from which TensorBoard draws true sums.

    It takes for the time of a scope the span from its first op's start to its last op's end, so
    that a layer whose variables are read early looks slow. Here the ops of a scope lie end to
    end: durations are the measured ones, start times are not, and nothing shows those. A fed
    tensor runs as `_arg_x_0_0`; it gets the time under the name of its placeholder.
    """
    copy = tf1.RunMetadata()
    copy.CopyFrom(metadata)
    for device in copy.step_stats.dev_stats:
        for stats in device.node_stats:
            stats.node_name = placeholder(stats.node_name)
        device.node_stats.sort(key=lambda stats: stats.node_name.split("/"))
        clock_ns = 0
        for stats in device.node_stats:
            end_ns = clock_ns + stats.all_end_rel_nanos
            stats.all_start_micros = clock_ns // 1000
            stats.all_end_rel_micros = end_ns // 1000 - stats.all_start_micros
            clock_ns = end_ns
    return copy


def placeholder(name: str) -> str:
    return name[len("_arg_") :].rsplit("_", 2)[0] if name.startswith("_arg_") else name
