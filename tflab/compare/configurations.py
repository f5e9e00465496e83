"""Configurations: the same untraced step with other settings of the runtime, measured in turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.analysis import significance
from tflab.cli import progress
from tflab.errors import UsageError
from tflab.records import ConfigTimes, OpRun, Options, Program, Start
from tflab.runtime import child, measure, session, trace

ROUNDS = 3
STEPS = 40  # of each batch size in a round
# What can only be set before TensorFlow is imported
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "no-onednn": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "one-thread": {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"},
}
SETTINGS: dict[str, dict] = {
    "default": {},
    "xla": {"xla": True},
    "no-grappler": {"without": ("grappler",)},
    "gpu": {"soft_placement": True},
}

Times = dict[int, list[int]]  # batch size -> times of untraced steps, ns


def check(configs: Sequence[str]) -> None:
    """Raise UsageError for a configuration that this machine cannot have."""
    if "gpu" in configs and not tf.config.list_physical_devices("GPU"):
        raise UsageError("There is no GPU here to compare with; leave `gpu` out of --configs.")


def race(
    program: Program,
    step: session.Step,
    configs: Sequence[str],
    batch_sizes: Sequence[int],
    options: Options,
    split: str,
) -> tuple[ConfigTimes, ...]:
    """Untraced steps of every configuration at every batch size, round after round."""
    graph_def = program.graph.as_graph_def().SerializeToString()
    start = session.start_of(program)
    columns = list(session.feed_columns(program, split).values())
    rows = [datasets.head(column, STEPS * max(batch_sizes)) for column in columns]
    found: dict[str, Times] = {config: {} for config in configs}
    plan = [(turn, config) for turn in range(ROUNDS) for config in configs]
    for _, config in progress.track("configurations", plan, len(plan), about):
        # A process that has run nothing before, for each: what ran in this one would tell.
        times = child.call(
            "tflab.compare.configurations:timed",
            *(graph_def, start, step, rows, tuple(batch_sizes)),
            replace(options, **SETTINGS.get(config, {})),
            environment=ENVIRONMENTS.get(config),
        )
        for size, new in times.items():
            found[config].setdefault(size, []).extend(new)
    return tuple(
        config_times(config, size, found["default"][size], found[config][size])
        for size in batch_sizes
        for config in configs
    )


def about(part: tuple[int, str]) -> str:
    """`xla, round 2 of 3`"""
    turn, config = part
    return f"{config}, round {turn + 1} of {ROUNDS}"


def first_step(
    graph_def: bytes,
    start: Start,
    step: session.Step,
    values: Sequence[np.ndarray],
    options: Options,
) -> tuple[int, list[OpRun]]:
    """The very first step of a process: its wall time in ns, and its op runs."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
    metadata = tf1.RunMetadata()
    with session.fresh(graph, session.config_of(options)) as live:
        run = step.callable(live, trace_level=session.FULL_TRACE, output_partition_graphs=True)
        session.begin(live, start)
        began = time.perf_counter_ns()
        run(*values, run_metadata=metadata)
        wall_ns = time.perf_counter_ns() - began
    types = {node.name: node.op for part in metadata.partition_graphs for node in part.node}
    return wall_ns, list(trace.op_runs(0, metadata.step_stats, types))


def cold(
    program: Program, step: session.Step, batch_size: int, split: str, options: Options
) -> tuple[int, list[OpRun]]:
    """`first_step` in a process of its own: in this one everything has run before.

    With the options of the warm steps: otherwise other ops would run, and not be comparable.
    """
    graph_def = program.graph.as_graph_def().SerializeToString()
    values = next(session.feed_batches(program, batch_size, split))
    args = (graph_def, session.start_of(program), step, values, options)
    return child.call("tflab.compare.configurations:first_step", *args)


def timed(
    graph_def: bytes,
    start: Start,
    step: session.Step,
    columns: Sequence[datasets.Column],
    batch_sizes: Sequence[int],
    options: Options,
) -> Times:
    """One round of one configuration: warm-up, then the untraced steps of each batch size."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(tf1.GraphDef.FromString(graph_def), name="")
    times: Times = {}
    with session.fresh(graph, session.config_of(options)) as live:
        run = step.callable(live)
        session.begin(live, start)
        for size in batch_sizes:
            whole = len(columns[0]) // size * size if columns else STEPS * size
            for values in islice(measure.batches(columns, 0, whole, size), options.warmup + 1):
                run(*values)
            measured = measure.Measured(size)
            measure.spend(measured, run, islice(measure.batches(columns, 0, whole, size), STEPS))
            times[size] = measured.untraced_ns
    return times


def config_times(config: str, size: int, usual: list[int], now: list[int]) -> ConfigTimes:
    """Against `default`, step by step in the order in which they were measured."""
    found = significance.race(usual, now)
    return ConfigTimes(
        config=config,
        batch_size=size,
        untraced_ns=found.without_step_ns,
        images_per_second=1e9 * size / found.without_step_ns.median,
        ratio=found.ratio,
        significant=found.significant and config != "default",
    )
