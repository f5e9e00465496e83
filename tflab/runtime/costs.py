"""Costs: the FLOPs and bytes of every executed node, from the definition of the user's graph.

What runs no longer says what it computes: `conv1/Relu` ran as `_MklNativeFusedConv2D`, and no
framework knows how many FLOPs that has. The ledger says which of the user's nodes it does the
work of. For the types of `tflab.runtime.flops` there is a formula; for others TensorFlow has a
registry of functions that count: the one behind `tf.compat.v1.profiler`, in
tensorflow/python/profiler/internal/flops_registry.py and tensorflow/python/ops/nn_ops.py.

What the registry means by a FLOP (looked up in TensorFlow 2.21), and where it is not asked:

- A multiply-add counts as 2: `MatMul` is 2*M*N*K, `Conv2D` 2*N*Ho*Wo*Co*Kh*Kw*Ci.
- `Conv2DBackpropInput` and `...Filter` take the size of the *image* over the stride where the
  forward formula has that of the output. They agree for SAME padding, where the stride divides
  the image; without padding it is too much: for 5 x 5 on 32 x 32 1.31 times, on 14 x 14 1.96
  times. Here the formula counts.
- Convolution gradients and pooling are counted for NHWC only; the formulas know any format.
- `MaxPool` is 1 for every element of every window, `MaxPoolGrad` the same plus 1 an output,
  `Softmax` 5 an element, `Rsqrt` 2, `Mean` 1 an input, `Sum` and `BiasAddGrad` 1 less an output.
- Integers count like floats: index arithmetic has "FLOPs" too.
- `Relu`, `ReluGrad` and the gradients of depthwise convolutions are not registered, but have a
  formula. `Exp`, `Tanh`, batch normalisation, cross entropy and the optimisers'
  `ResourceApply...` have neither. `uncovered` lists such types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab import datasets
from tflab.errors import TflabError
from tflab.records import Costs, Fate, Node, Placement, Tensor, node_of
from tflab.runtime import flops, private

# These types pass a buffer or a handle on, or look at a shape: nothing is moved.
PASSING = """_Arg _Retval _XlaCompile _XlaMerge Const ControlTrigger Enter Exit ExpandDims
    Identity IdentityN LoopCond Merge NextIteration NoOp Placeholder PlaceholderWithDefault
    PreventGradient Rank ReadVariableOp Reshape Shape ShapeN Size Snapshot Squeeze StopGradient
    Switch VarHandleOp VarIsInitializedOp VariableV2"""
# These copy, fill or choose: bytes, but no arithmetic to count.
MOVING = """_HostRecv _HostSend _Recv _Send AssignVariableOp BroadcastTo Cast ConcatOffset ConcatV2
    Fill Gather GatherNd GatherV2 InvertPermutation MirrorPad OneHot OnesLike Pack Pad PadV2
    ResourceGather ReverseV2 ScatterNd Select SelectV2 Slice Split SplitV StridedSlice
    StridedSliceGrad Tile Transpose Unpack Where ZerosLike"""
HAND_ON = frozenset(PASSING.split())
NO_ARITHMETIC = HAND_ON | frozenset(MOVING.split())
PASSES_OVER_VARIABLE = {"AssignVariableOp": 1, "AssignAddVariableOp": 2, "AssignSubVariableOp": 2}
UNSIZED = ("resource", "string", "variant")  # a tensor's shape says nothing about its bytes
FORMULA, REGISTRY = "formula", "registry"  # where FLOPs come from
NOT_REGISTERED = "no function is registered for it"
NOT_BY_REGISTRY = "the registry does not count them"
TOO_MUCH = "the registry counts too much"
TOO_LITTLE = "the registry counts too little"
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
    covered = [count for count in counts(graph, node, work) if count.flops is not None]
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
        if node.op not in HAND_ON and types <= NO_ARITHMETIC and not types <= HAND_ON:
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
        for count in counts(graph, node, work.get(node.name, ())):
            if count.reason and count.op not in NO_ARITHMETIC:
                reasons[count.op] = count.reason
    return dict(sorted(reasons.items()))


def corrected(graph: tf.Graph, executed: Sequence[Node], ledger: Sequence[Fate]) -> dict[str, str]:
    """The types whose FLOPs in `costs` are not those of the registry, in the order of their names,
    and what is wrong with those."""
    work = workers(ledger)
    reasons: dict[str, str] = {}
    for node in executed:
        for count in counts(graph, node, work.get(node.name, ())):
            if count.source == FORMULA and (fault := fault_of(count)):
                reasons[count.op] = fault
    return dict(sorted(reasons.items()))


def fault_of(count: Count) -> str:
    """What is wrong with the registry's number, where there is a formula; empty if they agree."""
    try:
        registered = registered_flops(count.operation)
    except ValueError:
        return NOT_BY_REGISTRY
    if registered == count.flops:
        return ""
    return TOO_MUCH if registered > (count.flops or 0) else TOO_LITTLE


def workers(ledger: Sequence[Fate]) -> dict[str, list[str]]:
    """For each executed node, the nodes of the user's graph whose work it does."""
    work: dict[str, list[str]] = {}
    for fate in ledger:
        if fate.fate == "executed":
            work.setdefault(fate.name, []).append(fate.name)
        elif fate.fate in ("fused", "compiled") and fate.into:
            work.setdefault(fate.into, []).append(fate.name)
    return work


@dataclass(frozen=True)
class Count:
    """The FLOPs of one of the user's nodes."""

    operation: tf.Operation
    flops: int | None
    source: str | None  # FORMULA or REGISTRY
    reason: str  # why there are none

    @property
    def op(self) -> str:
        return self.operation.type


def counts(graph: tf.Graph, node: Node, work: Sequence[str]) -> Iterator[Count]:
    """The FLOPs of each of the user's nodes in `work`."""
    if node.op in HAND_ON:
        return  # also where the user's own type was rewritten to this, as `x * 1` to `x`
    for name in work:
        operation = graph.get_operation_by_name(name)
        try:
            ours = formula_flops(operation)
            number = registered_flops(operation) if ours is None else ours
        except ValueError as reason:
            yield Count(operation, None, None, str(reason))
        else:
            yield Count(operation, number, REGISTRY if ours is None else FORMULA, "")


def formula_flops(op: tf.Operation) -> int | None:
    """What the formula of its type counts; None where there is none, ValueError where a shape is
    not known."""
    if op.type not in flops.FORMULAS:
        return None
    named = {attribute.name for attribute in op.op_def.attr}
    return flops.flops(
        op.type,
        [shape_of(tensor) for tensor in op.inputs],
        [shape_of(tensor) for tensor in op.outputs],
        {name: op.get_attr(name) for name in flops.ATTRIBUTES if name in named},
    )


def shape_of(tensor: tf.Tensor) -> flops.Shape:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def registered_flops(op: tf.Operation) -> int:
    """What the registry counts for this op; ValueError, with the reason, where it does not."""
    if op.type in HAND_ON:
        raise ValueError(NOT_REGISTERED)  # without copying the value of a constant
    definition = op.node_def
    # AddN counts all of its inputs, those for control too.
    definition.input[:] = [tensor for tensor in definition.input if not tensor.startswith("^")]
    number = private.flops(op.graph, definition)
    if number is None:
        raise ValueError(NOT_REGISTERED)
    return round(number)  # the gradients of convolutions divide by the stride


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
