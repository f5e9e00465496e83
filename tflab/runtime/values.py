"""Values: the tensors of a program in one step, fetched by one `session.run`, graph passes off.

The updates of the step run as in any step. A tensor that was read from a variable before its update
keeps its value, because the runtime does not overwrite a buffer that is still used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import TflabError
from tflab.records.graph import graph_def_name, node_of
from tflab.records.options import Options
from tflab.runtime import nodes, session
from tflab.units import size

Arrays = Mapping[str, np.ndarray]
MOST_BYTES = 2**30  # of all tensors of a step
# Prefixes of the names of outputs that are memory for the op's gradient and may never have been
# written: the reserved space of a batch norm, the workspace of a pool
SCRATCH = ("reserve_space", "workspace")


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
    """Return these tensors (`mul:0`) without scratch memory. Raises TflabError if they are too
    large to be kept; `rows` is the size of dimensions that the graph leaves open."""
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
    before the step: it shares the variable's buffer, which the step updates in place."""
    values = dict(computed)
    for name in computed:
        op = graph.get_operation_by_name(node_of(name))
        read = op.inputs[0].op if op.type == "Identity" else None
        if read is not None and read.type in session.REFERENCES and read.name in before:
            values[name] = before[read.name]
    return values
