"""Profile: the graph of the largest group and some of its traced steps, for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from tflab.exporters import tensorboard, xspace
from tflab.records.timed import Capture, OpRun, StepTime
from tflab.runtime import trace

Sample = tuple[int, int, int, bytes]  # number, start (epoch), duration and trace of a run


def write(
    logdir: str, graph: Any, executed: Any, samples: Sequence[Sample], parsed: Callable[..., Any]
) -> None:
    """Write a graph as the program built it and as it ran, and some of its runs as a profile.

    `executed` is a RunMetadata with the graphs that ran; `parsed` makes one from a trace.
    """
    types = {node.name: node.op for part in executed.partition_graphs for node in part.node}
    steps: list[StepTime] = []
    runs: list[OpRun] = []
    for number, start_ns, wall_ns, content in samples:
        stats = parsed(content).step_stats
        steps.append(StepTime(number, start_ns, wall_ns))
        runs += (run for run in trace.op_runs(number, stats, types) if run.name != trace.EXECUTOR)
    with tensorboard.run(os.path.join(logdir, "written")) as writer:
        tensorboard.add_graph(writer, graph.as_graph_def(add_shapes=True))
    with tensorboard.run(os.path.join(logdir, "executed")) as writer:
        merged = type(executed.partition_graphs[0])()
        for part in executed.partition_graphs:
            merged.node.extend(part.node)
        tensorboard.add_graph(writer, merged)
        for number, _, _, content in samples[-1:]:
            writer.add_run_metadata(tensorboard.drawable(parsed(content)), f"run {number}", number)
    if steps:
        xspace.write(logdir, [Capture("watched", tuple(steps), tuple(runs))])
