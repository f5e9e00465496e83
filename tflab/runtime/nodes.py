"""Nodes: a tf.Graph or a GraphDef goes in, `Node` records come out; and `Transfer` records of the
nodes that send and receive."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import AttrValue, GraphDef, NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef

from tflab.records.graph import (
    BACKWARD,
    FORWARD,
    Lines,
    Node,
    Shape,
    Source,
    Tensor,
    graph_def_name,
    output_name,
    reach,
)
from tflab.records.placed import Transfer
from tflab.runtime import libraries, phases, private

SENDS, RECVS = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")  # the second ones: from host memory
MOST_OUTPUTS = 2**10  # of one argument: a damaged file may claim any number
UNSIZED = ("resource", "string", "variant")  # the shape of such a tensor says nothing of its bytes
NONE: Mapping[Any, Any] = MappingProxyType({})


def from_graph(graph: tf.Graph, lines: Lines = NONE) -> tuple[Node, ...]:
    """Return every node of a graph under construction, in the order in which they were made.

    `lines` are those of imported nodes: TensorFlow does not know their makers.
    """
    ops = graph.get_operations()
    line_of = graph_lines(lines)
    graph_nodes = [from_operation(op) for op in ops]
    graph_nodes = [
        replace(n, source=line_of[n.name]) if n.name in line_of else n for n in graph_nodes
    ]
    return phases.phased(graph_nodes, ops)


def needed(graph: tf.Graph, names: Iterable[str]) -> set[str]:
    """Return these nodes and all nodes that must run before them."""
    parents = {
        op.name: [*(tensor.op.name for tensor in op.inputs), *(c.name for c in op.control_inputs)]
        for op in graph.get_operations()
    }
    return reach(names, parents)


def graph_lines(lines: Lines) -> dict[str, Source | None]:
    """Return the lines of the nodes that are in no function."""
    return {node: source for (inside, node), source in lines.items() if inside is None}


def from_operation(op: tf.Operation) -> Node:
    source, phase = made_by(op)
    forward = private.derived_from(op)
    return Node(
        name=op.name,
        op=op.type,
        inputs=tuple(tensor_name(tensor) for tensor in op.inputs),
        control_inputs=tuple(control.name for control in op.control_inputs),
        device=op.device,
        outputs=tuple(Tensor(out.dtype.base_dtype.name, shape_of(out.shape)) for out in op.outputs),
        source=source,
        phase=phase if forward is None else BACKWARD,
        forward_source=line_of_work(forward) if forward is not None else None,
    )


def tensor_name(tensor: tf.Tensor) -> str:
    """Return the tensor's name as a GraphDef writes it: without `:0`."""
    return graph_def_name(tensor.name)


def shape_of(shape: tf.TensorShape) -> Shape:
    return None if shape.rank is None else tuple(shape.as_list())


def line_of_work(op: tf.Operation) -> Source | None:
    """Return the line whose work a node does: of the forward op, if a gradient function made the
    node or if it adds up the op's gradients; otherwise the line that made the node."""
    forward = private.derived_from(op)
    return made_by(op)[0] if forward is None else line_of_work(forward)


def made_by(op: tf.Operation) -> tuple[Source | None, str]:
    """Return the user's line that made a node, and the phase in whose calls it was made.

    The line is the last frame of the node's creation outside the libraries, or the one that made
    the Keras layer in whose call it was created. Nodes of an imported graph have no line.
    """
    frame, phase = private.making(op, libraries.includes)
    return Source(*frame) if frame else None, phase


def constructed(thing: object) -> Source | None:
    """Return the user's line that made an optimiser or a Keras layer, if known."""
    frame = private.constructed(thing)
    return Source(*frame) if frame else None


def forward_of(graph: tf.Graph, name: str) -> str | None:
    """Return the forward node whose gradient function made this one."""
    forward = private.original_op(graph.get_operation_by_name(name))
    return forward.name if forward is not None else None


def from_graph_def(
    graph_def: GraphDef, makers: Mapping[str, Node], shapes: Mapping[str, Shape]
) -> tuple[Node, ...]:
    """Return the nodes of a graph that the runtime wrote, in its order.

    It has names and types but neither lines nor shapes: lines and phases come from `makers`, the
    user's nodes by the names under which they run, shapes (by tensor name) from the trace of a
    step.
    """
    return tuple(from_node_def(node_def, makers, shapes) for node_def in graph_def.node)


def from_node_def(
    node_def: NodeDef,
    makers: Mapping[str, Node],
    shapes: Mapping[str, Shape],
    signatures: Mapping[str, OpDef] = NONE,
) -> Node:
    """Return a NodeDef as a node; `signatures` are OpDefs of functions, which may be types."""
    name = node_def.name
    maker = makers.get(name)
    args = output_args(node_def.op, signatures)
    return Node(
        name=name,
        op=node_def.op,
        inputs=tuple(tensor for tensor in node_def.input if not tensor.startswith("^")),
        control_inputs=tuple(tensor[1:] for tensor in node_def.input if tensor.startswith("^")),
        device=node_def.device,
        outputs=tuple(
            Tensor(dtype, shapes.get(output_name(name, index)))
            for index, dtype in enumerate(output_dtypes(node_def, args))
        ),
        source=maker.source if maker else None,
        phase=maker.phase if maker else FORWARD,
        forward_source=maker.forward_source if maker else None,
    )


def output_dtypes(node_def: NodeDef, args: Iterable[OpDef.ArgDef]) -> Iterable[str]:
    """Return the dtypes of a node's outputs, by the rules of OpDef (op_def.proto, `ArgDef`)."""
    for arg in args:
        if arg.type_list_attr:
            yield from map(dtype_name, node_def.attr[arg.type_list_attr].list.type)
            continue
        dtype = node_def.attr[arg.type_attr].type if arg.type_attr else arg.type
        yield from [dtype_name(dtype)] * min(count_of(arg, node_def), MOST_OUTPUTS)


def count_of(arg: OpDef.ArgDef, node_def: NodeDef) -> int:
    """Return how many tensors of the node one ArgDef stands for."""
    if arg.type_list_attr:
        return len(node_def.attr[arg.type_list_attr].list.type)
    return max(0, node_def.attr[arg.number_attr].i) if arg.number_attr else 1


def output_args(op: str, signatures: Mapping[str, OpDef] = NONE) -> tuple[OpDef.ArgDef, ...]:
    op_def = signatures.get(op) or op_def_of(op)
    return tuple(op_def.output_arg) if op_def else ()


@functools.cache
def op_def_of(op: str) -> OpDef | None:
    """Return the OpDef of a type; None if TensorFlow does not know it."""
    return private.op_def(op)


@functools.cache
def dtype_name(enum: int) -> str:
    try:
        return tf.dtypes.as_dtype(enum).base_dtype.name
    except TypeError:
        return f"dtype {enum}"


def tensor_bytes(tensor: Tensor) -> int | None:
    """Return the bytes of a tensor; None if its shape does not say."""
    if tensor.shape is None or None in tensor.shape or tensor.dtype in UNSIZED:
        return None
    return prod(size or 0 for size in tensor.shape) * tf.dtypes.as_dtype(tensor.dtype).size


# Tensors that are sent from one device to another, in the graphs that run


def transfers(graphs: Iterable[GraphDef], shapes: Mapping[str, Shape]) -> Iterator[Transfer]:
    """Return a Transfer for each `_Send`; the `_Recv` with the same rendezvous name is its end."""
    node_defs = [node_def for graph in graphs for node_def in graph.node]
    receivers = {
        rendezvous(node_def): node_def.name for node_def in node_defs if node_def.op in RECVS
    }
    for node_def in node_defs:
        if node_def.op not in SENDS or node_def.attr["client_terminated"].b or not node_def.input:
            continue  # or a fetch from a cluster
        sent = Tensor(dtype_name(node_def.attr["T"].type), shapes.get(node_def.input[0]))
        yield Transfer(
            tensor=node_def.input[0],
            send=node_def.name,
            recv=receivers.get(rendezvous(node_def), ""),
            from_device=text(node_def.attr["send_device"]),
            to_device=text(node_def.attr["recv_device"]),
            dtype=sent.dtype,
            shape=sent.shape,
            bytes=tensor_bytes(sent),
            edge=text(node_def.attr["tensor_name"]),
        )


def text(attr: AttrValue) -> str:
    return str(attr.s.decode(errors="replace"))


def rendezvous(node_def: NodeDef) -> tuple[bytes, ...]:
    """Return what a `_Send` and its `_Recv` have in common (rendezvous.h, `CreateKey`)."""
    return tuple(node_def.attr[key].s for key in ("send_device", "recv_device", "tensor_name"))
