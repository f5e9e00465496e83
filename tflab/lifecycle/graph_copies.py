"""Graph copies: a program's graph once more, in float64 if its ops allow that, with variables that
can be set. What is printed about gradients is checked in such a copy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import RefusedError
from tflab.records.graph import VARIABLES, node_of, reach
from tflab.records.options import Options, Program
from tflab.runtime import session

HALVES = (tf.bfloat16, tf.float16)
NARROW = {dtype.as_datatype_enum for dtype in (tf.float32, *HALVES)}
WIDE = tf.float64.as_datatype_enum

# Nodes that fill tables, or connect iterators with their data
FILLS = re.compile(
    r"MakeIterator|(LookupTableImport|InitializeTable(FromTextFile|FromDataset)?)(V2)?"
)

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Copy:
    """A copy of the graph in an open session."""

    live: tf1.Session
    dtype: tf.DType  # float64, or float32 for an unchanged copy
    half: str  # the half precision in which the program computes a part of it; "" for none
    readers: Mapping[str, tf.Tensor]  # variable -> its value
    setters: Mapping[str, tf.Operation]  # variable -> the node that sets it
    initial: Values  # variable -> the value with which the program starts

    def assign(self, values: Values) -> None:
        """Set these variables."""
        fed = {self.setters[name].inputs[1]: value for name, value in values.items()}
        self.live.run([self.setters[name] for name in values], fed)

    def run(self, fetches: Any, feeds: Values, seconds: int | None = None) -> Any:
        """Return the values of these tensors. What is fed to nodes that the copy does not have is
        omitted."""
        fed = {name: value for name, value in feeds.items() if self.has(name)}
        options = tf1.RunOptions(timeout_in_ms=1000 * seconds) if seconds else None
        try:
            return self.live.run(fetches, fed, options)
        except ValueError as error:  # a value does not fit its placeholder
            raise RefusedError(" ".join(str(error).split())) from error

    def has(self, tensor: str) -> bool:
        try:
            self.live.graph.get_operation_by_name(node_of(tensor))
        except KeyError:
            return False
        return True


@contextmanager
def opened(
    program: Program, ends: Sequence[str], options: Options, works: Callable[[Copy], Any]
) -> Iterator[Copy]:
    """Open a copy of the part of the graph that these nodes need: in float64, unless that copy
    cannot be imported, or fails when `works` is called with it.

    No pass changes what a copy computes. Raises RefusedError if the graph cannot be copied or
    initialised.
    """
    start = session.start_of(program)
    whole = program.graph.as_graph_def()
    narrow = prune(whole, [*ends, *map(node_of, start.targets)])
    operation = program.graph.get_operation_by_name
    fills = [name for name in start.targets if FILLS.fullmatch(operation(node_of(name)).type)]
    needed = prune(whole, [*ends, *map(node_of, fills)])
    del whole  # it may be large
    types = {attr.type for node in all_nodes(needed) for attr in node.attr.values()}
    half = next((half.name for half in HALVES if half.as_datatype_enum in types), "")
    variables = variables_of(needed)

    def opened_copy(stack: ExitStack, graph_def: Any, dtype: tf.DType) -> Copy:
        graph, readers, setters = import_graph(graph_def, variables)
        live = stack.enter_context(session.fresh(graph, options, unoptimised(options)))
        return Copy(live, dtype, half, readers, setters, {})

    with ExitStack() as stack:
        copy = opened_copy(stack, narrow, tf.float32)
        session.begin(copy.live, start)
        initial = dict(zip(copy.readers, copy.live.run([*copy.readers.values()]), strict=True))
        copy = replace(copy, initial=initial)
        try:
            with ExitStack() as trying:
                wide = opened_copy(trying, widen_graph(needed), tf.float64)
                wide = replace(wide, initial=initial)
                wide.live.run(fills, dict(start.feeds))
                wide.assign(initial)
                works(wide)
                kept = trying.pop_all()
            stack.close()  # the other copy
            stack.push(kept)
            copy = wide
        except (RefusedError, ValueError):  # some ops have no float64 version
            pass
        yield copy


def unoptimised(options: Options) -> tf1.ConfigProto:
    """Return the configuration of a session that neither folds nor merges nodes. It runs each of
    its steps a few times, and so every tensor can be fetched as the program computes it."""
    plain = replace(options, without=("grappler",), xla=False, soft_placement=True, cluster=())
    config = session.config_of(plain)
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    return config


def prune(graph_def: Any, ends: Iterable[str]) -> Any:
    """Return only the nodes that these depend on, with all functions."""
    inputs = {
        node.name: [node_of(tensor.removeprefix("^")) for tensor in node.input]
        for node in graph_def.node
    }
    needed = reach(ends, inputs)
    nodes = [node for node in graph_def.node if node.name in needed]
    return tf1.GraphDef(node=nodes, library=graph_def.library, versions=graph_def.versions)


def all_nodes(graph_def: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def variables_of(graph_def: Any) -> list[str]:
    """Return the nodes that are variables, one for each resource: parameters, moving averages,
    states of random numbers."""
    variables: dict[tuple[str, str], str] = {}
    for node in graph_def.node:
        if node.op in VARIABLES:
            own = "" if node.op == "VarHandleOp" else node.name
            shared = node.attr["shared_name"].s.decode() or own
            variables.setdefault((node.attr["container"].s.decode(), shared), node.name)
    return [*variables.values()]


def import_graph(
    graph_def: Any, variables: Iterable[str]
) -> tuple[tf.Graph, dict[str, tf.Tensor], dict[str, tf.Operation]]:
    """Return the graph, and for each of these variables its value and a node that sets it to its
    second input."""
    readers, setters = {}, {}
    with tf.Graph().as_default() as graph:
        try:
            tf.import_graph_def(graph_def, name="")
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise RefusedError(f"The graph cannot be copied: {reason}") from error
        for name in variables:
            op = graph.get_operation_by_name(name)
            if op.type == "VarHandleOp":
                dtype, handle = tf.dtypes.as_dtype(op.get_attr("dtype")), op.outputs[0]
                readers[name] = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
                value = tf1.placeholder(dtype)
                setters[name] = tf.raw_ops.AssignVariableOp(resource=handle, value=value)
            else:
                readers[name] = op.outputs[0]
                value = tf1.placeholder(op.outputs[0].dtype.base_dtype)
                setters[name] = tf.raw_ops.Assign(
                    ref=op.outputs[0], value=value, validate_shape=False
                ).op
    return graph, readers, setters


def widen_graph(graph_def: Any) -> Any:
    """Return the GraphDef with float64 in attributes, lists of types and constants."""
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
    for node in all_nodes(wide):
        widen(node.attr.values())
    for function in wide.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = WIDE if arg.type in NARROW else arg.type
            for handle in arg.handle_data:
                handle.dtype = WIDE if handle.dtype in NARROW else handle.dtype
        for attributes in function.arg_attr.values():
            widen(attributes.attr.values())
    return wide


def widen(attributes: Iterable[Any]) -> None:
    for attr in attributes:
        if attr.type in NARROW:  # writing another kind of value would remove the present one
            attr.type = WIDE
        for index, dtype in enumerate(attr.list.type):
            attr.list.type[index] = WIDE if dtype in NARROW else dtype
        if attr.tensor.dtype in NARROW:
            value = tf.make_ndarray(attr.tensor).astype(np.float64)
            attr.tensor.CopyFrom(tf.make_tensor_proto(value, tf.float64))


def dtype_of(variable: Any) -> tf.DType:
    """Return the dtype of a variable's values: in a graph from a file, the variable is the tensor
    of its handle."""
    if variable.dtype == tf.resource:
        return tf.dtypes.as_dtype(variable.op.get_attr("dtype"))
    return variable.dtype.base_dtype
