"""Nodes: a tf.Graph or a GraphDef goes in, `Node` records come out; and `Transfer` records of the
nodes that send and receive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod

import tensorflow as tf
from tensorflow.compat.v1 import AttrValue, GraphDef, NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef

from tflab.records.graph import (
    BACKWARD,
    FORWARD,
    UPDATE,
    VARIABLES,
    Node,
    Shape,
    Source,
    Tensor,
    graph_def_name,
    makers,
    output_name,
    reach,
    turned_around,
)
from tflab.records.placed import Transfer
from tflab.runtime.private import graphs, source_lines

SENDS, RECVS = ("_Send", "_HostSend"), ("_Recv", "_HostRecv")  # the second ones: from host memory
MOST_OUTPUTS = 2**10  # of one argument: a damaged file may claim any number
UNSIZED = ("resource", "string", "variant")  # the shape of such a tensor says nothing of its bytes


def from_graph(graph: tf.Graph) -> tuple[Node, ...]:
    """Return every node of a graph under construction, in the order in which they were made."""
    ops = graph.get_operations()
    return phased([from_operation(op) for op in ops], ops)


def needed(graph: tf.Graph, names: Iterable[str]) -> set[str]:
    """Return these nodes and all nodes that must run before them."""
    parents = {
        op.name: [*(tensor.op.name for tensor in op.inputs), *(c.name for c in op.control_inputs)]
        for op in graph.get_operations()
    }
    return reach(names, parents)


def from_operation(op: tf.Operation) -> Node:
    source, phase = source_lines.making(op)
    forward = graphs.derived_from(op)
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
    """Return the line of the forward op that a node differentiates, or that made the node."""
    forward = graphs.derived_from(op)
    return source_lines.making(op)[0] if forward is None else line_of_work(forward)


def forward_of(graph: tf.Graph, name: str) -> str | None:
    """Return the forward node whose gradient function made this one."""
    forward = graphs.original_op(graph.get_operation_by_name(name))
    return forward.name if forward is not None else None


def from_graph_def(
    graph_def: GraphDef, makers: Mapping[str, Node], shapes: Mapping[str, Shape]
) -> tuple[Node, ...]:
    """Return the nodes of a graph that the runtime wrote: lines and phases come from `makers`, the
    user's nodes by the names under which they run, shapes (by tensor name) from a step's trace."""
    return tuple(from_node_def(node_def, makers, shapes, {}) for node_def in graph_def.node)


def from_node_def(
    node_def: NodeDef,
    makers: Mapping[str, Node],
    shapes: Mapping[str, Shape],
    signatures: Mapping[str, OpDef],
) -> Node:
    """Return a NodeDef as a node; `signatures` are OpDefs of functions, which may be types."""
    maker = makers.get(node_def.name)
    types: list[int] = []  # of the outputs, by the rules of OpDef (op_def.proto, `ArgDef`)
    for arg in output_args(node_def.op, signatures):
        if arg.type_list_attr:
            types += node_def.attr[arg.type_list_attr].list.type
        else:
            own = node_def.attr[arg.type_attr].type if arg.type_attr else arg.type
            types += [own] * min(count_of(arg, node_def), MOST_OUTPUTS)
    return Node(
        name=node_def.name,
        op=node_def.op,
        inputs=tuple(tensor for tensor in node_def.input if not tensor.startswith("^")),
        control_inputs=tuple(tensor[1:] for tensor in node_def.input if tensor.startswith("^")),
        device=node_def.device,
        outputs=tuple(
            Tensor(dtype_name(own), shapes.get(output_name(node_def.name, index)))
            for index, own in enumerate(types)
        ),
        source=maker.source if maker else None,
        phase=maker.phase if maker else FORWARD,
        forward_source=maker.forward_source if maker else None,
    )


def count_of(arg: OpDef.ArgDef, node_def: NodeDef) -> int:
    """Return how many tensors an ArgDef stands for in this node."""
    if arg.type_list_attr:
        return len(node_def.attr[arg.type_list_attr].list.type)
    return max(0, node_def.attr[arg.number_attr].i) if arg.number_attr else 1


def output_args(op: str, signatures: Mapping[str, OpDef]) -> tuple[OpDef.ArgDef, ...]:
    op_def = signatures.get(op) or op_def_of(op)
    return tuple(op_def.output_arg) if op_def else ()


op_def_of = cache(graphs.op_def)


@cache
def dtype_name(enum: int) -> str:
    try:
        return tf.dtypes.as_dtype(enum).base_dtype.name
    except TypeError:
        return f"dtype {enum}"


def tensor_bytes(tensor: Tensor) -> int | None:
    if tensor.shape is None or None in tensor.shape or tensor.dtype in UNSIZED:
        return None
    return prod(size or 0 for size in tensor.shape) * tf.dtypes.as_dtype(tensor.dtype).size


# Tensors that are sent from one device to another, in the graphs that run


def transfers(partitions: Iterable[GraphDef], shapes: Mapping[str, Shape]) -> Iterator[Transfer]:
    """Return a Transfer for each `_Send`; the `_Recv` with the same rendezvous name is its end."""
    node_defs = [node_def for graph in partitions for node_def in graph.node]
    receivers = {rendezvous(node): node.name for node in node_defs if node.op in RECVS}
    for node_def in node_defs:
        if node_def.op not in SENDS or node_def.attr["client_terminated"].b or not node_def.input:
            continue  # or a fetch from a cluster
        dtype = dtype_name(node_def.attr["T"].type)
        shape = shapes.get(node_def.input[0])
        yield Transfer(
            tensor=node_def.input[0],
            send=node_def.name,
            recv=receivers.get(rendezvous(node_def), ""),
            from_device=text(node_def.attr["send_device"]),
            to_device=text(node_def.attr["recv_device"]),
            dtype=dtype,
            shape=shape,
            bytes=tensor_bytes(Tensor(dtype, shape)),
            edge=text(node_def.attr["tensor_name"]),
        )


def text(attr: AttrValue) -> str:
    return str(attr.s.decode(errors="replace"))


def rendezvous(node_def: NodeDef) -> tuple[bytes, ...]:
    """Return what a `_Send` and its `_Recv` have in common (rendezvous.h, `CreateKey`)."""
    return tuple(node_def.attr[key].s for key in ("send_device", "recv_device", "tensor_name"))


# Phases: the optimiser's nodes, and those that gradient functions make, have theirs from the start

STORED = (*VARIABLES, "ReadVariableOp", "Const")  # values that do not depend on the step's data
FED = ("Placeholder", "PlaceholderWithDefault")
# An initialiser assigns, too; these change a value that is there
CHANGES = re.compile(r"Assign(Add|Sub)(VariableOp)?|(Resource)?Scatter(Nd)?(Add|Sub)")
SUMMARY = re.compile(r"Summary(V2)?$")
ASSIGNS = re.compile(r"Assign(Variable(Op)?)?|(Resource)?Scatter(Nd)?Update")


def phased(nodes: Sequence[Node], ops: Iterable[tf.Operation]) -> tuple[Node, ...]:
    """Return the nodes of these ops, with those that belong to updates marked.

    A forward node that leads to a node with a gradient never belongs to updates, because the loss
    needs it. Of the others these do:

    - those that depend on gradients, such as clipping
    - changes of variables that do not depend on the data, such as a moving average of a weight
    - those that only updates and summaries use
    - those that updates use and that do not depend on the loss, such as a learning rate, whatever
      else uses them: a schedule has nodes that lead nowhere

    A node does not depend on what was made after it: a loop gets further inputs when it is
    differentiated. A copy that waits for updates, such as a returned loss, is no part of them.
    """
    phases = {node.name: node.phase for node in nodes}
    if {*phases.values()} <= {FORWARD}:
        return tuple(nodes)
    inputs: Mapping[str, Sequence[str]] = makers(nodes)
    consumers = turned_around(inputs)
    derived = [forward.name for op in ops if (forward := graphs.original_op(op)) is not None]
    of_loss = reach(derived, inputs)
    rest = [n for n in nodes if n.phase == FORWARD and n.name not in of_loss]
    variables = {node.name for node in nodes if node.op in VARIABLES}
    stored = {
        node.name
        for node in nodes
        if node.op in STORED or (node.op == "Identity" and variables.issuperset(inputs[node.name]))
    }
    on_loss = reach(of_loss - stored, consumers)
    places = {node.name: place for place, node in enumerate(nodes)}

    def of(phase: str) -> list[str]:
        return [name for name, own in phases.items() if own == phase]

    def mark_dependent() -> None:
        """Mark nodes that depend on gradients or updates."""
        for node in rest:  # in the order in which they were made: inputs first
            parents = inputs[node.name][: 1 if node.op == "Identity" else None]
            earlier = (n for n in parents if places.get(n, len(places)) < places[node.name])
            if any(phases[name] != FORWARD for name in earlier):
                phases[node.name] = UPDATE

    mark_dependent()
    # Assignments without a gradient: they have to do with a variable that the loss or an update
    # uses, and not with the data, on which a batch's statistics and metrics depend
    used = of_loss | reach(of(UPDATE), inputs)
    of_variables = reach(variables & used, consumers)
    on_data = on_loss | reach((node.name for node in nodes if node.op in FED), consumers)
    waiting = turned_around({n.name: (*inputs[n.name], *n.control_inputs) for n in nodes})
    after = reach(of(UPDATE), waiting)
    for node in rest:
        if node.name in of_variables and node.name not in on_data:
            assigns = node.name in after and ASSIGNS.fullmatch(node.op)
            if assigns or CHANGES.fullmatch(node.op):
                after |= reach([node.name], waiting)
                phases[node.name] = UPDATE
    mark_dependent()
    # What updates use. A node on which the loss or a gradient depends belongs to them only if
    # nothing but updates and summaries uses it
    shared = on_loss | reach(of(BACKWARD), inputs)
    controlled = turned_around({node.name: node.control_inputs for node in nodes})
    summaries = {node.name for node in nodes if SUMMARY.search(node.op)}
    left, before = [node.name for node in reversed(rest)], 0
    while len(left) != before:  # a branch of TensorFlow 1 makes the inputs of a node after it
        before = len(left)
        for name in left:
            users = [user for user in consumers.get(name, ()) if user not in summaries]
            takers = () if name in shared else controlled.get(name, ())
            kinds = {phases[user] for user in (*users, *takers)}
            if kinds == {UPDATE} if name in shared else UPDATE in kinds:
                phases[name] = UPDATE
        left = [name for name in left if phases[name] != UPDATE]
    return tuple(
        node if node.phase == phases[node.name] else replace(node, phase=UPDATE) for node in nodes
    )
