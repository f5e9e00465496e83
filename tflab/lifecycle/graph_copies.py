"""Graph copies: of the forward part in wider types, and one whose variables can be read and set."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.errors import RefusedError
from tflab.records.graph import node_of, reach
from tflab.records.options import Program
from tflab.runtime import nodes, session
from tflab.saved_graphs.starting import VARIABLES

HALVES = (tf.bfloat16, tf.float16)  # the one with the fewest digits first
# DataType -> DataType
TO_FLOAT64 = {
    dtype.as_datatype_enum: tf.float64.as_datatype_enum for dtype in (tf.float32, *HALVES)
}
TO_FLOAT32 = {dtype.as_datatype_enum: tf.float32.as_datatype_enum for dtype in HALVES}
# Ops that only pass on what is half precision already
UNROUNDED = ("Const", "Identity", "Placeholder", "ReadVariableOp", "VarHandleOp", "VariableV2")

FILLS = re.compile(r"(LookupTableImport|InitializeTable(FromTextFile|FromDataset)?)(V2)?")
# Ops whose only number is the dtype of what they draw: tensorflow/core/ops/random_ops.cc,
# stateless_random_ops.cc and stateless_random_ops_v2.cc
DRAW = re.compile(r"(Stateless)?(Random(Uniform|Normal|StandardNormal)|TruncatedNormal)(V2)?")


def copies(graph: tf.Graph, ends: Sequence[str]) -> Iterator[tuple[tf.Graph, tf.DType]]:
    """The part of the graph that these nodes need, with its least precise type: first in float64,
    if its ops allow that, and last unchanged, for problems that only a run shows: an op inside a
    function without a float64 version. If parts are in half precision, float32 is in between. The
    tables among these nodes have their initialisers."""
    whole = graph.as_graph_def()
    tables = table_initializers(graph, whole, ends)
    graph_def = prune(whole, [*ends, *tables])
    del whole  # it may be large
    half = next(iter(halves_of(graph_def)), None)
    wider = {tf.float64: TO_FLOAT64} | ({tf.float32: TO_FLOAT32} if half else {})
    for dtype, types in wider.items():
        try:
            wide = import_graph(widen_graph(graph_def, types), tables)
        except ValueError:  # an op that has no such version
            continue
        yield wide, dtype
    yield import_graph(graph_def, tables), half or tf.float32


def halves_of(graph_def: Any) -> tuple[tf.DType, ...]:
    """The half precisions in which some of these nodes, or of the functions that they call,
    compute; the one with the fewest digits first."""
    bodies = {function.signature.name: function.node_def for function in graph_def.library.function}
    seen: set[str] = set()
    types: set[int] = set()
    waiting = [graph_def.node]
    while waiting:
        for node in waiting.pop():
            types |= computed_types(node)
            for attr in node.attr.values():
                called = {attr.func.name, *(function.name for function in attr.list.func)}
                fresh = called & bodies.keys() - seen
                seen |= fresh
                waiting += map(bodies.__getitem__, fresh)
    return tuple(half for half in HALVES if half.as_datatype_enum in types)


def computed_types(node: Any) -> set[int]:
    """The types in which an op computes, or to which it rounds."""
    if node.op in UNROUNDED:
        return set()
    if node.op == "Cast":
        return {node.attr["DstT"].type}
    return {attr.type for attr in node.attr.values()}


def table_initializers(graph: tf.Graph, graph_def: Any, ends: Sequence[str]) -> list[str]:
    """The nodes that fill the tables that these nodes need, unless they take what is fed."""
    fills = [op for op in graph.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS) if op.inputs]
    if not fills:
        return []
    needed = {node.name for node in prune(graph_def, ends).node}
    fed = {op.name for op in graph.get_operations() if op.type == "Placeholder"}
    return [
        op.name
        for op in fills
        if op.inputs[0].op.name in needed and not nodes.needed(graph, [op.name]) & fed
    ]


def prune(graph_def: Any, ends: Sequence[str]) -> Any:
    """Only the nodes that these depend on; the function library stays."""
    inputs = {
        node.name: [node_of(tensor.removeprefix("^")) for tensor in node.input]
        for node in graph_def.node
    }
    needed = reach(ends, inputs)
    nodes = [node for node in graph_def.node if node.name in needed]
    return tf1.GraphDef(node=nodes, library=graph_def.library, versions=graph_def.versions)


def import_graph(graph_def: Any, tables: Iterable[str] = ()) -> tf.Graph:
    """The graph, with the nodes that fill its tables."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    for name in tables:
        graph.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, graph.get_operation_by_name(name))
    return graph


def widen_graph(graph_def: Any, wider: Mapping[int, int]) -> Any:
    """The same GraphDef with wider types in attributes, lists of types and constants.

    Fused batch norm, which has no float64 version, becomes a call of its formula. Random numbers
    are drawn in their own type and converted, because the same seed gives other numbers in a wider
    one.
    """
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
    formulas: dict[str, Any] = {}
    for node in [node for node in list(wide.node) if not convert_draw(node, wide.node, wider)]:
        widen(node, formulas, wider)
    for function in wide.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = wider.get(arg.type, arg.type)
            for handle in arg.handle_data:
                handle.dtype = wider.get(handle.dtype, handle.dtype)
        for attributes in function.arg_attr.values():
            widen_types(attributes.attr.values(), wider)
        draws = {node.name for node in function.node_def if is_draw(node, wider)}
        rest = [
            node
            for node in list(function.node_def)
            if not convert_draw(node, function.node_def, wider, ":output:0")
        ]
        replaced = {node.name: node for node in rest if widen(node, formulas, wider)}
        outputs = {f"{name}:output:0": f"{name}:y:0" for name in draws} | {
            f"{name}:y:0": f"{name}:{formulas[node.op].signature.output_arg[0].name}:0"
            for name, node in replaced.items()
        }
        rename(function, outputs)
    wide.library.function.extend(formulas.values())
    return wide


def is_draw(node: Any, wider: Mapping[int, int]) -> bool:
    """Whether a node draws random numbers of a type that becomes wider."""
    return bool(DRAW.fullmatch(node.op)) and node.attr["dtype"].type in wider


def convert_draw(node: Any, nodes: Any, wider: Mapping[int, int], output: str = "") -> bool:
    """Let a node that draws numbers convert what a new one among the nodes draws; whether it does.

    `output` is what follows the name of the new node in that of its tensor.
    """
    if not is_draw(node, wider):
        return False
    dtype = node.attr["dtype"].type
    draw = nodes.add()
    draw.CopyFrom(node)
    draw.name = f"{node.name}/{tf.dtypes.as_dtype(dtype).name}"
    node.op = "Cast"
    node.attr.clear()
    node.attr["SrcT"].type, node.attr["DstT"].type = dtype, wider[dtype]
    node.input[:] = [f"{draw.name}{output}"]
    return True


def widen(node: Any, formulas: dict[str, Any], wider: Mapping[int, int]) -> bool:
    """Widen one node; returns whether it has become a call of a formula, which is then in
    `formulas`."""
    widen_types(node.attr.values(), wider)
    if node.op != "FusedBatchNormV3" or node.attr["data_format"].s != b"NHWC":
        return False
    if node.attr["T"].type != tf.float64.as_datatype_enum:
        return False
    formula = batch_norm(node.attr["epsilon"].f, node.attr["is_training"].b)
    node.op = formula.signature.name
    node.attr.clear()
    formulas[node.op] = formula
    return True


def widen_types(attributes: Iterable[Any], wider: Mapping[int, int]) -> None:
    for attr in attributes:
        if attr.type in wider:  # writing another kind of value would remove the present one
            attr.type = wider[attr.type]
        for index, dtype in enumerate(attr.list.type):
            attr.list.type[index] = wider.get(dtype, dtype)
        if attr.tensor.dtype in wider:
            dtype = tf.dtypes.as_dtype(wider[attr.tensor.dtype])
            value = tf.make_ndarray(attr.tensor).astype(dtype.as_numpy_dtype)
            attr.tensor.CopyFrom(tf.make_tensor_proto(value, dtype))


def rename(function: Any, outputs: Mapping[str, str]) -> None:
    """Inside a function a tensor has the name that its op gives to the output: `norm:y:0`."""
    for node in function.node_def:
        for index, tensor in enumerate(node.input):
            node.input[index] = outputs.get(tensor, tensor)
    for result, tensor in function.ret.items():
        function.ret[result] = outputs.get(tensor, tensor)


@functools.cache
def batch_norm(epsilon: float, training: bool) -> Any:
    """Batch norm in plain float64 ops, as a FunctionDef; only its first output."""
    images, vector = (tf.TensorSpec([None] * rank, tf.float64) for rank in (4, 1))

    @tf.function(input_signature=[images, vector, vector, vector, vector])
    def formula(
        x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor, mean: tf.Tensor, variance: tf.Tensor
    ) -> tf.Tensor:
        if training:
            mean, variance = tf.nn.moments(x, axes=[0, 1, 2])
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)

    return formula.get_concrete_function().function_def


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
