"""Recorded step: one more step, of which every value is kept. It is not among those that are timed.

It is the first step after the initialisation, on the first batch, in a session of its own whose
graph is the one that was measured. What cannot be recorded is a note; no stage fails for it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.records import (
    Execution,
    Node,
    Options,
    PathPoint,
    Placement,
    Program,
    RecordedStep,
    Source,
    Value,
)
from tflab.records.values import COMPUTED, CONSTANT, FED, VARIABLE
from tflab.runtime import debugger, nodes, session, variables
from tflab.units import plural

WHICH = "the first step after the initialisation, on the first batch"
LISTED = 3  # names in a note
PATH_STEPS = 10  # that are followed where it is known where the variables should get to
# Nodes that run others, which the debugger does not see
CALLS = ("PartitionedCall", "StatefulPartitionedCall", "_XlaRun", "XlaLaunch")
CHOICES = ("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile")
OPAQUE = {*CALLS, *CHOICES}
CLUSTER = re.compile(r"cluster_\d+_\d+")  # XLA numbers them anew in every session
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Ran:
    """What one recorded step left behind."""

    nodes: tuple[Node, ...]  # of the graph that ran, without those of the debugger
    fed: Arrays  # tensor -> what was fed
    places: Mapping[str, str]  # node -> the tensor that is fed there
    before: Arrays  # variable -> its value
    after: Arrays
    path: tuple[PathPoint, ...]


def record(execution: Execution, placement: Placement, options: Options) -> Execution:
    """The execution with the values of one step; with a note where it could not be recorded."""
    start = time.perf_counter_ns()
    try:
        with TemporaryDirectory(prefix="tflab-values-") as folder:
            reason = debugger.refusal(
                names_of(placement), *room(execution, placement), gettempdir()
            )
            if reason:
                raise TflabError(reason[0].upper() + reason[1:] + ".")
            recorded = into(folder, execution, placement, options)
    except KeyboardInterrupt:
        return replace(execution, interrupted=True)
    except (TflabError, OSError) as error:
        note = f"The values of a step were not recorded. {error}"
        return replace(execution, recorded_step=RecordedStep(WHICH, 0, (note,), (), {}))
    assert recorded.recorded_step is not None
    ns = time.perf_counter_ns() - start
    return replace(recorded, recorded_step=replace(recorded.recorded_step, ns=ns))


def names_of(placement: Placement) -> Iterator[str]:
    yield from (node.name for node in placement.nodes)
    yield from debugger.names_of(placement.program.graph.as_graph_def())


def room(execution: Execution, placement: Placement) -> tuple[int, int]:
    """Bytes and files that the debugger will write, by the shapes and the runs of the graph."""
    runs = Counter(run.name for run in execution.runs)
    bytes_ = files = 0
    for node in placement.nodes:
        calls = max(1, runs[node.name] // max(1, execution.steps))
        for output in node.outputs:
            dims = [dim or 0 for dim in output.shape or ()]
            bytes_ += calls * prod(dims) * tf.dtypes.as_dtype(output.dtype).size
            files += calls
    return bytes_, files


def into(folder: str, execution: Execution, placement: Placement, options: Options) -> Execution:
    """Run the step with the debugger, which writes to the folder, and read what it wrote."""
    ran = run(folder, placement, options)
    seen = read(folder, ran)
    ordered = analysis.in_order(ran.nodes, placement.transfers, seen.us)
    used = set(ran.places.values())
    unused = (fed(ran, name, "") for name in ran.fed if name not in used)
    by_node: dict[str, list[Value]] = {}
    for value in sorted(seen.values.values(), key=lambda value: value.tensor):
        by_node.setdefault(value.node, []).append(value)
    rows = (value for node in ordered for value in by_node.get(node.name, ()))
    first = analysis.first_not_finite(
        ordered, seen.bads, placement.transfers, seen.values, sources(placement)
    )
    notes = tuple(notes_of(ran, seen, execution, options))
    answer = dict(placement.program.model.answer) if ran.path else {}
    return replace(
        execution,
        values=(*unused, *rows),
        first_not_finite=first,
        recorded_step=RecordedStep(WHICH, 0, notes, ran.path, answer),
    )


def run(folder: str, placement: Placement, options: Options) -> Ran:
    """Run the step in a session of its own."""
    program = placement.program
    step = session.step_of(program, placement.fetches)
    batches = session.feed_batches(program, options.batch_size)
    batch = next(batches)
    readers = variables.readers(program.graph, [node.name for node in placement.nodes])
    metadata = tf1.RunMetadata()
    with session.fresh(program.graph, session.config_of(options)) as live:
        recorded = step.callable(
            live,
            output_partition_graphs=True,
            debug_options=debugger.options(program.graph, folder),
        )
        session.begin(live, session.start_of(program))
        before = variables.read(live, readers)
        fetched = recorded(*batch, run_metadata=metadata)
        after = variables.read(live, readers)
        path: tuple[PathPoint, ...] = ()
        if program.model.answer and program.train_op in placement.fetches:
            path = tuple(follow(live, program, step, batches, (before, after), fetched))
    graphs = metadata.partition_graphs
    return Ran(
        nodes=debugger.without_debug_nodes(
            [node for graph in graphs for node in nodes.from_graph_def(graph, {}, {})]
        ),
        fed=dict(zip(step.feeds, batch, strict=True)),
        places={
            node_def.name: step.feeds[node_def.attr["index"].i]
            for graph in graphs
            for node_def in graph.node
            if node_def.op == "_Arg"
        },
        before=before,
        after=after,
        path=path,
    )


def follow(
    live: tf1.Session,
    program: Program,
    step: session.Step,
    batches: Iterator[Sequence[np.ndarray]],
    known: tuple[Arrays, Arrays],
    fetched: Sequence[Any],
) -> Iterator[PathPoint]:
    """Where the variables get to in the next steps, which are not recorded, after the first."""
    readers = variables.readers(program.graph, program.model.answer)
    losses = [number for number, name in enumerate(step.fetches) if name == program.loss.name]
    run_next = step.callable(live)
    for number in range(PATH_STEPS + 1):
        if number > 1:
            fetched = run_next(*next(batches))
        at = known[number] if number < 2 else variables.read(live, readers)
        loss = float(fetched[losses[0]]) if number and losses else None
        yield PathPoint(number, loss, {name: float(at[name]) for name in readers if name in at})


@dataclass
class Seen:
    """What is known of the tensors of the step, by their names as a GraphDef writes them."""

    values: dict[str, Value] = field(default_factory=dict)
    bads: dict[str, analysis.Bad] = field(default_factory=dict)
    us: dict[str, int] = field(default_factory=dict)  # node -> when its first tensor was written


def read(folder: str, ran: Ran) -> Seen:
    """All that the debugger saw, what was fed and what variables held: each under one name."""
    seen, ops = Seen(), {node.name: node.op for node in ran.nodes}
    for dumped in debugger.read(folder):
        seen.us.setdefault(dumped.node, dumped.us)
        op = ops.get(dumped.node, "")
        if dumped.array is None or dumped.node in ran.places:
            continue
        if debugger.is_scratch(op, dumped.output):
            continue
        tensor = f"{dumped.node}:{dumped.output}" if dumped.output else dumped.node
        calls = seen.values[tensor].calls if tensor in seen.values else 0
        if tensor not in seen.bads and (bad := analysis.bad(dumped.array, calls)):
            seen.bads[tensor] = bad
        seen.values[tensor] = value_of(
            dumped.array,
            tensor=f"{dumped.node}:{dumped.output}",
            node=dumped.node,
            op=op,
            kind=CONSTANT if op == "Const" else COMPUTED,
            dtype=dumped.dtype,
            calls=calls + 1,
        )
    for node, tensor in ran.places.items():
        seen.values[node] = fed(ran, tensor, node)
    for name in ran.before:
        seen.values[name] = variable(ran, name, ops.get(name, ""))
    for name in (*ran.places, *ran.before):
        array = ran.before[name] if name in ran.before else ran.fed[ran.places[name]]
        if bad := analysis.bad(array, 0):
            seen.bads[name] = bad
    return seen


def fed(ran: Ran, tensor: str, node: str) -> Value:
    """What was fed; where nothing takes it, it has no node in the graph that ran."""
    array = np.asarray(ran.fed[tensor])
    op = "_Arg" if node else ""
    return value_of(array, tensor=tensor, node=node, op=op, kind=FED, dtype=dtype(array))


def variable(ran: Ran, name: str, op: str) -> Value:
    """A variable before the step, and after it."""
    before, after = ran.before[name], ran.after.get(name)
    value = value_of(before, tensor=name, node=name, op=op, kind=VARIABLE, dtype=dtype(before))
    if after is None:
        return value
    moved = analysis.moved(before, after)
    return replace(value, after=analysis.statistics(after), moved=moved)


def value_of(array: np.ndarray, calls: int = 1, **known: Any) -> Value:
    statistics = vars(analysis.statistics(array))
    return Value(**statistics, **known, shape=array.shape, calls=calls, after=None, moved=None)


def dtype(array: np.ndarray) -> str:
    return tf.dtypes.as_dtype(array.dtype).name


def sources(placement: Placement) -> dict[str, Source]:
    """The lines of executed nodes; one that took over another's work has the line of that one."""
    known = {node.name: node.source for node in placement.user_nodes if node.source}
    heirs = {
        fate.into: known[fate.name] for fate in placement.ledger if fate.into and fate.name in known
    }
    return heirs | known | {node.name: node.source for node in placement.nodes if node.source}


def notes_of(ran: Ran, seen: Seen, execution: Execution, options: Options) -> Iterator[str]:
    """What of the step was not seen, and whether another graph ran than the one measured."""
    opaque = [
        node
        for node in ran.nodes
        if node.op in OPAQUE and (node.name in seen.us or not node.outputs)  # that ran
    ]
    if opaque:
        names = ", ".join(node.name for node in opaque[:LISTED])
        more = f" and {len(opaque) - LISTED:,} more" if len(opaque) > LISTED else ""
        remedy = " Without --xla its nodes are seen." if options.xla else ""
        yield (
            f"What flows inside {plural(len(opaque), 'node')} that run others as one was not seen, "
            f"only what goes in and comes out: {names}{more}.{remedy}"
        )
    unread = sum(node.op in variables.HANDLES and node.name not in ran.before for node in ran.nodes)
    if unread:
        yield (
            f"The values of {plural(unread, 'variable')} were not read: nothing has initialised "
            "them, or no node of the graph reads them without waiting for another."
        )
    if other := differences(ran.nodes, execution.nodes):
        yield (
            f"The graph that was recorded is not the one that was measured: {other:,} of its nodes "
            "have another name or type."
        )


def differences(recorded: Iterable[Node], measured: Iterable[Node]) -> int:
    """Nodes that stand in one of two graphs only, by name and type."""
    ones, others = (
        Counter((CLUSTER.sub("cluster", node.name), node.op) for node in graph)
        for graph in (recorded, measured)
    )
    return ((ones - others) | (others - ones)).total()
