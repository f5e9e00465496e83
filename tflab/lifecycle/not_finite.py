"""Not finite: the nodes and lines of the program that made NaN or Inf in a recorded step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tflab import atomic
from tflab.analysis import not_finite as analysis
from tflab.analysis import values as order
from tflab.analysis.not_finite import Bad
from tflab.errors import TflabError
from tflab.lifecycle import reference_step
from tflab.lifecycle.recorded_step import Arrays, Ran
from tflab.records.graph import UPDATE as UPDATING
from tflab.records.graph import Function, Lines, Node, Source, graph_def_name, node_of
from tflab.records.options import Options, Program
from tflab.records.values import COMPUTED, CONSTANT, FED, UPDATE, VARIABLE, Entered, NotFinite
from tflab.runtime import debugger, functions, inlined, nodes, session

# Packages of tflab that add nodes to a program: gradients, updates, training
OWN = tuple(Path(__file__).parents[1] / name for name in ("lifecycle", "train"))
FIRST = (FED, VARIABLE)  # origins from before the step come first


@dataclass(frozen=True)
class Known:
    """What the program knows about its nodes."""

    graph: tf.Graph
    ops: Mapping[str, str]  # node -> type
    functions: tuple[Function, ...]
    nodes: Mapping[str, Node]


def knowledge_of(program: Program) -> Known:
    """The program's knowledge. For nodes of gradients and updates, lines of tflab do not count;
    an update that tflab added has the line that made the optimiser."""
    listed = nodes.from_graph(program.graph, program.model.lines)
    every = [
        replace(node, source=node.source or program.optimizer_line)
        if node.phase == UPDATING
        else node
        for node in map(without_own_line, listed)
    ]
    return knowledge(program.graph, every, program.model.lines)


def knowledge(graph: tf.Graph, listed: Iterable[Node], lines: Lines = nodes.NONE) -> Known:
    """What is known of the nodes of a graph, and of those of its functions."""
    every = {node.name: node for node in listed}
    return Known(
        graph=graph,
        ops={node.name: node.op for node in every.values()},
        functions=tuple(
            replace(one, nodes=tuple(map(without_own_line, one.nodes)))
            for one in functions.of_graph(graph, lines)
        ),
        nodes=every,
    )


def without_own_line(node: Node) -> Node:
    is_of_tflab = node.source is not None and Path(node.source.file).parent in OWN
    return replace(node, source=None) if is_of_tflab else node


def results(ran: Ran) -> tuple[str, ...]:
    """The results of a step that are not finite: fetched tensors, then variables."""
    values = {**ran.fetched, **ran.after}
    return tuple(name for name, array in values.items() if analysis.record_of(np.asarray(array), 0))


def origins(
    ran: Ran, about: Known, optimised: bool, sources: Mapping[str, Source] | None = None
) -> tuple[NotFinite, ...]:
    """The origins of a recorded step in the order of execution, those from before it first.

    `sources` has the lines of a graph that passes have changed (`optimised`).
    """
    bads = dict(ran.bads)
    for name in (*ran.places, *ran.before):
        array = ran.before[name] if name in ran.before else ran.fed[ran.places[name]]
        bads.pop(name, None)
        if bad := analysis.record_of(np.asarray(array), 0):
            bads[name] = bad
    spoiled = {
        name: bad
        for name, array in ran.after.items()
        if name not in bads and (bad := analysis.record_of(array, 0))
    }
    handles = handles_of(ran)
    for node in ran.nodes:
        for variable in handles.get(node.name, ()):
            if variable in spoiled and updates(node.op):
                bads[f"{node.name}:{variable}"] = spoiled[variable]
    if not bads:
        return ()
    ordered = order.in_order(ran.nodes, ran.transfers, ran.us)
    first_bad = analysis.origins(ordered, bads, ran.transfers, spoiled)
    if not results(ran):  # an infinite constant did no harm
        first_bad = [(node, tensor) for node, tensor in first_bad if node.op != analysis.CONSTANT]
    names = [node.name for node, _ in first_bad]
    places = dict(inlined.origins(names, about.nodes.values(), about.functions))
    rows = [
        row(node.name, node.op, node.inputs, tensor, bads[tensor], ran, about, places, sources)
        for node, tensor in first_bad
    ]
    return tuple(
        sorted(
            (NotFinite(**fields, optimised=optimised) for fields in rows),
            key=lambda origin: origin.kind not in FIRST,  # a stable sort
        )
    )


def of_both(
    ran: Ran | None, reference: Ran | None, about: Known, sources: Mapping[str, Source]
) -> tuple[NotFinite, ...]:
    """The origins by definition; and those of the graph that ran, if only that one has any, or
    if its results are not finite and those of the reference step are."""
    defined = origins(reference, about, False) if reference else ()
    if ran is None:
        return defined
    beyond = reference is None or set(results(ran)) - set(results(reference))
    if not beyond and defined:
        return defined
    return (*defined, *origins(ran, about, True, sources))


def of_step(
    program: Program,
    step: session.Step,
    batch: Sequence[np.ndarray],
    start: Arrays,
    options: Options,
) -> tuple[NotFinite, ...]:
    """The origins of a step with this batch and these values of the variables: by definition or,
    if that is finite, in the graph that runs. Raises TflabError if it cannot be recorded."""
    names = debugger.names_of(program.graph.as_graph_def())
    if reason := debugger.refusal(names, 0, 0, os.fspath(atomic.process_folder())):
        raise TflabError(reason)
    about = knowledge_of(program)
    for passes in (False, True):
        with atomic.temporary("reference") as folder:
            ran = reference_step.run(
                os.fspath(folder), program, step, batch, start, {}, options, passes
            )
            if rows := origins(ran, about, passes, {} if passes else None):
                return rows
    return ()


def updates(op: str) -> bool:
    """Whether an op changes a variable among its inputs."""
    return any(word in op for word in ("Assign", "Apply", "Scatter"))


def updates_of(ran: Ran) -> Iterator[tuple[str, bool]]:
    """The variables that the step updated, and whether the update took a value, other than a
    variable's, that was not finite."""
    handles = handles_of(ran)
    for node in ran.nodes:
        if updates(node.op):
            taken = (tensor for tensor in node.inputs if node_of(tensor) not in ran.before)
            spoils = any(tensor in ran.bads for tensor in taken)
            yield from ((variable, spoils) for variable in handles.get(node.name, ()))


def handles_of(ran: Ran) -> dict[str, list[str]]:
    """Node -> the variables whose handle it takes, also through an Identity."""
    by_name = {node.name: node for node in ran.nodes}
    handles: dict[str, list[str]] = {}
    for node in ran.nodes:
        for tensor in node.inputs:
            name = node_of(tensor)
            while name in by_name and by_name[name].op in ("Identity", "Enter"):
                name = node_of(by_name[name].inputs[0])
            if name in ran.before:
                handles.setdefault(node.name, []).append(name)
    return handles


def row(
    name: str,
    op: str,
    inputs: Sequence[str],
    tensor: str,
    first: Bad,
    ran: Ran,
    about: Known,
    places: Mapping[str, Node],
    sources: Mapping[str, Source] | None,
) -> dict[str, Any]:
    """The fields of an origin, with its line and its inputs, as far as known."""
    variable = tensor.partition(":")[2]
    is_update = variable in ran.after
    if name in ran.places:
        kind, tensor = FED, ran.places[name]
        name, out = node_of(tensor), np.asarray(ran.fed[tensor])
    elif is_update:
        kind, tensor, out = UPDATE, variable, ran.after[variable]
    elif name in ran.before:
        kind, out = VARIABLE, ran.before[name]
    else:
        kind = CONSTANT if op == "Const" else COMPUTED
        array = ran.array(tensor, first.call)
        assert array is not None, "the step with values that are not finite was recorded"
        out = array
    place = places.get(name)
    inside = caller(name, about.nodes)
    user_op = about.ops.get(name, op) if sources is None else op
    at_fault = (
        ()
        if kind in (FED, VARIABLE, CONSTANT)
        else tuple(inputs_at_fault(user_op, out, inputs, first, ran))
    )
    forward = None
    if name in about.ops:
        forward = nodes.forward_of(about.graph, name)
    line = (sources or {}).get(name) or (place.line if place else None)
    for known_name in (name, variable) if is_update else (name,):
        if line is None and known_name in about.nodes:
            line = about.nodes[known_name].line
    return {
        "tensor": tensor if ":" in tensor or kind in (VARIABLE, UPDATE) else f"{tensor}:0",
        "node": place.name if place and inside and name.endswith(place.name) else name,
        "op": user_op,
        "kind": kind,
        "dtype": tf.dtypes.as_dtype(out.dtype).name,
        "nan": first.nan,
        "infinite": first.infinite,
        "size": first.size,
        "call": first.call + 1,
        "source": line,
        "inside": inside,
        "derives": forward,
        "overflow": bool(at_fault) and analysis.overflowed(user_op, at_fault),
        "entered": at_fault,
    }


def caller(name: str, graph: Mapping[str, Node]) -> str | None:
    """The node of the graph that calls the function which contains a node; None if there is
    none."""
    if name in graph:
        return None
    return next((scope for scope in inlined.scopes(name) if scope in graph), None)


def inputs_at_fault(
    op: str, out: np.ndarray, inputs: Sequence[str], first: Bad, ran: Ran
) -> Iterator[Entered]:
    """The inputs of a node when it first made a non-finite value."""
    sent = {transfer.recv: transfer.tensor for transfer in ran.transfers}
    arrays: list[tuple[str, np.ndarray | None]] = []
    for input_name in dict.fromkeys(inputs):
        tensor = sent.get(input_name, input_name)
        if fed := ran.places.get(tensor):
            arrays.append((graph_def_name(fed), np.asarray(ran.fed[fed])))
        elif tensor in ran.before:
            arrays.append((tensor, ran.before[tensor]))
        else:
            arrays.append((tensor, ran.array(tensor, first.call)))
    yield from analysis.inputs_at_fault(op, out, arrays)
