"""The door for graphs: a tf.Graph or a GraphDef goes in, `Node` records come out."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import tensorflow as tf

from tflab.records import Lines, Node, Shape, Source, Tensor
from tflab.runtime import private

# Frames below these folders are library code; the user's line is the last one outside.
LIBRARIES = tuple(
    os.path.dirname(spec.origin) + os.sep
    for spec in map(importlib.util.find_spec, ("tensorflow", "keras"))
    if spec and spec.origin
)
MOST_OUTPUTS = 2**10  # of one argument: a damaged file may claim any number
MOST_ELEMENTS = 2**20  # of a constant that is looked into: a file may claim any number
NONE: Mapping[Any, Any] = MappingProxyType({})


def from_graph(graph: tf.Graph, lines: Lines = NONE) -> tuple[Node, ...]:
    """Every node of a graph under construction, in the order in which they were made.

    `lines` are those of nodes that were imported: TensorFlow does not know who made them.
    """
    made = (from_operation(op) for op in graph.get_operations())
    known = lines_in(lines)
    return tuple(replace(n, source=known[n.name]) if n.name in known else n for n in made)


def ones(graph: tf.Graph) -> set[str]:
    """The constants of a float type all of whose elements are 1, but for very large ones."""
    constants = (op for op in graph.get_operations() if op.type == "Const")
    floats = (op for op in constants if op.outputs[0].dtype.is_floating)
    return {op.name for op in floats if all_ones(op)}


def all_ones(constant: tf.Operation) -> bool:
    count = constant.outputs[0].shape.num_elements()
    if not count or count > MOST_ELEMENTS:
        return False
    return bool((tf.make_ndarray(constant.get_attr("value")) == 1).all())


def lines_in(lines: Lines, function: str | None = None) -> dict[str, Source | None]:
    """Those of the nodes in one function, or in the graph itself."""
    return {node: source for (inside, node), source in lines.items() if inside == function}


def from_operation(op: tf.Operation) -> Node:
    return Node(
        name=op.name,
        op=op.type,
        inputs=tuple(tensor_name(tensor) for tensor in op.inputs),
        control_inputs=tuple(control.name for control in op.control_inputs),
        device=op.device,
        outputs=tuple(Tensor(out.dtype.base_dtype.name, shape_of(out.shape)) for out in op.outputs),
        source=source_of(op),
    )


def tensor_name(tensor: tf.Tensor) -> str:
    """The tensor's name as a GraphDef writes it: without `:0`."""
    return tensor.name.removesuffix(":0")


def shape_of(shape: tf.TensorShape) -> Shape:
    return None if shape.rank is None else tuple(shape.as_list())


def source_of(op: tf.Operation) -> Source | None:
    """The user's line that made a node: the last frame of its creation outside the libraries.

    A node that a gradient function made goes to the line of its forward op: that line is why
    it exists. Nodes of an imported graph have no line.
    """
    forward = private.original_op(op)
    if forward is not None:
        return source_of(forward)
    frame = private.frame_outside(op, LIBRARIES)
    return Source(*frame) if frame else None


def from_graph_def(
    graph_def: Any, sources: Mapping[str, Source | None], shapes: Mapping[str, Shape]
) -> tuple[Node, ...]:
    """The nodes of a graph that the runtime wrote, in its order.

    It keeps names and types but neither lines nor shapes: lines come from the user's nodes of
    the same name, shapes (by tensor name) from the trace of a step.
    """
    return tuple(from_node_def(node_def, sources, shapes) for node_def in graph_def.node)


def from_node_def(
    node_def: Any,
    sources: Mapping[str, Source | None],
    shapes: Mapping[str, Shape],
    signatures: Mapping[str, Any] = NONE,
) -> Node:
    """`signatures` are OpDefs of functions, whose names may be the types of nodes."""
    name = node_def.name
    args = output_args(node_def.op, signatures)
    return Node(
        name=name,
        op=node_def.op,
        inputs=tuple(tensor for tensor in node_def.input if not tensor.startswith("^")),
        control_inputs=tuple(tensor[1:] for tensor in node_def.input if tensor.startswith("^")),
        device=node_def.device,
        outputs=tuple(
            Tensor(dtype, shapes.get(f"{name}:{index}" if index else name))
            for index, dtype in enumerate(output_dtypes(node_def, args))
        ),
        source=sources.get(name),
    )


def output_dtypes(node_def: Any, args: Iterable[Any]) -> Iterable[str]:
    """The dtypes of a node's outputs, by the rules of OpDef (op_def.proto, `OpDef.ArgDef`)."""
    for arg in args:
        if arg.type_list_attr:
            yield from map(dtype_name, node_def.attr[arg.type_list_attr].list.type)
            continue
        dtype = node_def.attr[arg.type_attr].type if arg.type_attr else arg.type
        yield from [dtype_name(dtype)] * min(count_of(arg, node_def), MOST_OUTPUTS)


def count_of(arg: Any, node_def: Any) -> int:
    """How many tensors of the node one ArgDef stands for."""
    if arg.type_list_attr:
        return len(node_def.attr[arg.type_list_attr].list.type)
    return max(0, node_def.attr[arg.number_attr].i) if arg.number_attr else 1


def output_args(op: str, signatures: Mapping[str, Any] = NONE) -> tuple[Any, ...]:
    op_def = signatures.get(op) or op_def_of(op)
    return tuple(op_def.output_arg) if op_def else ()


@functools.cache
def op_def_of(op: str) -> Any:
    """The OpDef of a type; None where TensorFlow does not know it."""
    return private.op_def(op)


def dtype_name(enum: int) -> str:
    try:
        return tf.dtypes.as_dtype(enum).base_dtype.name
    except TypeError:
        return f"dtype {enum}"
