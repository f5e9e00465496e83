"""Values: the program's values in one step, and the origins of NaN and Inf among them.

The step is the first one after initialisation, on the first batch, in a session of its own. What
cannot be fetched becomes a note; the stage does not fail.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import feature_maps, not_finite
from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.records.graph import UPDATE as UPDATING
from tflab.records.graph import Node, graph_def_name, node_of, output_name
from tflab.records.options import Options, Program
from tflab.records.stages import Execution, Placement
from tflab.records.values import (
    COMPUTED,
    CONSTANT,
    FED,
    UPDATE,
    VARIABLE,
    Entered,
    NotFinite,
    Value,
    ValuesStep,
)
from tflab.runtime import nodes, session
from tflab.runtime import values as runtime
from tflab.runtime.values import Arrays, Fetched
from tflab.units import plural

WHICH = "the first step after initialisation, on the first batch"
# Packages of tflab that add nodes to a program: gradients, updates, training
OWN = tuple(Path(__file__).parents[1] / name for name in ("lifecycle", "train"))
FIRST = (FED, VARIABLE)  # origins from before the step come first


def record(execution: Execution, placement: Placement, options: Options) -> Execution:
    """Return the execution with the program's values; with a note if they could not be fetched."""
    try:
        return recorded(execution, placement, options)
    except KeyboardInterrupt:
        return replace(execution, interrupted=True)
    except TflabError as error:
        note = f"The program's values were not fetched. {error}"
        return replace(execution, values_step=ValuesStep(WHICH, None, (note,), ()))


def recorded(execution: Execution, placement: Placement, options: Options) -> Execution:
    """Return the execution with the values of one step. Raises TflabError."""
    start = time.perf_counter_ns()
    program = placement.program
    step = session.step_of(program, placement.fetches)
    listed = tuple(nodes_of(program, placement.user_nodes))
    graph = analysis.needed(listed, placement.fetches, step.feeds)
    wanted = analysis.fetchable(graph, step.feeds)
    tensors = runtime.selected(program.graph, wanted, options.batch_size)
    batches = session.feed_batches(program, options.batch_size)
    with session.fresh(program.graph, options, runtime.config_of(options)) as live:
        session.begin(live, session.start_of(program))
        values = runtime.fetch(live, step, next(batches), tensors)
    return replace(
        execution,
        values=tuple(rows(graph, values)),
        not_finite=origins(graph, values, program.graph),
        values_step=ValuesStep(
            which=WHICH,
            ns=time.perf_counter_ns() - start,
            notes=tuple(notes_of(graph)),
            not_finite=results(values),
        ),
        maps=feature_maps.maps(
            placement.user_nodes,
            placement.backward_nodes,
            placement.gradients,
            values.fed,
            values.before,
            lambda tensor: values.computed.get(tensor, values.fed.get(f"{tensor}:0")),
        ),
    )


def nodes_of(program: Program, listed: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes of a program; for those of gradients and updates, lines of tflab do not
    count. An update that tflab added has the line that made the optimiser."""
    for node in listed:
        source = node.source
        if source is not None and Path(source.file).parent in OWN:
            source = None
        if source is None and node.phase == UPDATING:
            source = program.optimizer_line
        yield replace(node, source=source)


# Rows


def rows(graph: Iterable[Node], values: Fetched) -> Iterator[Value]:
    """Yield the feeds, then variables and computed tensors in topological order."""
    for tensor, array in values.fed.items():
        yield value_of(array, tensor=tensor, node=node_of(tensor), op="Placeholder", kind=FED)
    for node in graph:
        if node.name in values.before:
            yield variable(node, values)
        for number in range(len(node.outputs)):
            computed = values.computed.get(output_name(node.name, number))
            if computed is not None:
                kind = CONSTANT if node.op == not_finite.CONSTANT else COMPUTED
                tensor = f"{node.name}:{number}"
                yield value_of(computed, tensor=tensor, node=node.name, op=node.op, kind=kind)


def variable(node: Node, values: Fetched) -> Value:
    """Return the row of a variable: before the step, and after it."""
    before, after = values.before[node.name], values.after.get(node.name)
    value = value_of(before, tensor=node.name, node=node.name, op=node.op, kind=VARIABLE)
    if after is None:
        return value
    moved = analysis.largest_change(before, after)
    return replace(value, after=analysis.statistics(after), moved=moved)


def value_of(array: np.ndarray, **known: Any) -> Value:
    """Return the row of a tensor."""
    array = np.asarray(array)
    return Value(
        **vars(analysis.statistics(array)),
        **known,
        dtype=tf.dtypes.as_dtype(array.dtype).name,
        shape=array.shape,
        after=None,
        moved=None,
    )


def notes_of(graph: Sequence[Node]) -> Iterator[str]:
    """Yield what of the step has no values."""
    if inside := sum(depth > 0 for depth in analysis.depths(graph).values()):
        yield (
            f"{plural(inside, 'node')} inside loops and branches have no values: only what goes in "
            "and what comes out is fetched."
        )


# NaN and Inf


def results(values: Fetched) -> tuple[str, ...]:
    """Return the results of a step that are not finite: fetched tensors, then variables."""
    every = {**values.fetched, **values.after}
    return tuple(name for name, array in every.items() if not_finite.record_of(np.asarray(array)))


def origins(graph: Sequence[Node], values: Fetched, live: tf.Graph) -> tuple[NotFinite, ...]:
    """Return the origins of NaN and Inf in topological order, those from before the step first."""
    fed = {graph_def_name(tensor): np.asarray(array) for tensor, array in values.fed.items()}
    known = {**values.computed, **fed, **values.before}
    bads = {name: bad for name, array in known.items() if (bad := not_finite.record_of(array))}
    after = {
        name: bad
        for name, array in values.after.items()
        if name not in bads and (bad := not_finite.record_of(array))
    }
    if not (bads or after):
        return ()
    spoiled = dict(updates(graph, after))
    found = not_finite.origins(graph, known.keys(), bads, spoiled)
    if not results(values):  # an infinite constant did no harm
        found = [(node, tensor) for node, tensor in found if node.op != not_finite.CONSTANT]
    by_name = {node.name: node for node in graph}
    every = {**bads, **after}
    made = (origin(node, tensor, values, known, every, by_name, live) for node, tensor in found)
    return tuple(sorted(made, key=lambda one: one.kind not in FIRST))  # a stable sort


def updates(graph: Sequence[Node], variables: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the nodes that update these variables, each with its variable."""
    by_name = {node.name: node for node in graph}
    for node in graph:
        if any(word in node.op for word in ("Assign", "Apply", "Scatter")):
            for tensor in node.inputs:
                name = node_of(tensor)
                while name in by_name and by_name[name].op in ("Identity", "Enter"):
                    name = node_of(by_name[name].inputs[0])
                if name in variables:
                    yield node.name, name


def origin(
    node: Node,
    tensor: str,
    values: Fetched,
    known: Arrays,
    bads: Mapping[str, not_finite.Bad],
    by_name: Mapping[str, Node],
    live: tf.Graph,
) -> NotFinite:
    """Return the record of an origin, with its line and what it took."""
    if tensor in values.after and node.name != tensor:
        kind = UPDATE
    else:
        kind = CONSTANT if node.op == not_finite.CONSTANT else COMPUTED
        kind = VARIABLE if tensor in values.before else kind
        kind = FED if tensor in map(graph_def_name, values.fed) else kind
    entered: tuple[Entered, ...] = ()
    if kind in (COMPUTED, UPDATE):
        taken = not_finite.consumed(node, by_name, known.keys())
        arrays = ((name, known[name]) for name in known if name in taken)
        entered = tuple(not_finite.entered(arrays))
    line = node.line or (by_name[tensor].line if tensor in by_name else None)
    bad = bads[tensor]
    return NotFinite(
        tensor=tensor if ":" in tensor or kind in (VARIABLE, UPDATE) else f"{tensor}:0",
        node=node.name,
        op=node.op,
        kind=kind,
        nan=bad.nan,
        infinite=bad.infinite,
        size=bad.size,
        source=line,
        derives=nodes.forward_of(live, node.name),
        entered=entered,
    )
