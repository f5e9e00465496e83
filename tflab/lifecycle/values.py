"""Values: the program's values in one step, and the origins of NaN and Inf among them.

The step is the first one after initialisation, on the first batch, in a session of its own. What
cannot be fetched becomes a note; the stage does not fail.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import values as analysis
from tflab.errors import TflabError
from tflab.records.graph import Node, graph_def_name, node_of, output_name
from tflab.records.options import Options
from tflab.records.stages import Execution, Placement
from tflab.records.values import (
    COMPUTED,
    CONSTANT,
    FED,
    UPDATE,
    VARIABLE,
    NotFinite,
    Value,
    ValuesStep,
)
from tflab.runtime import nodes, session
from tflab.runtime import values as runtime
from tflab.runtime.values import Fetched

WHICH = "the first step after initialisation, on the first batch"


def record(execution: Execution, placement: Placement, options: Options) -> Execution:
    """Return the execution with the program's values; with a note if they could not be fetched."""
    start, program = time.perf_counter_ns(), placement.program
    step = session.step_of(program, placement.fetches)
    graph = analysis.needed(placement.user_nodes, placement.fetches, step.feeds)
    wanted = analysis.fetchable(graph, step.feeds)
    try:
        tensors = runtime.selected(program.graph, wanted, options.batch_size)
        batches = session.feed_batches(program, options.batch_size)
        with session.fresh(program.graph, options, runtime.config_of(options)) as live:
            session.begin(live, session.start_of(program))
            fetched = runtime.fetch(live, step, next(batches), tensors)
    except KeyboardInterrupt:
        return replace(execution, interrupted=True)
    except TflabError as error:
        note = f"The program's values were not fetched. {error}"
        return replace(execution, values_step=ValuesStep(WHICH, None, (note,), ()))
    every = tuple(rows(graph, fetched))
    return replace(
        execution,
        values=every,
        not_finite=origins(graph, fetched, every, program.graph),
        values_step=ValuesStep(WHICH, time.perf_counter_ns() - start, (), results(fetched)),
        maps=analysis.maps(
            placement.user_nodes,
            placement.gradient_nodes,
            fetched.fed,
            fetched.before,
            lambda tensor: fetched.computed.get(tensor, fetched.fed.get(f"{tensor}:0")),
        ),
    )


# Rows


def rows(graph: Iterable[Node], values: Fetched) -> Iterator[Value]:
    """Yield the feeds, then variables and computed tensors in topological order."""
    for tensor, array in values.fed.items():
        yield value_of(array, tensor=tensor, node=node_of(tensor), op="Placeholder", kind=FED)
    for node in graph:
        if node.name in values.before:
            before, after = values.before[node.name], values.after.get(node.name)
            row = value_of(before, tensor=node.name, node=node.name, op=node.op, kind=VARIABLE)
            yield row if after is None else replace(row, after=analysis.statistics(after))
        for number in range(len(node.outputs)):
            computed = values.computed.get(output_name(node.name, number))
            if computed is not None:
                kind = CONSTANT if node.op == analysis.CONSTANT else COMPUTED
                tensor = f"{node.name}:{number}"
                yield value_of(computed, tensor=tensor, node=node.name, op=node.op, kind=kind)


def value_of(array: np.ndarray, **known: Any) -> Value:
    """Return the row of a tensor."""
    array = np.asarray(array)
    return Value(
        **vars(analysis.statistics(array)),
        **known,
        dtype=tf.dtypes.as_dtype(array.dtype).name,
        shape=array.shape,
        after=None,
    )


# NaN and Inf


def results(values: Fetched) -> tuple[str, ...]:
    """Return the results of a step that are not finite: fetched tensors, then variables."""
    every = {**values.fetched, **values.after}
    return tuple(name for name, array in every.items() if analysis.bad_elements(np.asarray(array)))


def origins(
    graph: Sequence[Node], values: Fetched, listed: Sequence[Value], live: tf.Graph
) -> tuple[NotFinite, ...]:
    """Return the origins of NaN and Inf in topological order, with those in feeds and variables
    first. `listed` are the rows of all values."""
    fed = {graph_def_name(tensor): np.asarray(array) for tensor, array in values.fed.items()}
    known = {**values.computed, **fed, **values.before}
    bads = {name: bad for name, array in known.items() if (bad := analysis.bad_elements(array))}
    after = {
        name: bad
        for name, array in values.after.items()
        if name not in bads and (bad := analysis.bad_elements(array))
    }
    spoiled = dict(updates(graph, after))
    found = analysis.origins(graph, known.keys(), bads, spoiled)
    by_name = {node.name: node for node in graph}
    # A reference variable is a tensor, too, whose row comes later
    rows = {graph_def_name(row.tensor): row for row in reversed(listed)}
    harmless = not results(values)
    made = []
    for node, tensor in found:
        row = rows.get(tensor)  # None for a variable that had no value before the step
        kind = UPDATE if row is None or node.name in spoiled else row.kind
        if harmless and kind == CONSTANT:  # it is infinite, and meant to be
            continue
        origin = NotFinite(
            tensor=row.tensor if row else tensor,
            node=node.name,
            op=node.op,
            kind=kind,
            **vars(bads.get(tensor) or after[tensor]),
            source=node.line or by_name[node_of(tensor)].line,
            derives=nodes.forward_of(live, node.name),
        )
        made.append(origin)
    return tuple(sorted(made, key=lambda one: one.kind not in (FED, VARIABLE)))  # a stable sort


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
