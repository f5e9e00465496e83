"""Values: the program's values in one step, and the origins of NaN and Inf among them.

The step is the first one after initialisation, on the first batch, in a session of its own. What
cannot be fetched becomes a note; the stage does not fail.

One `session.run` fetches them, graph passes off. The updates of the step run as in any step. A
tensor that was read from a variable before its update keeps its value, because the runtime does not
overwrite a buffer that is still used.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

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
from tflab.units import size

Arrays = Mapping[str, np.ndarray]
MOST_BYTES = 2**30  # of all tensors of a step
# Prefixes of the names of outputs that are memory for the op's gradient and may never have been
# written: the reserved space of a batch norm, the workspace of a pool
SCRATCH = ("reserve_space", "workspace")
WHICH = "the first step, on the first batch, with graph passes off"


def record(execution: Execution, placement: Placement, options: Options) -> Execution:
    """Return the execution with the program's values; with a note if they could not be fetched."""
    start, program = time.perf_counter_ns(), placement.program
    step = session.step_of(program, placement.fetches)
    graph = analysis.needed(placement.user_nodes, placement.fetches, step.feeds)
    wanted = analysis.fetchable(graph, step.feeds)
    try:
        tensors = selected(program.graph, wanted, options.batch_size)
        batches = session.feed_batches(program, options.batch_size)
        with session.fresh(program.graph, options, config_of(options)) as live:
            session.begin(live, session.start_of(program))
            fetched = fetch(live, step, next(batches), tensors)
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


@dataclass(frozen=True)
class Fetched:
    """The values of one step."""

    fed: Arrays  # tensor, as `x:0` -> its feed
    computed: Arrays  # tensor, as in a GraphDef: `mul`, `split:1`
    fetched: Arrays  # what the step itself fetches
    before: Arrays  # variable -> its value before the step
    after: Arrays


def fetch(
    live: tf1.Session, step: session.Step, batch: Sequence[np.ndarray], tensors: Sequence[str]
) -> Fetched:
    """Run one step of an initialised session, and fetch these tensors (`mul:0`) beside its own."""
    readers = session.variable_readers(live.graph)
    names = [name for name in tensors if name not in step.fetches]
    whole = session.Step(step.feeds, (*step.fetches, *names), step.targets)
    run = whole.callable(live)
    before = session.variable_values(live, readers)
    results = dict(zip(whole.fetches, map(np.asarray, run(*batch)), strict=True))
    computed = {graph_def_name(name): results[name] for name in tensors}
    return Fetched(
        fed=dict(zip(step.feeds, batch, strict=True)),
        computed=with_references(live.graph, computed, before),
        fetched={name: results[name] for name in step.fetches},
        before=before,
        after=session.variable_values(live, readers),
    )


def config_of(options: Options) -> tf1.ConfigProto:
    """Return a session's configuration in which all graph passes that have a switch are off."""
    config = session.config_of(replace(options, xla=False, without=()))
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    return config


def selected(graph: tf.Graph, tensors: Iterable[str], rows: int) -> list[str]:
    """Return the names (`mul:0`) of those tensors that are not scratch memory of an op. Raises
    TflabError if they are too large to be kept, with `rows` as the size of open dimensions."""
    kept, whole = [], 0
    for tensor in map(graph.get_tensor_by_name, tensors):
        args, output = nodes.output_args(tensor.op.type, {}), tensor.value_index
        single = not any(arg.number_attr or arg.type_list_attr for arg in args)
        if single and output < len(args) and args[output].name.startswith(SCRATCH):
            continue
        kept.append(tensor.name)
        if tensor.shape.rank is not None:
            whole += prod(dim or rows for dim in tensor.shape.as_list()) * tensor.dtype.size
    if whole > MOST_BYTES:
        raise TflabError(
            f"The tensors of the step have {size(whole)}, but tflab fetches at most "
            f"{size(MOST_BYTES)}."
        )
    return kept


def with_references(graph: tf.Graph, computed: Arrays, before: Arrays) -> dict[str, np.ndarray]:
    """Return the computed tensors. An Identity of a reference variable gets the variable's value
    before the step: it shares the variable's buffer, which the step updates in place. One that
    waits for an update has no value: later updates may have changed the buffer again."""
    values = dict(computed)
    for name in computed:
        op = graph.get_operation_by_name(node_of(name))
        read = op.inputs[0].op if op.type == "Identity" else None
        if read is not None and read.type in session.REFERENCES and read.name in before:
            updates = {user.name for user in read.outputs[0].consumers() if user.type != "Identity"}
            if updates & nodes.needed(graph, [waits_for.name for waits_for in op.control_inputs]):
                del values[name]
            else:
                values[name] = before[read.name]
    return values


# Rows


def rows(graph: Iterable[Node], values: Fetched) -> Iterator[Value]:
    """Yield the feeds, then variables and computed tensors in topological order."""
    for tensor, array in values.fed.items():
        yield value_of(array, tensor=tensor, node=node_of(tensor), op="Placeholder", kind=FED)
    for node in graph:
        about = {"node": node.name, "op": node.op, "phase": node.phase}
        if node.name in values.before:
            before, after = values.before[node.name], values.after.get(node.name)
            row = value_of(before, tensor=node.name, kind=VARIABLE, **about)
            yield row if after is None else replace(row, after=analysis.statistics(after))
        for number in range(len(node.outputs)):
            computed = values.computed.get(output_name(node.name, number))
            if computed is not None:
                kind = CONSTANT if node.op == analysis.CONSTANT else COMPUTED
                tensor = f"{node.name}:{number}"
                yield value_of(computed, tensor=tensor, kind=kind, **about)


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
    """Return the origins of NaN and Inf, feeds and variables first; `listed` has all values."""
    fed = {graph_def_name(tensor): np.asarray(array) for tensor, array in values.fed.items()}
    known = {**values.computed, **fed, **values.before}
    bads = {name: bad for name, array in known.items() if (bad := analysis.bad_elements(array))}
    after = {
        name: bad
        for name, array in values.after.items()
        if name not in bads and (bad := analysis.bad_elements(array))
    }
    by_name = {node.name: node for node in graph}
    spoiled: dict[str, str] = {}  # the nodes that update these variables, each with its variable
    for node in graph:
        if any(word in node.op for word in ("Assign", "Apply", "Scatter")):
            for name in map(node_of, node.inputs):
                while name in by_name and by_name[name].op in ("Identity", "Enter"):
                    name = node_of(by_name[name].inputs[0])
                spoiled |= {node.name: name} if name in after else {}
    found = analysis.origins(graph, known.keys(), bads, spoiled)
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
