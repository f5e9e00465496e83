"""Values: the values of one further step, which is not timed.

Each tensor has one row, under one name. What cannot be recorded becomes a note; the stage does not
fail.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

import numpy as np
import tensorflow as tf

from tflab import atomic
from tflab.analysis import feature_maps
from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.lifecycle import not_finite, recorded_step, reference_step
from tflab.records.graph import Node, Source
from tflab.records.options import Options
from tflab.records.placed import Fate
from tflab.records.stages import Execution, Placement
from tflab.records.values import COMPUTED, CONSTANT, FED, VARIABLE, Maps, RecordedStep, Value
from tflab.runtime import debugger, session
from tflab.units import plural

LISTED = 3  # names in a note
# Nodes that run other nodes, which the debugger does not see
OPAQUE = {*reference_step.CALLS, *reference_step.CHOICES, "_XlaRun", "XlaLaunch"}
STANDS_IN = re.compile(r"ArithmeticOptimizer/[A-Za-z0-9]+_")  # ReplaceMulWithSquare_
CLUSTER = re.compile(r"cluster_\d+_\d+")  # XLA numbers them anew in every session


def record(execution: Execution, placement: Placement, options: Options) -> Execution:
    """The execution with the values of one step; with a note if it could not be recorded."""
    try:
        return recorded(execution, placement, options)
    except KeyboardInterrupt:
        return replace(execution, interrupted=True)
    except (TflabError, OSError) as error:
        note = f"The values of a step were not recorded. {error}"
        about = RecordedStep(recorded_step.WHICH, None, (note,), (), {})
        return replace(execution, recorded_step=about)


def recorded(execution: Execution, placement: Placement, options: Options) -> Execution:
    """Run the step with the debugger, which writes into a temporary folder, and read the files;
    then the same for the reference step."""
    start = time.perf_counter_ns()
    needed = space_needed(execution, placement)
    if reason := debugger.refusal(names_of(placement), *needed, os.fspath(atomic.process_folder())):
        raise TflabError(reason)
    program = placement.program
    with atomic.temporary("values") as place, atomic.temporary("reference") as reference_place:
        ran = recorded_step.run(os.fspath(place), placement, options)
        about = not_finite.knowledge_of(program)
        values_read = read(ran)
        reference, notes = reference_step.reference_of(
            os.fspath(reference_place), placement, ran, options
        )
        both = (
            reference_step.compared(placement, ran, reference)
            if reference
            else reference_step.Both()
        )
        maps = maps_of(placement, ran, reference) if reference else None
        lines = sources(placement.user_nodes, placement.ledger, placement.nodes)
        origins = not_finite.of_both(ran, reference, about, lines)
    ordered = analysis.in_order(ran.nodes, placement.transfers, ran.us)
    rows = tuple(
        replace(row, agrees=both.agrees.get(row.tensor))
        for row in rows_of(ordered, ran, values_read)
    )
    step_record = RecordedStep(
        which=recorded_step.WHICH,
        ns=time.perf_counter_ns() - start,
        notes=(*notes_of(ran, execution.nodes, options), *notes, *both.notes),
        path=ran.path,
        answer=dict(program.model.answer) if ran.path else {},
        not_finite=not_finite.results(ran),
        reference_not_finite=not_finite.results(reference) if reference else None,
    )
    return replace(
        execution,
        values=rows,
        defined=both.defined,
        not_finite=origins,
        recorded_step=step_record,
        maps=maps,
    )


def maps_of(
    placement: Placement, ran: recorded_step.Ran, reference: recorded_step.Ran
) -> Maps | None:
    """Return the feature maps of the program's tensors."""
    users = {node.name: node for node in placement.user_nodes}
    return feature_maps.maps(
        placement.user_nodes,
        placement.backward_nodes,
        placement.gradients,
        ran.fed,
        ran.before,
        lambda tensor: reference_step.value(tensor, users, reference),
    )


def names_of(placement: Placement) -> Iterator[str]:
    yield from (node.name for node in placement.nodes)
    yield from debugger.names_of(placement.program.graph.as_graph_def())


def space_needed(execution: Execution, placement: Placement) -> tuple[int, int]:
    """The number of bytes and files that the debugger will write, by the shapes and runs of the
    graph."""
    runs = Counter(run.name for run in execution.runs)
    bytes_ = files = 0
    for node in placement.nodes:
        calls = max(1, runs[node.name] // max(1, execution.steps))
        for output in node.outputs:
            dims = [dim or 0 for dim in output.shape or ()]
            bytes_ += calls * prod(dims) * tf.dtypes.as_dtype(output.dtype).size
            files += calls
    return bytes_, files


ValuesByTensor = Mapping[str, Value]  # by tensor as a GraphDef writes it


def read(ran: recorded_step.Ran) -> ValuesByTensor:
    """Everything that the debugger recorded, with feeds and variables: each under one name."""
    by_tensor: dict[str, Value] = {}
    ops = {node.name: node.op for node in ran.nodes}
    for tensor, paths in ran.files.items():
        dumped = ran.dumped(paths[-1])
        if dumped.node in ran.places or dumped.array is None:
            continue
        op = ops.get(dumped.node, "")
        by_tensor[tensor] = recorded_step.value_of(
            dumped.array,
            tensor=f"{dumped.node}:{dumped.output}",
            node=dumped.node,
            op=op,
            kind=CONSTANT if op == "Const" else COMPUTED,
            dtype=dumped.dtype,
            calls=len(paths),
        )
    for node, tensor in ran.places.items():
        by_tensor[node] = fed(ran, tensor, node)
    for name in ran.before:
        by_tensor[name] = variable(ran, name, ops.get(name, ""))
    return by_tensor


def rows_of(
    ordered: Iterable[Node], ran: recorded_step.Ran, values_read: ValuesByTensor
) -> Iterator[Value]:
    """Feeds that no node took, then every tensor in the order of execution."""
    files = set(ran.places.values())
    yield from (fed(ran, tensor, "") for tensor in ran.fed if tensor not in files)
    by_node: dict[str, list[Value]] = {}
    for value in sorted(values_read.values(), key=lambda value: value.tensor):
        by_node.setdefault(value.node, []).append(value)
    for node in ordered:
        yield from by_node.get(node.name, ())


def fed(ran: recorded_step.Ran, tensor: str, node: str) -> Value:
    """A feed; if no node takes it, it has no node in the graph that ran."""
    array = np.asarray(ran.fed[tensor])
    op = "_Arg" if node else ""
    return recorded_step.value_of(array, tensor=tensor, node=node, op=op, kind=FED)


def variable(ran: recorded_step.Ran, name: str, op: str) -> Value:
    """A variable before the step, and after it."""
    before, after = ran.before[name], ran.after.get(name)
    value = recorded_step.value_of(before, tensor=name, node=name, op=op, kind=VARIABLE)
    if after is None:
        return value
    moved = analysis.largest_change(before, after)
    return replace(value, after=analysis.statistics(after), moved=moved)


def sources(
    user_nodes: Iterable[Node], ledger: Iterable[Fate], ran: Iterable[Node]
) -> dict[str, Source]:
    """The lines of executed nodes; a node that replaced another has the line of that one.

    The arithmetic optimiser names a node after the one that it replaces.
    """
    by_name = {node.name: node.line for node in user_nodes if node.line}
    lines = {fate.into: by_name[fate.name] for fate in ledger if fate.into and fate.name in by_name}
    for node in ran:
        replaced = by_name.get(STANDS_IN.sub("", node.name))
        if line := node.line or by_name.get(node.name) or lines.get(node.name) or replaced:
            lines[node.name] = line
    return lines


def notes_of(ran: recorded_step.Ran, measured: Iterable[Node], options: Options) -> Iterator[str]:
    """What of the step was not recorded, and whether the graph differed from the measured one."""
    opaque = [
        node.name
        for node in ran.nodes
        if node.op in OPAQUE and (node.name in ran.us or not node.outputs)  # that ran
    ]
    if opaque:
        more = f" and {len(opaque) - LISTED:,} more" if len(opaque) > LISTED else ""
        yield (
            "Values inside functions and clusters were not recorded, only their inputs and outputs "
            f"({plural(len(opaque), 'node')}: {', '.join(opaque[:LISTED])}{more})."
            f"{' Without --xla these nodes are recorded.' if options.xla else ''}"
        )
    unread = sum(node.op in session.HANDLES and node.name not in ran.before for node in ran.nodes)
    if unread:
        yield (
            f"The values of {plural(unread, 'variable')} were not read: they are not initialised, "
            "or every node that reads them waits for another node."
        )
    if other := differences(ran.nodes, measured):
        yield (
            f"The recorded graph differs from the measured one: {other:,} of its nodes have a "
            "different name or op."
        )


def differences(recorded: Iterable[Node], measured: Iterable[Node]) -> int:
    """The number of nodes of one graph that the other lacks, by name and type."""
    ones, others = (
        Counter((CLUSTER.sub("cluster", node.name), node.op) for node in graph)
        for graph in (recorded, measured)
    )
    return max((ones - others).total(), (others - ones).total())
