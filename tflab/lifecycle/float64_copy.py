"""Float64 copy: the forward part of a graph, with float64 instead of float32."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.records import node_of
from tflab.records.graph import reach

WIDER = {tf.float32.as_datatype_enum: tf.float64.as_datatype_enum}

# Ops whose only number is the dtype of what they draw: tensorflow/core/ops/random_ops.cc,
# stateless_random_ops.cc and stateless_random_ops_v2.cc
DRAW = re.compile(r"(Stateless)?(Random(Uniform|Normal|StandardNormal)|TruncatedNormal)(V2)?")


def copies(graph: tf.Graph, ends: Sequence[str]) -> Iterator[tuple[tf.Graph, tf.DType]]:
    """The part of the graph that these nodes need: first in float64, if its ops allow that, then
    unchanged, for problems that only a run shows: an op inside a function without a float64
    version."""
    graph_def = prune(graph.as_graph_def(), ends)
    try:
        wide = import_graph(widen_graph(graph_def))
    except ValueError:  # an op that has no float64 version
        pass
    else:
        yield wide, tf.float64
    yield import_graph(graph_def), tf.float32


def prune(graph_def: Any, ends: Sequence[str]) -> Any:
    """Only the nodes that these depend on; the function library stays."""
    inputs = {
        node.name: [node_of(tensor.removeprefix("^")) for tensor in node.input]
        for node in graph_def.node
    }
    needed = reach(ends, inputs)
    kept = [node for node in graph_def.node if node.name in needed]
    return tf1.GraphDef(node=kept, library=graph_def.library, versions=graph_def.versions)


def import_graph(graph_def: Any) -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    return graph


def widen_graph(graph_def: Any) -> Any:
    """The same GraphDef with float64 instead of float32 in types, lists of types and constants.

    Fused batch norm, which has no such version, becomes a call of its formula. Random numbers are
    drawn in float32 and converted, because the same seed gives other numbers in float64.
    """
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
    formulas: dict[str, Any] = {}
    for node in [node for node in list(wide.node) if not convert_draw(node, wide.node)]:
        widen(node, formulas)
    for function in wide.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = WIDER.get(arg.type, arg.type)
            for handle in arg.handle_data:
                handle.dtype = WIDER.get(handle.dtype, handle.dtype)
        for attributes in function.arg_attr.values():
            widen_types(attributes.attr.values())
        drawn = {node.name for node in function.node_def if is_draw(node)}
        rest = [
            node
            for node in list(function.node_def)
            if not convert_draw(node, function.node_def, ":output:0")
        ]
        replaced = {node.name: node for node in rest if widen(node, formulas)}
        outputs = {f"{name}:output:0": f"{name}:y:0" for name in drawn} | {
            f"{name}:y:0": f"{name}:{formulas[node.op].signature.output_arg[0].name}:0"
            for name, node in replaced.items()
        }
        rename(function, outputs)
    wide.library.function.extend(formulas.values())
    return wide


def is_draw(node: Any) -> bool:
    """Whether a node draws random numbers in float32."""
    return bool(DRAW.fullmatch(node.op)) and node.attr["dtype"].type in WIDER


def convert_draw(node: Any, nodes: Any, output: str = "") -> bool:
    """Let a node that draws float32 convert what a new one among the nodes draws; whether it does.

    `output` is what follows the name of the new node in that of its tensor.
    """
    if not is_draw(node):
        return False
    drawn = node.attr["dtype"].type
    draw = nodes.add()
    draw.CopyFrom(node)
    draw.name = f"{node.name}/float32"
    node.op = "Cast"
    node.attr.clear()
    node.attr["SrcT"].type, node.attr["DstT"].type = drawn, WIDER[drawn]
    node.input[:] = [f"{draw.name}{output}"]
    return True


def widen(node: Any, formulas: dict[str, Any]) -> bool:
    """Widen one node; returns whether it has become a call of a formula, which is then in
    `formulas`."""
    widen_types(node.attr.values())
    if node.op != "FusedBatchNormV3" or node.attr["data_format"].s != b"NHWC":
        return False
    formula = batch_norm(node.attr["epsilon"].f, node.attr["is_training"].b)
    node.op = formula.signature.name
    node.attr.clear()
    formulas[node.op] = formula
    return True


def widen_types(attributes: Iterable[Any]) -> None:
    for attr in attributes:
        if attr.type in WIDER:  # writing another kind of value would remove the present one
            attr.type = WIDER[attr.type]
        for index, dtype in enumerate(attr.list.type):
            attr.list.type[index] = WIDER.get(dtype, dtype)
        if attr.tensor.dtype in WIDER:
            value = tf.make_ndarray(attr.tensor).astype(np.float64)
            attr.tensor.CopyFrom(tf.make_tensor_proto(value, tf.float64))


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
