"""Placement: the graph is pruned, rewritten, given devices and cut into one part per device.

The graph that runs is not the graph that was built. The runtime returns the result of all of its
passes, the partition graphs, and this stage reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import models
from tflab.analysis import fates, passes
from tflab.cli import temporary
from tflab.errors import RefusedError, TflabError, UsageError, did_you_mean
from tflab.escaping import with_full_stop
from tflab.lifecycle import first_run, split
from tflab.records.graph import FORWARD, Node, Source, node_of
from tflab.records.options import Options, Program
from tflab.records.placed import Fate, FirstRun, Generated, Partition, Snapshot
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
    trace,
)
from tflab.units import plural

SMALL = 100  # nodes of a graph whose code is shown without --xla
ROWS = 1024  # enough for XLA to write a loop over vectors; a small batch is unrolled to scalars
UNKNOWN = (
    f"The step has {trace.MOST_OP_RUNS:,} op runs or more, and TensorFlow records no more. So it "
    "is unknown which nodes in branches ran."
)
PLACING = ("pre_placement", "placer", "post_placement")  # groups of passes that assign devices


def place(backward: Backward, options: Options) -> Placement:
    """Run one step and read the graphs that the runtime made for it.

    With graph passes switched off this is done twice, to see the difference. Raises UsageError for
    a fetch that is not in the graph, TflabError if the step cannot run.
    """
    if options.cluster:
        split.ask(backward.program.graph, backward.program.places)
    placement = place_once(backward, options)
    if not options.without:
        return placement
    usual = place_once(backward, replace(options, without=(), first_run=False))
    return replace(placement, toggle=passes.toggle(usual, placement, options.without))


def place_once(backward: Backward, options: Options) -> Placement:
    """Place one step with these options."""
    program = backward.program
    fetched = resolve(program, options.fetches)
    session.ready(program)
    fetches = fetched or session.default_fetches(program)
    step = session.step_of(program, fetches)
    try:
        observed = run_instrumented(program, step, options)
    except RefusedError as error:
        add_hint(error, program)
        raise
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
    ran = trace.node_names(observed.metadata.step_stats)
    ends = ((one.send, one.recv) for one in sent)
    generated, notes = code_of_step(program, observed, options)
    placement = Placement(
        program=program,
        nodes=remaining,
        user_nodes=backward.nodes,
        backward_nodes=backward.added_nodes
        or tuple(node.name for node in backward.nodes if node.phase != FORWARD),
        gradients={
            node.name: node.towards
            for node in backward.gradient_nodes
            if node.complete and node.towards
        },
        fetches=fetches,
        batch_size=options.batch_size,
        data=program.dataset("train").name,
        partitions=tuple(
            Partition(part[0].device, tuple(node.name for node in part)) for part in parts if part
        ),
        transfers=sent,
        kernels=tuple(devices.chosen_kernels(graphs, program.graph)),
        generated=generated,
        first_run=observed.first_run,
        partition_graphs=tuple(graphs),
        not_run=() if unknown else fates.not_taken(remaining, ran, ends),
        notes=(*observed.notes, *([UNKNOWN] * unknown), *notes),
    )
    return (
        with_ledger(placement, observed.snapshots, step.feeds) if observed.snapshots else placement
    )


def add_hint(error: RefusedError, program: Program) -> None:
    """Add the options that may help to the error, if a graph from a file was fed seeded values."""
    made_up = program.model.made_up
    if type(error) is RefusedError and made_up and models.is_file(program.name):
        name = made_up[0]
        error.args = (
            f"{with_full_stop(str(error))} It was fed seeded values; give --feed {name}=FILE.npy, "
            f"--shape {name}=SIZES, or --fetch NAME for another part.",
        )


def code_of_step(
    program: Program, observed: Instrumented, options: Options
) -> tuple[tuple[Generated, ...], tuple[str, ...]]:
    """XLA's code for the step, with --xla; for a small graph, the code for the output alone.

    If the code is not available, the stage only has a note about it.
    """
    if options.xla:
        return observed.generated, ()
    small = len(program.graph.get_operations()) <= SMALL
    if options.cluster or not small or not options.explained:
        return (), ()  # XLA compiles for one process
    try:
        return code_of_output(program, options), ()
    except TflabError as error:
        return (), (f"No generated code is shown. {error}",)


def code_of_output(program: Program, options: Options) -> tuple[Generated, ...]:
    """Return the code for the model's output alone, compiled for a batch that fills vectors."""
    rows = min(ROWS, program.dataset("train").size)
    options = replace(options, xla=True, batch_size=rows, devices=1, soft_placement=True)
    options = replace(options, explained=False)
    fetches = (program.model.output.name,)
    needed = session.step_of(program, fetches)
    return run_instrumented(program, needed, options).generated


def with_ledger(
    placement: Placement, snapshots: Sequence[Snapshot], feeds: Sequence[str]
) -> Placement:
    """Return the placement with its passes, and with the fate of every node."""
    user_nodes, executed = placement.user_nodes, placement.nodes
    steps = passes.compare(user_nodes, snapshots, executed)
    ledger = fates.fates(user_nodes, steps, executed, placement.fetches, feeds)
    origins = tuple(fates.origins(ledger, steps, executed))
    reasons = devices.assignments(placement.program.graph, executed, origins, ledger)
    return replace(
        placement,
        nodes=tuple(with_lines_of_work(executed, user_nodes, ledger)),
        passes=steps,
        ledger=ledger,
        origins=origins,
        assignments=tuple(reasons),
    )


def with_lines_of_work(
    executed: Sequence[Node], user_nodes: Sequence[Node], fates: Sequence[Fate]
) -> Iterator[Node]:
    """Yield the nodes that ran. One that a pass made to do the work of nodes of one line and phase
    has these."""
    by_name = {node.name: node for node in user_nodes}
    made_of: dict[str, set[tuple[Source | None, str]]] = {}
    for fate in fates:
        does_work = fate.is_work_of_replacement and fate.fate != "compiled"
        if does_work and fate.into and fate.into not in by_name:
            node = by_name[fate.name]
            made_of.setdefault(fate.into, set()).add((node.line, node.phase))
    for node in executed:
        lines = made_of.get(node.name, ())
        if len(lines) == 1 and node.line is None:
            ((source, phase),) = lines
            yield replace(node, source=source, phase=phase)
        else:
            yield node


def resolve(program: Program, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in `--fetch` as tensors (`add:0`), or as nodes if these have no outputs."""
    return tuple(resolve_one(program.graph, name) for name in names)


def resolve_one(graph: tf.Graph, name: str) -> str:
    ops = {op.name: op for op in graph.get_operations()}
    op = ops.get(node_of(name))
    if op is None:
        hint = did_you_mean(node_of(name), tuple(ops))
        raise UsageError(f"There is no node '{name}' to fetch in the graph.{hint}")
    if op.type == "Placeholder":
        raise UsageError(f"'{name}' is fed, so it cannot be fetched. Fetch a node that uses it.")
    if ":" not in name:
        return f"{name}:0" if op.outputs else name
    index = name.partition(":")[2]
    if not (index.isdecimal() and int(index) < len(op.outputs)):
        raise UsageError(
            f"'{name}' cannot be fetched: '{op.name}' has {plural(len(op.outputs), 'output')}, "
            "numbered from 0."
        )
    return name


# The step during which the runtime records how the graph becomes what runs


@dataclass(frozen=True)
class Instrumented:
    """The runtime's records of one step."""

    metadata: Any  # RunMetadata: the graphs that ran, one per device, and the tensors they made
    snapshots: tuple[Snapshot, ...] = ()  # the graph between the passes
    generated: tuple[Generated, ...] = ()  # what XLA compiled
    first_run: FirstRun | None = None  # of the step before, in another session
    notes: tuple[str, ...] = ()  # what could not be read, and why


def run_instrumented(program: Program, step: session.Step, options: Options) -> Instrumented:
    """Run one step and keep the runtime's records of it: graphs, passes, generated code.

    If TensorFlow was loaded before it could be told to write dumps, the step runs in a separate
    process, from the serialised graph.
    """
    job = measure.job_of(program, step, options)
    values = next(session.feed_batches(program, options.batch_size))
    if dumps.prepare():
        return run_here(job, values)
    return processes.call("tflab.lifecycle.placement:run_here", job, values)


def run_here(job: measure.Job, values: measure.Values) -> Instrumented:
    """Run the step in this process, which `dumps.prepare` has prepared."""
    options, metadata, folder = job.options, tf1.RunMetadata(), dumps.prepare()
    assert folder is not None
    snapshots: tuple[Snapshot, ...] = ()
    generated: tuple[Generated, ...] = ()
    first: FirstRun | None = None
    notes = []
    if options.first_run and options.explained and not options.cluster:
        try:
            first = first_run.measured(job, values)
        except first_run.UnknownError as error:
            notes.append(str(error))
    dumps.empty(folder)  # also of what XLA compiled in the first run
    with session.fresh(job.graph, options) as live, temporary.folder("graphs") as graphs:
        observed = over_tasks if options.cluster else in_process
        read = observed(live, job, values, metadata, Path(graphs))
        try:
            snapshots = tuple(read())
            if options.xla:
                generated = generated_code.read(folder, job.step.fetches, options.batch_size)
        except TflabError as error:
            notes.append(str(error))
    return Instrumented(metadata, snapshots, generated, first, tuple(notes))


Reader = Callable[[], Iterable[Snapshot]]


def in_process(
    live: tf1.Session, job: measure.Job, values: measure.Values, metadata: Any, folder: Path
) -> Reader:
    """Run the step and read its dumps."""
    # The step is the first thing that the session builds, so all of its passes are dumped.
    with dumps.dump_into(folder):
        compiled = job.step.callable(
            live, trace_level=session.FULL_TRACE, output_partition_graphs=True
        )
    session.begin(live, job.start)
    compiled(*values, run_metadata=metadata)
    return lambda: dumps.read(folder)


def over_tasks(
    live: tf1.Session, job: measure.Job, values: measure.Values, metadata: Any, folder: Path
) -> Reader:
    """`in_process` over the tasks of a cluster. The master, which is in this process, assigns
    devices to the whole graph when it receives it, and builds a step when that first runs."""
    first, second = folder / "placing", folder / "step"
    first.mkdir()
    second.mkdir()
    _, _, with_graphs = session.shared_steps(live, job.step, session.FULL_TRACE)
    with dumps.dump_into(first):
        session.begin(live, job.start)
    with dumps.dump_into(second):
        with_graphs(*values, run_metadata=metadata)

    def read() -> Iterator[Snapshot]:
        yield from (snap for snap in dumps.read(first) if snap.group in PLACING)
        yield from (snap for snap in dumps.read(second) if snap.group not in PLACING)

    return read
