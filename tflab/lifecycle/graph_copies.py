"""Graph copies: of the forward part in float64, and one whose variables can be read and set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import RefusedError
from tflab.records.graph import VARIABLES, node_of, reach
from tflab.records.options import Program
from tflab.runtime import nodes, session

HALVES = (tf.bfloat16, tf.float16)
NARROW = {dtype.as_datatype_enum for dtype in (tf.float32, *HALVES)}
WIDE = tf.float64.as_datatype_enum

FILLS = re.compile(r"(LookupTableImport|InitializeTable(FromTextFile|FromDataset)?)(V2)?")


def copies(graph: tf.Graph, ends: Sequence[str]) -> Iterator[tuple[tf.Graph, tf.DType]]:
    """Yield the part of the graph that these nodes need: in float64, if its ops allow that, and
    then unchanged, because some ops fail only when they run. Each copy comes with float64 or
    float32, and fills the tables that it needs."""
    whole = graph.as_graph_def()
    tables = table_initializers(graph, whole, ends)
    graph_def = prune(whole, [*ends, *tables])
    del whole  # it may be large
    try:
        wide = import_graph(widen_graph(graph_def), tables)
    except ValueError:  # an op that has no float64 version
        pass
    else:
        yield wide, tf.float64
    yield import_graph(graph_def, tables), tf.float32


def half_precision(graph: tf.Graph, end: str) -> str:
    """Return the name of a half precision in which a part of what a node needs is computed; "" if
    there is none."""
    graph_def = prune(graph.as_graph_def(), [end])
    bodies = (node for function in graph_def.library.function for node in function.node_def)
    types = {attr.type for node in (*graph_def.node, *bodies) for attr in node.attr.values()}
    return next((half.name for half in HALVES if half.as_datatype_enum in types), "")


def table_initializers(graph: tf.Graph, graph_def: Any, ends: Sequence[str]) -> list[str]:
    """Return the nodes that fill the tables that these nodes need, unless they take what is fed."""
    fills = [op for op in graph.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS) if op.inputs]
    needed = {node.name for node in prune(graph_def, ends).node} if fills else set()
    fed = {op.name for op in graph.get_operations() if op.type == "Placeholder"}
    used = (op.name for op in fills if op.inputs[0].op.name in needed)
    return [name for name in used if not nodes.needed(graph, [name]) & fed]


def prune(graph_def: Any, ends: Sequence[str]) -> Any:
    """Return only the nodes that these depend on, with all functions."""
    inputs = {
        node.name: [node_of(tensor.removeprefix("^")) for tensor in node.input]
        for node in graph_def.node
    }
    needed = reach(ends, inputs)
    nodes = [node for node in graph_def.node if node.name in needed]
    return tf1.GraphDef(node=nodes, library=graph_def.library, versions=graph_def.versions)


def import_graph(graph_def: Any, tables: Iterable[str] = ()) -> tf.Graph:
    """Return the graph, with these nodes in the collection of those that fill tables."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    for name in tables:
        graph.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, graph.get_operation_by_name(name))
    return graph


def widen_graph(graph_def: Any) -> Any:
    """Return the GraphDef with float64 in attributes, lists of types and constants."""
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
    for node in wide.node:
        widen(node.attr.values())
    for function in wide.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = WIDE if arg.type in NARROW else arg.type
            for handle in arg.handle_data:
                handle.dtype = WIDE if handle.dtype in NARROW else handle.dtype
        for attributes in function.arg_attr.values():
            widen(attributes.attr.values())
        for node in function.node_def:
            widen(node.attr.values())
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


# Variables that can be read and set separately


@dataclass(frozen=True)
class Settable:
    """A variable whose value can be read, and set by feeding the second input of a node."""

    value: Any  # what to fetch
    setter: str


def settable(program: Program, names: Sequence[str] = ()) -> tuple[tf.Graph, dict[str, Settable]]:
    """A graph in which the variables, by name, can be set one by one.

    The variables of a model have initialisers for that, unless two of them start with the same
    tensor. A graph from a file has only nodes. Such a graph is copied, and each variable of the
    copy, among these names or a parameter, gets a node that sets it.
    """
    if program.model.optimizer is not None:
        variables = session.variables_of(program.graph)
        if len({v.initializer.inputs[1].name for v in variables}) == len(variables):
            return program.graph, {v.op.name: Settable(v, v.initializer.name) for v in variables}
        names = (*names, *(v.op.name for v in variables))
    try:
        graph = import_graph(program.graph.as_graph_def(), tables_of(program))
    except ValueError as error:
        raise RefusedError(f"The graph cannot be copied: {' '.join(str(error).split())}") from error
    settables = {}
    with graph.as_default():
        parameters = (tensor.op.name for tensor in program.model.parameters)
        for name in dict.fromkeys((*names, *parameters)):
            op = graph.get_operation_by_name(name)
            if op.type == "VarHandleOp":
                dtype = tf.dtypes.as_dtype(op.get_attr("dtype"))
                value = tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=dtype)
                set_to = tf1.placeholder(dtype)
                setter = tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=set_to)
                settables[name] = Settable(value, setter.name)
            elif op.type in VARIABLES:
                set_to = tf1.placeholder(op.outputs[0].dtype.base_dtype)
                setter = tf.raw_ops.Assign(ref=op.outputs[0], value=set_to, validate_shape=False).op
                settables[name] = Settable(op.outputs[0], setter.name)
    return graph, settables


def tables_of(program: Program) -> list[str]:
    """The nodes that fill the tables when the program starts."""
    operation = program.graph.get_operation_by_name
    targets = session.start_of(program).targets
    return [name for name in targets if FILLS.fullmatch(operation(name).type)]


def dtype_of(variable: Any) -> tf.DType:
    """The dtype of the values: in a graph from a file, a variable is the tensor of its handle."""
    if variable.dtype == tf.resource:
        return tf.dtypes.as_dtype(variable.op.get_attr("dtype"))
    return variable.dtype.base_dtype


def gradient_in_copy(graph: tf.Graph, gradient: Any) -> Any:
    """The corresponding gradient in a copy of its graph."""
    if isinstance(gradient, tf.IndexedSlices):
        parts = (gradient.values, gradient.indices, gradient.dense_shape)
        return tf.IndexedSlices(*(graph.get_tensor_by_name(part.name) for part in parts))
    return graph.get_tensor_by_name(gradient.name)


def assign(live: Any, values: Mapping[str, np.ndarray]) -> None:
    """Set variables, by the names of their initialisers, by feeding their initial values: that
    needs no new node in the graph."""
    if values:
        setting(live, tuple(values))(*values.values())


def setting(live: Any, setters: tuple[str, ...]) -> Callable[..., None]:
    """The same as a step that is compiled once and takes the values in this order."""
    inputs = (live.graph.get_operation_by_name(name).inputs[1].name for name in setters)
    return fed_step(live, tuple(inputs), setters)


def fed_step(live: Any, feeds: tuple[str, ...], fetches: tuple[str, ...]) -> Callable[..., Any]:
    """A compiled step that takes the values of these tensors, of any type, in this order."""
    targets = tuple(name for name in fetches if ":" not in name)
    values = tuple(name for name in fetches if ":" in name)
    dtypes = [live.graph.get_tensor_by_name(name).dtype.as_numpy_dtype for name in feeds]
    step = session.Step(feeds, values, targets).callable(live)
    return lambda *fed: step(*map(np.asarray, fed, dtypes))
