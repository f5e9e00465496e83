"""Costs: the FLOPs and bytes of every executed node, from the definition of the user's graph.

What runs no longer says what it computes: `conv1/Relu` ran as `_MklNativeFusedConv2D`, and no
framework knows how many FLOPs that has. The ledger says which of the user's nodes it does the
work of; what those count is in `flop_counts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.errors import TflabError
from tflab.records import Costs, Fate, Node, Placement, Tensor, node_of
from tflab.runtime import flop_counts
from tflab.runtime.flop_counts import HAND_ON, NO_ARITHMETIC

PASSES_OVER_VARIABLE = {"AssignVariableOp": 1, "AssignAddVariableOp": 2, "AssignSubVariableOp": 2}
UNSIZED = ("resource", "string", "variant")  # a tensor's shape says nothing about its bytes
NOT_THE_USERS = "not a node of the user's graph, but made by the runtime or within a function"


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

    `feeds` maps tensors, as `images:0`, to shapes. Where inference does not get through
    (a boolean mask, say), the measured shapes of `executed` help out. The copy is for reading.
    Raises TflabError for a feed that is not in the graph or does not fit it.
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
        raise TflabError(f"The graph does not take feeds of these shapes: {reason}") from error
    operations = {op.name: op for op in copy.get_operations()}
    for node in executed:
        outputs = operations[node.name].outputs if node.name in operations else ()
        for tensor, measured in zip(outputs, node.outputs, strict=False):  # oneDNN adds outputs
            inferred = tensor.shape
            if not inferred.is_fully_defined() and inferred.is_compatible_with(measured.shape):
                tensor.set_shape(measured.shape)
    return copy


def costs(graph: tf.Graph, executed: Sequence[Node], ledger: Sequence[Fate]) -> tuple[Costs, ...]:
    """FLOPs and bytes of one call of every executed node, in their order.

    `graph` is the user's with concrete shapes (see `concrete`) and `executed` has its shapes
    from a step of the same batch size. A node does the FLOPs of the user's node of that name and
    of all that were fused or compiled into it; what was folded, merged or removed costs nothing.
    Those not covered count nothing towards a sum; without any that is covered, and so without a
    ledger, it is None, as it is for what does no arithmetic. Raises KeyError where the ledger is
    of another graph.
    """
    makers = {node.name: node for node in executed}
    work = workers(ledger)
    return tuple(
        costs_of(graph, node, work.get(node.name, ()), bytes_of(graph, node, makers))
        for node in executed
    )


def costs_of(graph: tf.Graph, node: Node, work: Sequence[str], moved: int | None) -> Costs:
    covered = [count for count in flop_counts.counts(graph, node, work) if count.flops is not None]
    if not covered:
        return Costs(node.name, None, moved, None)
    sources = {count.source for count in covered}
    total = sum(count.flops or 0 for count in covered)
    return Costs(node.name, total, moved, sources.pop() if len(sources) == 1 else "both")


def moving(
    executed: Sequence[Node], user_nodes: Sequence[Node], ledger: Sequence[Fate]
) -> set[str]:
    """The executed nodes that move or convert data and compute nothing: all of the user's nodes
    whose work they do are of such types, and not all of them only hand on."""
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
    """The bytes of all tensors that are fed to a step, where their sizes are known."""
    fed = (tensor_bytes(node.outputs[0]) for node in executed if node.op == "_Arg" and node.outputs)
    return sum(size or 0 for size in fed)


def uncovered(graph: tf.Graph, executed: Sequence[Node], ledger: Sequence[Fate]) -> dict[str, str]:
    """The types whose FLOPs are missing from `costs`, in the order of their names, and why.

    They are the user's types, except for nodes that the user did not write. Types that only
    hand on or move data are not missed.
    """
    work = workers(ledger)
    reasons: dict[str, str] = {}
    for node in executed:
        if node.name not in work and node.op not in NO_ARITHMETIC:
            reasons[node.op] = NOT_THE_USERS
        for count in flop_counts.counts(graph, node, work.get(node.name, ())):
            if count.reason and count.op not in NO_ARITHMETIC:
                reasons[count.op] = count.reason
    return dict(sorted(reasons.items()))


def corrected(graph: tf.Graph, executed: Sequence[Node], ledger: Sequence[Fate]) -> dict[str, str]:
    """The types whose FLOPs in `costs` are not those of the registry, in the order of their names,
    and what is wrong with those."""
    work = workers(ledger)
    reasons: dict[str, str] = {}
    for node in executed:
        for count in flop_counts.counts(graph, node, work.get(node.name, ())):
            if count.source == flop_counts.FORMULA and (fault := flop_counts.fault_of(count)):
                reasons[count.op] = fault
    return dict(sorted(reasons.items()))


def workers(ledger: Sequence[Fate]) -> dict[str, list[str]]:
    """For each executed node, the nodes of the user's graph whose work it does."""
    work: dict[str, list[str]] = {}
    for fate in ledger:
        if fate.fate == "executed":
            work.setdefault(fate.name, []).append(fate.name)
        elif fate.fate in ("fused", "compiled") and fate.into:
            work.setdefault(fate.into, []).append(fate.name)
    return work


def bytes_of(graph: tf.Graph, node: Node, makers: Mapping[str, Node]) -> int | None:
    """Bytes of all inputs and outputs of one call. None where a size is not known.

    A tensor counts where it is read and where it is written, whether or not a cache held it. A
    variable counts where it is used: `ReadVariableOp` only hands it on, and an update reads it
    and writes it.
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
        is_handle = output.dtype == "resource"
        sizes.append(variable_bytes(graph, node.op, maker) if is_handle else tensor_bytes(output))
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def tensor_bytes(tensor: Tensor) -> int | None:
    if tensor.shape is None or None in tensor.shape or tensor.dtype in UNSIZED:
        return None
    elements = prod(size for size in tensor.shape if size is not None)
    return elements * tf.dtypes.as_dtype(tensor.dtype).size


def variable_bytes(graph: tf.Graph, user: str, handle: Node) -> int | None:
    """Bytes that an op of type `user` reads and writes of the variable behind a handle."""
    passes = 2 if user.startswith("ResourceApply") else PASSES_OVER_VARIABLE.get(user)
    if passes is None or handle.op != "VarHandleOp":
        return None  # the rows of a table, the state of a generator: not known from here
    op = graph.get_operation_by_name(handle.name)
    shape = tf.TensorShape(op.get_attr("shape"))
    if not shape.is_fully_defined():
        return None
    return passes * shape.num_elements() * op.get_attr("dtype").size
