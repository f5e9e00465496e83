"""Placement: the graph is pruned, rewritten, given devices and cut into one part per device.

The graph that runs is not the graph that was built. The runtime returns the result of all of its
passes, the partition graphs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import models
from tflab.analysis import fates, passes
from tflab.cli import temporary
from tflab.errors import RefusedError, TflabError, UsageError, did_you_mean
from tflab.escaping import with_full_stop
from tflab.records.graph import grouped, node_of
from tflab.records.options import Options, Program
from tflab.records.placed import FirstRun, Generated, Partition, Snapshot
from tflab.records.stages import Backward, Placement
from tflab.runtime import (
    devices,
    dumps,
    functions,
    generated_code,
    measure,
    nodes,
    processes,
    session,
    tf_import,
    trace,
)
from tflab.runtime.private import sessions

SMALL = 100  # nodes of a graph whose code is shown without --xla
ROWS = 1024  # enough for XLA to write a loop over vectors; a small batch is unrolled to scalars
UNKNOWN = f"The step has {trace.MOST_OP_RUNS:,} op runs or more; which branches ran is unknown."
PLACING = ("pre_placement", "placer", "post_placement")  # groups of passes that assign devices


def place(backward: Backward, options: Options) -> Placement:
    """Run one step and read the graphs that the runtime made for it. Raises UsageError for a fetch
    that is not in the graph, TflabError if the step cannot run."""
    program = backward.program
    if options.cluster:
        from tflab.lifecycle import frontend

        frontend.ask(program.graph, program.places)
    fetches = tuple(resolve(program.graph, name) for name in options.fetches)
    fetches = fetches or session.default_fetches(program)
    step = session.step_of(program, fetches)
    try:
        observed = run_instrumented(program, step, options)
    except RefusedError as error:
        if type(error) is not RefusedError or not (models.is_file(program.name) and step.feeds):
            raise
        raise RefusedError(
            f"{with_full_stop(str(error))} Values that are not given with --feed NAME=FILE.npy are "
            "seeded; --shape NAME=SIZES gives them another shape."
        ) from error
    graphs = observed.metadata.partition_graphs
    shapes = trace.output_shapes(observed.metadata.step_stats)
    names = (node.name for graph in graphs for node in graph.node)
    makers = dict(functions.origins(names, backward.nodes, backward.functions))
    makers |= {node.name: node for node in backward.nodes}
    sent = tuple(nodes.transfers(graphs, shapes))
    shapes |= {transfer.recv: transfer.shape for transfer in sent}  # a `_Recv` is not in the trace
    parts = [nodes.from_graph_def(graph, makers, shapes) for graph in graphs]
    remaining = tuple(node for part in parts for node in part)
    unknown = trace.is_incomplete(observed.metadata.step_stats)
    traced = observed.metadata.step_stats.dev_stats  # without the nodes of a branch not taken
    ran = {stats.node_name for device in traced for stats in device.node_stats}
    ends = ((one.send, one.recv) for one in sent)
    generated, notes = code_of_output(program, options)
    seen = observed.snapshots
    steps = passes.compare(backward.nodes, seen, remaining) if seen else ()
    ledger = fates.fates(backward.nodes, steps, remaining, fetches, step.feeds) if seen else ()
    made = tuple(fates.origins(ledger, steps, remaining)) if seen else ()
    # A node that a pass made to do the work of nodes of one line and phase gets that line and phase
    by_name = {node.name: node for node in backward.nodes}
    made_of = grouped(
        (fate.into, (by_name[fate.name].line, by_name[fate.name].phase))
        for fate in ledger
        if fate.is_work_of_replacement and fate.fate != "compiled" and fate.into not in by_name
    )
    executed = []
    for node in remaining:
        lines = {*made_of.get(node.name, ())}
        if len(lines) == 1 and node.line is None:
            ((source, phase),) = lines
            node = replace(node, source=source, phase=phase)
        executed.append(node)
    return Placement(
        program=program,
        nodes=tuple(executed),
        user_nodes=backward.nodes,
        gradient_nodes=backward.gradient_nodes,
        fetches=fetches,
        batch_size=options.batch_size,
        data=program.dataset("train").name,
        passes=steps,
        ledger=ledger,
        origins=made,
        partitions=tuple(
            Partition(part[0].device, tuple(node.name for node in part)) for part in parts if part
        ),
        transfers=sent,
        kernels=tuple(devices.chosen_kernels(graphs)),
        generated=observed.generated if options.xla else generated,
        first_run=observed.first_run,
        partition_graphs=tuple(graphs),
        not_run=() if unknown else fates.not_taken(remaining, ran, ends),
        notes=(*observed.notes, *([UNKNOWN] * unknown), *notes),
    )


def code_of_output(
    program: Program, options: Options
) -> tuple[tuple[Generated, ...], tuple[str, ...]]:
    """Return the code that XLA generates for the model's output alone, compiled for a batch that
    fills vectors; nothing for a large graph. If there is none, return a note that says why."""
    small = len(program.graph.get_operations()) <= SMALL
    if options.xla or options.cluster or not small or not options.explained:
        return (), ()  # XLA compiles for one process
    rows = min(ROWS, program.dataset("train").size)
    alone = replace(options, xla=True, batch_size=rows, devices=1, soft_placement=True)
    try:
        step = session.step_of(program, (program.model.output.name,))
        return run_instrumented(program, step, replace(alone, explained=False)).generated, ()
    except TflabError as error:
        return (), (f"No generated code is shown. {error}",)


def resolve(graph: tf.Graph, name: str) -> str:
    """Return a name in `--fetch` as a tensor (`add:0`), or as a node if it has no outputs."""
    ops = {op.name: op for op in graph.get_operations()}
    op = ops.get(node_of(name))
    if op is None:
        hint = did_you_mean(node_of(name), tuple(ops), 5)
        raise UsageError(f"There is no node '{name}' to fetch in the graph.{hint}")
    if op.type == "Placeholder":
        raise UsageError(f"'{name}' is fed, so it cannot be fetched. Fetch a node that uses it.")
    if ":" not in name:
        return f"{name}:0" if op.outputs else name
    index = name.partition(":")[2]
    if not (index.isdecimal() and int(index) < len(op.outputs)):
        right = " or ".join(output.name for output in op.outputs) or op.name
        raise UsageError(f"There is no tensor '{name}' to fetch. Give {right}.")
    return name


# The step during which the runtime records how the graph becomes what runs


@dataclass(frozen=True)
class Instrumented:
    """The runtime's records of one step."""

    metadata: tf1.RunMetadata  # the graphs that ran, one per device, and the tensors they made
    snapshots: tuple[Snapshot, ...]  # the graph between the passes
    generated: tuple[Generated, ...]  # what XLA compiled
    first_run: FirstRun | None  # of the step before, in another session
    notes: tuple[str, ...]  # what could not be read, and why


def run_instrumented(program: Program, step: session.Step, options: Options) -> Instrumented:
    """Run one step and keep the runtime's records of it: in a separate process if TensorFlow was
    loaded before it could be told to write dumps."""
    job = measure.job_of(program, step, options)
    values = next(session.feed_batches(program, options.batch_size))
    if dumps.prepare():
        return run_here(job, values)
    return processes.call("tflab.lifecycle.placement:run_here", job, values)


def run_here(job: measure.Job, values: measure.Values) -> Instrumented:
    """Run the step in this process, which `dumps.prepare` has prepared."""
    options, folder = job.options, dumps.prepare()
    assert folder is not None
    snapshots: list[Snapshot] = []
    generated: tuple[Generated, ...] = ()
    first, notes = None, []
    if options.first_run and options.explained and not options.cluster:
        try:
            first = first_run_of(job, values)
        except TflabError as error:  # a step that fails does so once more below
            notes.append(f"The first run is not broken down. {error}")
    for file in folder.iterdir():  # also of what XLA compiled in the first run
        file.unlink()
    metadata, level = tf1.RunMetadata(), session.FULL_TRACE
    with session.fresh(job.graph, options) as live, temporary.folder("graphs") as graphs:
        placing, preparing = Path(graphs, "placing"), Path(graphs, "step")
        placing.mkdir()
        preparing.mkdir()
        # The master of a cluster, which is in this process, assigns devices to the whole graph when
        # it receives it, and builds a step when that first runs
        if options.cluster:
            _, _, run = session.shared_steps(live, job.step, level)
            with dumps.dump_into(placing):
                session.begin(live, job.start)
            with dumps.dump_into(preparing):
                run(*values, run_metadata=metadata)
        else:
            with dumps.dump_into(preparing):  # all passes, of the first thing that a session builds
                run = job.step.callable(live, trace_level=level, output_partition_graphs=True)
            session.begin(live, job.start)
            run(*values, run_metadata=metadata)
        try:
            snapshots = dumps.read(preparing)
            if options.cluster:
                snapshots = [each for each in snapshots if each.group not in PLACING]
                snapshots[:0] = [each for each in dumps.read(placing) if each.group in PLACING]
            if options.xla:
                generated = generated_code.read(folder, job.step.fetches, options.batch_size)
        except TflabError as error:
            notes.append(str(error))
    return Instrumented(metadata, tuple(snapshots), generated, first, tuple(notes))


# The first run

MOST_NODES = 10_000  # of a graph; a larger one takes long to prepare once more


def first_run_of(job: measure.Job, values: Sequence[np.ndarray]) -> FirstRun:
    """Run a step for the first time in a new session of this process, neither traced nor dumped.
    Return what the runtime did in it. Raises TflabError if the graph is too large, if this
    TensorFlow has no log that can be set, or if a step fails."""
    if (size := len(job.graph.get_operations())) > MOST_NODES:
        raise TflabError(f"The graph has {size:,} nodes, more than {MOST_NODES:,}.")
    log = sessions.Log()
    with temporary.file() as file, session.fresh(job.graph, job.options) as live:
        with tf_import.stderr_into(file), log.detailed(passes.LEVELS):
            began = time.time_ns()
            run = job.step.callable(live)
            built = time.time_ns()
        session.begin(live, job.start)
        with tf_import.stderr_into(file), log.detailed(passes.LEVELS):
            started = time.time_ns()
            run(*values)
            ended = time.time_ns()
        file.seek(0)
        said = file.read().decode(errors="backslashreplace")
    return passes.broken_down(said, (began, built), (started, ended))
