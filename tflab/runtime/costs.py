"""Costs: the FLOPs and bytes of a call of every executed node, from its definition and shapes.

`flops` counts FLOPs. Nodes that XLA compiled have no definition in the graph that ran; the
ledger says which of the user's nodes they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.errors import TflabError
from tflab.records.graph import Node, Tensor, node_of
from tflab.records.measured import Costs
from tflab.records.placed import Fate
from tflab.records.stages import Placement
from tflab.runtime import flops
from tflab.runtime.flops import HAND_ON, NO_ARITHMETIC

PASSES_OVER_VARIABLE = {"AssignVariableOp": 1, "AssignAddVariableOp": 2, "AssignSubVariableOp": 2}
# the shape of such a tensor says nothing about its bytes
UNSIZED = ("resource", "string", "variant")


def of_placement(placed: Placement) -> tf.Graph:
    """The user's graph with the shapes of this placement's batch."""
    program = placed.program
    columns = program.dataset("train").columns
    feeds = {
        tensor.name: datasets.batch_shape(columns[column], placed.batch_size)
        for tensor, column in program.model.feeds.items()
    }
    return concrete(program.graph, feeds, placed.nodes)


def concrete(
    graph: tf.Graph, feeds: Mapping[str, Sequence[int]], executed: Sequence[Node] = ()
) -> tf.Graph:
    """A copy of the graph in which the fed tensors have these shapes, and all others follow.

    `feeds` maps tensors, such as `images:0`, to shapes. If inference fails (for a boolean mask,
    say), the measured shapes of `executed` are used. The copy is read-only. Raises TflabError for a
    feed that is not in the graph or does not fit it.
    """
    copy = tf.Graph()
    try:
        with copy.as_default(), tf1.name_scope("tflab_feeds"):
            fed = {
                tensor: tf1.placeholder(graph.get_tensor_by_name(tensor).dtype, shape)
                for tensor, shape in feeds.items()
            }
        with copy.as_default():
            tf.import_graph_def(graph.as_graph_def(), input_map=fed, name="")
    except (KeyError, ValueError) as error:
        reason = str(error).strip("'\"").partition("\n")[0]
        raise TflabError(f"The graph does not accept feeds of these shapes: {reason}") from error
    operations = {op.name: op for op in copy.get_operations()}
    for node in executed:
        outputs = operations[node.name].outputs if node.name in operations else ()
        for tensor, measured in zip(outputs, node.outputs, strict=False):  # oneDNN adds outputs
            inferred = tensor.shape
            if not inferred.is_fully_defined() and inferred.is_compatible_with(measured.shape):
                tensor.set_shape(measured.shape)
    return copy


def costs(placed: Placement) -> tuple[Costs, ...]:
    """FLOPs and bytes of one call of every executed node, in order.

    FLOPs are None if a formula or a shape is missing for any part of a node's work.
    """
    counts = flops.Counts(placed)
    makers = {node.name: node for node in placed.nodes}
    compiled = of_compiled(placed)
    return tuple(
        Costs(
            node.name,
            known_count(compiled.get(node.name) or counts.of_node(node)),
            bytes_of(counts.definitions, node, makers),
        )
        for node in placed.nodes
    )


def known_count(count: float | flops.Unknown) -> float | None:
    return None if isinstance(count, flops.Unknown) else count


def of_compiled(placed: Placement) -> dict[str, float | flops.Unknown]:
    """The FLOPs of compiled nodes, by the node that runs them: the sum over the user's nodes in
    it."""
    members: dict[str, list[str]] = {}
    for fate in placed.ledger:
        if fate.fate == "compiled" and fate.into:
            members.setdefault(fate.into, []).append(fate.name)
    graph = of_placement(placed) if members else None
    counts: dict[str, float | flops.Unknown] = {}
    for into, names in members.items():
        assert graph
        operations = [graph.get_operation_by_name(name) for name in names]
        try:
            counts[into] = sum(flops.of_operations(operations))
        except (KeyError, ValueError) as reason:
            counts[into] = flops.Unknown("_XlaRun", str(reason))
    return counts


def data_movers(
    executed: Sequence[Node], user_nodes: Sequence[Node], ledger: Sequence[Fate]
) -> set[str]:
    """The executed nodes that only move or convert data: all of the user's nodes whose work they
    do are of such types, and not all of these only pass a value on."""
    type_of = {node.name: node.op for node in user_nodes}
    work = workers(ledger)
    movers = set()
    for node in executed:
        types = {type_of.get(name, node.op) for name in work.get(node.name, (node.name,))}
        only_hands_on = node.op in HAND_ON or types <= HAND_ON
        if types <= NO_ARITHMETIC and not only_hands_on:
            movers.add(node.name)
    return movers


def fed_bytes(executed: Sequence[Node]) -> int:
    """The bytes of all tensors that are fed to a step, if their sizes are known."""
    fed = (tensor_bytes(node.outputs[0]) for node in executed if node.op == "_Arg" and node.outputs)
    return sum(size or 0 for size in fed)


def types_without_flops(placed: Placement) -> dict[str, int]:
    """The types of executed nodes with unknown FLOPs, with their numbers of nodes, sorted by
    name."""
    counts = flops.Counts(placed)
    compiled = of_compiled(placed)
    types = Counter(
        count.op
        for node in placed.nodes
        if counts.ran(node)
        and isinstance(count := compiled.get(node.name) or counts.of_node(node), flops.Unknown)
    )
    return dict(sorted(types.items()))


def workers(ledger: Sequence[Fate]) -> dict[str, list[str]]:
    """For each executed node, the nodes of the user's graph whose work it does."""
    work: dict[str, list[str]] = {}
    for fate in ledger:
        if fate.fate == "executed":
            work.setdefault(fate.name, []).append(fate.name)
        elif fate.into and fate.is_work_of_heir:
            work.setdefault(fate.into, []).append(fate.name)
    return work


def bytes_of(definitions: Mapping[str, Any], node: Node, makers: Mapping[str, Node]) -> int | None:
    """Bytes of all inputs and outputs of one call. None if a size is unknown.

    A tensor counts when it is read and when it is written, whether or not a cache held it. A
    variable counts when it is used: `ReadVariableOp` only passes it on; an update reads it and
    writes it.
    """
    if node.op in HAND_ON:
        return 0
    sizes = [tensor_bytes(output) for output in node.outputs]
    for tensor in node.inputs:
        maker = makers.get(node_of(tensor))
        index = int(tensor.partition(":")[2] or 0)
        if maker is None or index >= len(maker.outputs):
            return None
        output = maker.outputs[index]
        if output.dtype == "resource":
            sizes.append(variable_bytes(definitions, node.op, maker))
        else:
            sizes.append(tensor_bytes(output))
    known_sizes = [size for size in sizes if size is not None]
    return sum(known_sizes) if len(known_sizes) == len(sizes) else None


def tensor_bytes(tensor: Tensor) -> int | None:
    if tensor.shape is None or None in tensor.shape or tensor.dtype in UNSIZED:
        return None
    elements = prod(size for size in tensor.shape if size is not None)
    return elements * tf.dtypes.as_dtype(tensor.dtype).size


def variable_bytes(definitions: Mapping[str, Any], user: str, handle: Node) -> int | None:
    """Bytes that an op of type `user` reads and writes of the variable behind a handle."""
    passes = 2 if user.startswith("ResourceApply") else PASSES_OVER_VARIABLE.get(user)
    if passes is None or handle.op != "VarHandleOp" or handle.name not in definitions:
        return None  # the rows of a table, the state of a generator: unknown here
    attr = definitions[handle.name].attr
    shape = tf.TensorShape(attr["shape"].shape)
    if not shape.is_fully_defined():
        return None
    return passes * shape.num_elements() * tf.dtypes.as_dtype(attr["dtype"].type).size
